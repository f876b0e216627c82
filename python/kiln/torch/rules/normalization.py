"""Normalisations."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule


def _or_filled(c: Context, node: Any, value: int, extent: int, dtype: torch.dtype) -> str:
    """A scale or shift, or a constant in its place."""
    return c.elements(torch.full((extent,), value, dtype=dtype)) if node is None else c.name(node)


def _batch_norm(c: Context, node: fx.Node, numbers: tuple[Any, ...]) -> list[Any]:
    x, weight, bias, mean, variance, eps = numbers
    shape = c.shape(x)
    if len(shape) < 2 or mean is None or variance is None:
        raise Unsupported("it has no statistics of its own")
    # Statistics of a network in float16 may be float32; ONNX takes those as they are.
    dtype = c.dtype(mean)
    scale = _or_filled(c, weight, 1, shape[1], dtype)
    shift = _or_filled(c, bias, 0, shape[1], dtype)
    inputs = [c.name(x), scale, shift, c.name(mean), c.name(variance)]
    return [c.emit("BatchNormalization", *inputs, epsilon=float(eps)), None, None, None, None]


@rule("_native_batch_norm_legit_no_training")
def _no_training(c: Context, node: fx.Node) -> list[Any]:
    x, weight, bias, mean, variance, _, eps = node.args
    return _batch_norm(c, node, (x, weight, bias, mean, variance, eps))


@rule("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional")
def _native(c: Context, node: fx.Node) -> list[Any]:
    x, weight, bias, mean, variance, training, _, eps = node.args
    if training:
        raise Unsupported("it computes statistics, as for training; model.eval() ends that")
    return _batch_norm(c, node, (x, weight, bias, mean, variance, eps))


@rule("cudnn_batch_norm", "miopen_batch_norm")
def _cudnn(c: Context, node: fx.Node) -> list[Any]:
    x, weight, bias, mean, variance, training, _, eps = node.args
    if training:
        raise Unsupported("it computes statistics, as for training; model.eval() ends that")
    return _batch_norm(c, node, (x, weight, bias, mean, variance, eps))


@rule("native_layer_norm")
def _layer_norm(c: Context, node: fx.Node) -> list[Any]:
    x, shape, weight, bias, eps = node.args
    dtype = c.dtype(x)
    inputs = [c.name(x)]
    if weight is None:
        inputs.append(c.elements(torch.ones(tuple(shape), dtype=dtype)))
    else:
        inputs.append(c.name(weight))
    if bias is not None:
        inputs.append(c.name(bias))
    return [c.emit("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(eps)), None, None]


@rule("layer_norm")
def _composite_layer_norm(c: Context, node: fx.Node) -> str:
    x, shape = node.args[:2]
    weight, bias = argument(node, 2, "weight"), argument(node, 3, "bias")
    inputs = [c.name(x)]
    if weight is None:
        inputs.append(c.elements(torch.ones(tuple(shape), dtype=c.dtype(x))))
    else:
        inputs.append(c.name(weight))
    inputs += [] if bias is None else [c.name(bias)]
    eps = float(argument(node, 4, "eps", 1e-5))
    return c.emit("LayerNormalization", *inputs, axis=-len(shape), epsilon=eps)


@rule("native_group_norm")
def _group_norm(c: Context, node: fx.Node) -> list[Any]:
    x, weight, bias, batch, channels, rest, groups, eps = node.args
    dtype, shape = c.dtype(x), c.shape(x)
    grouped = c.reshape(c.name(x), [batch, groups, channels // groups * rest])
    ones = c.elements(torch.ones(groups, dtype=dtype))
    zeros = c.elements(torch.zeros(groups, dtype=dtype))
    name = c.emit("InstanceNormalization", grouped, ones, zeros, epsilon=float(eps))
    name = c.reshape(name, shape)
    broadcast = [1, channels] + [1] * (len(shape) - 2)
    if weight is not None:
        name = c.emit("Mul", name, c.reshape(c.name(weight), broadcast))
    if bias is not None:
        name = c.emit("Add", name, c.reshape(c.name(bias), broadcast))
    return [name, None, None]


@rule("_fused_rms_norm", "rms_norm")
def _rms_norm(c: Context, node: fx.Node) -> Any:
    x, shape, weight, eps = (
        node.args[0],
        node.args[1],
        argument(node, 2, "weight"),
        argument(node, 3, "eps"),
    )
    dtype = c.dtype(x)
    if eps is None:
        eps = torch.finfo(dtype).eps
    name = c.name(x)
    axes = list(range(len(c.shape(x)) - len(shape), len(c.shape(x))))
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    value = c.cast(name, dtype, wide)
    mean = c.emit("ReduceMean", c.emit("Mul", value, value), c.integers(axes), keepdims=1)
    root = c.emit("Sqrt", c.emit("Add", mean, c.scalar(float(eps), wide)))
    result = c.emit("Div", value, root)
    if weight is not None:
        result = c.emit("Mul", result, c.operand(weight, wide))
    result = c.cast(result, wide, dtype)
    return [result, None] if "_fused" in str(node.target) else result
