"""Products of matrices, and convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import fx

from kiln.torch.context import Context, Rule, Unsupported, argument, operators, rule, value_of

# Operators with sums of products: what a partition must have to be worth its programs. They come
# with the count of a node's additions and multiplications.
PRODUCTS: dict[Any, Callable[[fx.Node], int]] = {}


def product(flops: Callable[[fx.Node], int], *names: str) -> Callable[[Rule], Rule]:
    """Marks the rule of operators with sums of products."""

    def add(function: Rule) -> Rule:
        PRODUCTS.update((each, flops) for each in operators(*names))
        return rule(*names)(function)

    return add


def _flops_of(first: int) -> Callable[[fx.Node], int]:
    """The count where argument number `first` is the first of two factors."""

    def flops(node: fx.Node) -> int:
        terms = value_of(node.args[first]).shape[-1]
        return 2 * value_of(node).numel() * terms

    return flops


def _convolution_flops(node: fx.Node) -> int:
    x, weight, is_transposed = value_of(node.args[0]), value_of(node.args[1]), node.args[6]
    # Each of these has a product with all elements of a row of the weights.
    places = x if is_transposed else value_of(node)
    return 2 * places.numel() * math.prod(weight.shape[1:])


@product(_flops_of(0), "mm", "bmm", "matmul", "mv", "dot")
def _matmul(c: Context, node: fx.Node) -> str:
    return c.emit("MatMul", c.name(node.args[0]), c.name(node.args[1]))


@product(_flops_of(0), "linear")
def _linear(c: Context, node: fx.Node) -> str:
    weight = c.emit("Transpose", c.name(node.args[1]), perm=[1, 0])
    made = c.emit("MatMul", c.name(node.args[0]), weight)
    bias = argument(node, 2, "bias")
    return made if bias is None else c.emit("Add", made, c.name(bias))


@product(_flops_of(1), "addmm", "baddbmm", "addmv", "addbmm")
def _addmm(c: Context, node: fx.Node) -> str:
    if "addbmm.default" in str(node.target) and "baddbmm" not in str(node.target):
        raise Unsupported("it sums over the batch")
    dtype = c.result().dtype
    beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
    made = c.emit("MatMul", c.name(node.args[1]), c.name(node.args[2]))
    if alpha != 1:
        made = c.emit("Mul", made, c.scalar(alpha, dtype))
    if beta == 0:
        return made
    added = c.operand(node.args[0], dtype)
    return c.emit("Add", made, added if beta == 1 else c.emit("Mul", added, c.scalar(beta, dtype)))


@product(_convolution_flops, "convolution")
def _convolution(c: Context, node: fx.Node) -> str:
    x, weight, bias, stride, padding, dilation, is_transposed, output_padding, groups = node.args
    rank = len(c.shape(weight)) - 2
    if len(c.shape(x)) != rank + 2:
        raise Unsupported("its input has no batch")
    names = [c.name(x), c.name(weight)] + ([] if bias is None else [c.name(bias)])

    def of_axes(values: Any) -> list[int]:
        return list(values) * rank if len(values) == 1 else list(values)

    attributes = {
        "strides": of_axes(stride),
        "pads": of_axes(padding) * 2,
        "dilations": of_axes(dilation),
        "group": groups,
        "kernel_shape": list(c.shape(weight)[2:]),
    }
    if is_transposed:
        return c.emit("ConvTranspose", *names, output_padding=of_axes(output_padding), **attributes)
    return c.emit("Conv", *names, **attributes)
