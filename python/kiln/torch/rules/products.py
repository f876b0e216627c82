"""Products of matrices, and convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule

# Operators with sums of products: what a partition must have to be worth its programs.
PRODUCTS: set[Any] = set()


def _product(*names: str) -> Any:
    def add(function: Any) -> Any:
        for each in names:
            packet, _, overload = each.partition(".")
            found = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if found is not None:
                PRODUCTS.add(found)
        return rule(*names)(function)

    return add


@_product("mm", "bmm", "matmul", "mv", "dot")
def _matmul(c: Context, node: fx.Node) -> str:
    return c.emit("MatMul", c.name(node.args[0]), c.name(node.args[1]))


@_product("linear")
def _linear(c: Context, node: fx.Node) -> str:
    weight = c.emit("Transpose", c.name(node.args[1]), perm=[1, 0])
    product = c.emit("MatMul", c.name(node.args[0]), weight)
    bias = argument(node, 2, "bias")
    return product if bias is None else c.emit("Add", product, c.name(bias))


@_product("addmm", "baddbmm", "addmv", "addbmm")
def _addmm(c: Context, node: fx.Node) -> str:
    if "addbmm.default" in str(node.target) and "baddbmm" not in str(node.target):
        raise Unsupported("it sums over the batch")
    dtype = c.result().dtype
    beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
    product = c.emit("MatMul", c.name(node.args[1]), c.name(node.args[2]))
    if alpha != 1:
        product = c.emit("Mul", product, c.scalar(alpha, dtype))
    if beta == 0:
        return product
    added = c.operand(node.args[0], dtype)
    return c.emit(
        "Add", product, added if beta == 1 else c.emit("Mul", added, c.scalar(beta, dtype))
    )


@_product("convolution")
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
