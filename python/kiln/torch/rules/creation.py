"""Tensors that are made of nothing but their shape: constants of the network."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, rule

# Constants with more elements stay operators of torch's.
_LARGEST = 1 << 22


def _constant(c: Context, value: torch.Tensor) -> str:
    result = c.result()
    if value.numel() > _LARGEST:
        raise Unsupported(f"it makes a constant of {value.numel()} elements")
    return c.elements(value.to(result.dtype).expand(result.shape).contiguous())


def _filled(c: Context, value: Any) -> str:
    if not isinstance(value, (bool, int, float)):
        raise Unsupported("its value is dynamic")
    if math.prod(c.result().shape) > _LARGEST:
        raise Unsupported(f"it makes a constant of {math.prod(c.result().shape)} elements")
    return _constant(c, torch.tensor(value, dtype=c.result().dtype))


@rule("full", "full_like", "new_full")
def _full(c: Context, node: fx.Node) -> str:
    return _filled(c, node.args[2 if "new_full" in str(node.target) else 1])


@rule("zeros", "zeros_like", "new_zeros")
def _zeros(c: Context, node: fx.Node) -> str:
    return _filled(c, 0)


@rule("ones", "ones_like", "new_ones")
def _ones(c: Context, node: fx.Node) -> str:
    return _filled(c, 1)


@rule("scalar_tensor")
def _scalar_tensor(c: Context, node: fx.Node) -> str:
    return _filled(c, node.args[0])


@rule("arange", "arange.start", "arange.start_step")
def _arange(c: Context, node: fx.Node) -> str:
    if not all(isinstance(each, (int, float)) for each in node.args):
        raise Unsupported("an end of it is dynamic")
    return _constant(c, torch.arange(*node.args, dtype=c.result().dtype))


@rule("linspace")
def _linspace(c: Context, node: fx.Node) -> str:
    if not all(isinstance(each, (int, float)) for each in node.args):
        raise Unsupported("an end of it is dynamic")
    return _constant(c, torch.linspace(*node.args, dtype=c.result().dtype))


@rule("eye", "eye.m")
def _eye(c: Context, node: fx.Node) -> str:
    return _constant(c, torch.eye(*c.result().shape, dtype=c.result().dtype))


@rule("bernoulli", "rand", "randn", "rand_like", "randn_like", "native_dropout")
def _random(c: Context, node: fx.Node) -> str:
    raise Unsupported("its values are random")
