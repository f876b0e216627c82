"""Operators of ATen that are taken apart before Kiln looks at a graph.

Those with a rule stay whole, and so do those that neither torch nor this file takes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from kiln.torch import rules  # noqa: F401  (fills RULES)
from kiln.torch.context import RULES


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def _self_attention(
    x: torch.Tensor, heads: int, qkv: tuple[Any, Any], projection: tuple[Any, Any]
) -> torch.Tensor:
    query, key, value = functional.linear(x, *qkv).chunk(3, dim=-1)
    found = functional.scaled_dot_product_attention(
        _heads(query, heads), _heads(key, heads), _heads(value, heads)
    )
    return functional.linear(found.transpose(1, 2).reshape(x.shape), *projection)


# pylint: disable=too-many-arguments, too-many-positional-arguments
def _encoder_layer(
    src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first,
    eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1,
    ffn_weight_2, ffn_bias_2, mask=None, mask_type=None,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """nn.TransformerEncoderLayer where torch takes its fast path."""
    del mask_type
    if mask is not None or src.is_nested or src.dim() != 3:
        return NotImplemented
    width = [embed_dim]
    activation = functional.gelu if use_gelu else functional.relu

    def attend(x: torch.Tensor) -> torch.Tensor:
        return _self_attention(x, num_heads, (qkv_weight, qkv_bias), (proj_weight, proj_bias))

    def feed(x: torch.Tensor) -> torch.Tensor:
        hidden = activation(functional.linear(x, ffn_weight_1, ffn_bias_1))
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def first(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, width, norm_weight_1, norm_bias_1, eps)

    def second(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, width, norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(first(src))
        return x + feed(second(x))
    x = first(src + attend(src))
    return second(x + feed(x))


def _multi_head_attention(
    query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
    need_weights=True, average_attn_weights=True, mask_type=None,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """nn.MultiheadAttention where torch takes its fast path."""
    del embed_dim, average_attn_weights, mask_type
    is_plain = query is key and key is value and query.dim() == 3 and not query.is_nested
    if mask is not None or need_weights or not is_plain:
        return NotImplemented
    found = _self_attention(query, num_head, (qkv_weight, qkv_bias), (proj_weight, proj_bias))
    return found, query.new_empty(0)


def table() -> dict[Any, Callable[..., Any]]:
    """Decompositions for the tracer."""
    found = dict(torch._decomp.core_aten_decompositions().items())
    for op in RULES:
        found.pop(op, None)
    own = {
        "_transformer_encoder_layer_fwd": _encoder_layer,
        "_native_multi_head_attention": _multi_head_attention,
    }
    for name, function in own.items():
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            found[packet.default] = function
    return found
