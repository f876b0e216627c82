"""Elements at places that other tensors say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule


def _places(c: Context, node: fx.Node) -> str:
    if c.dtype(node) not in (torch.int32, torch.int64):
        raise Unsupported(f"its indices are of {c.dtype(node)}")
    return c.name(node)


@rule("embedding")
def _embedding(c: Context, node: fx.Node) -> str:
    return c.emit("Gather", c.name(node.args[0]), _places(c, node.args[1]), axis=0)


@rule("index_select")
def _index_select(c: Context, node: fx.Node) -> str:
    axis = node.args[1] % max(1, len(c.shape(node.args[0])))
    return c.emit("Gather", c.name(node.args[0]), _places(c, node.args[2]), axis=axis)


@rule("gather")
def _gather(c: Context, node: fx.Node) -> str:
    rank = len(c.shape(node.args[0]))
    if rank == 0 or argument(node, 3, "sparse_grad", False):
        raise Unsupported("its input has no axes")
    return c.emit(
        "GatherElements", c.name(node.args[0]), _places(c, node.args[2]), axis=node.args[1] % rank
    )


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(c: Context, node: fx.Node) -> str:
    given = [(axis, each) for axis, each in enumerate(node.args[1]) if each is not None]
    axes = [axis for axis, _ in given]
    if len(given) == 1:
        return c.emit("Gather", c.name(node.args[0]), _places(c, given[0][1]), axis=axes[0])
    rest = [axis for axis in range(len(c.shape(node.args[0]))) if axis not in axes]
    shape = torch.broadcast_shapes(*(c.shape(each) for _, each in given))
    found = c.emit("GatherND", _first(c, node, axes + rest), _joined(c, given, shape))
    # The extents of the indices stand where the first index is, or, with gaps between them, first.
    has_gaps = axes != list(range(axes[0], axes[-1] + 1))
    before = 0 if has_gaps else axes[0]
    order = [len(shape) + axis for axis in range(before)] + list(range(len(shape)))
    order += range(len(shape) + before, len(shape) + len(rest))
    return c.emit("Transpose", found, perm=order)


def _first(c: Context, node: fx.Node, order: list[int]) -> str:
    """The indexed tensor with its indexed axes before the others."""
    return c.emit("Transpose", c.name(node.args[0]), perm=order)


def _joined(c: Context, given: list[Any], shape: Sequence[int]) -> str:
    """The indices as one tensor, whose last axis holds a place."""
    columns = []
    for _, each in given:
        places = c.cast(_places(c, each), c.dtype(each), torch.int64)
        spread = c.emit("Expand", places, c.integers(shape))
        columns.append(c.reshape(spread, [*shape, 1]))
    return c.emit("Concat", *columns, axis=len(shape))


@rule("topk")
def _topk(c: Context, node: fx.Node) -> list[str]:
    axis = argument(node, 2, "dim", -1)
    count = c.integers([node.args[1]])
    largest, ordered = argument(node, 3, "largest", True), argument(node, 4, "sorted", True)
    return c.emit_several(
        "TopK",
        [c.name(node.args[0]), count],
        2,
        axis=axis,
        largest=int(largest),
        sorted=int(ordered),
    )
