"""Attention: torch has an operator for each of its kernels, which become what they compute.

Kiln finds attention in products and softmax again, and has a kernel of its own for it on GPUs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, value_of
from kiln.torch.rules.products import product


def _attention(
    c: Context, node: fx.Node, mask: Any, dropout: float, is_causal: bool, scale: Any
) -> str:
    query, key, value = node.args[:3]
    shape, keys = c.shape(query), c.shape(key)
    dtype = c.dtype(query)
    if dropout:
        raise Unsupported("it drops weights at random")
    if len(shape) != 4 or shape[1] != keys[1]:
        raise Unsupported("its queries have other heads than its keys")
    factor = 1 / math.sqrt(shape[-1]) if scale is None else float(scale)
    turned = c.emit("Transpose", c.name(key), perm=[0, 1, 3, 2])
    scores = c.emit("MatMul", c.name(query), turned)
    scores = c.emit("Mul", scores, c.scalar(factor, dtype))
    if is_causal:
        hidden = torch.full((shape[-2], keys[-2]), -math.inf, dtype=dtype).triu(1)
        scores = c.emit("Add", scores, c.elements(hidden))
    if mask is not None and c.dtype(mask) == torch.bool:
        never = c.scalar(-math.inf, dtype)
        scores = c.emit("Where", c.name(mask), scores, never)
    elif mask is not None:
        scores = c.emit("Add", scores, c.operand(mask, dtype))
    return c.emit("MatMul", c.emit("Softmax", scores, axis=-1), c.name(value))


def _flops(node: fx.Node) -> int:
    """The count of additions and multiplications of both products."""
    query, key, value = (value_of(each) for each in node.args[:3])
    rows = query.numel() // query.shape[-1]
    return 2 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _results(c: Context, node: fx.Node, name: str) -> list[Any]:
    """The result, and None for what only gradients need."""
    return [name] + [None] * (len(node.meta["val"]) - 1)


@product(_flops, "_scaled_dot_product_flash_attention_for_cpu")
def _for_cpu(c: Context, node: fx.Node) -> list[Any]:
    dropout, causal = argument(node, 3, "dropout_p", 0.0), argument(node, 4, "is_causal", False)
    mask, scale = node.kwargs.get("attn_mask"), node.kwargs.get("scale")
    return _results(c, node, _attention(c, node, mask, dropout, causal, scale))


@product(_flops, "_scaled_dot_product_flash_attention")
def _flash(c: Context, node: fx.Node) -> list[Any]:
    dropout, causal = argument(node, 3, "dropout_p", 0.0), argument(node, 4, "is_causal", False)
    return _results(c, node, _attention(c, node, None, dropout, causal, node.kwargs.get("scale")))


@product(_flops, "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention")
def _efficient(c: Context, node: fx.Node) -> list[Any]:
    mask = argument(node, 3, "attn_bias")
    dropout, causal = argument(node, 5, "dropout_p", 0.0), argument(node, 6, "is_causal", False)
    return _results(c, node, _attention(c, node, mask, dropout, causal, node.kwargs.get("scale")))


@product(_flops, "scaled_dot_product_attention")
def _composite(c: Context, node: fx.Node) -> str:
    mask, dropout = argument(node, 3, "attn_mask"), argument(node, 4, "dropout_p", 0.0)
    causal = argument(node, 5, "is_causal", False)
    return _attention(c, node, mask, dropout, causal, node.kwargs.get("scale"))
