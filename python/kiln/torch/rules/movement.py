"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule

_END = 2**62


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _reshaped(c: Context, node: fx.Node) -> str:
    return c.reshape(c.name(node.args[0]), c.result().shape)


rule(
    "view", "_unsafe_view", "reshape", "squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze",
    "flatten.using_ints", "_reshape_alias",
)(_reshaped)  # fmt: skip


def _transposed(c: Context, node: fx.Node, order: Sequence[int]) -> str:
    return c.emit("Transpose", c.name(node.args[0]), perm=list(order))


@rule("permute")
def _permute(c: Context, node: fx.Node) -> str:
    rank = len(c.shape(node.args[0]))
    return _transposed(c, node, [_axis(each, rank) for each in node.args[1]])


@rule("transpose.int")
def _transpose(c: Context, node: fx.Node) -> str:
    order = list(range(len(c.shape(node.args[0]))))
    if not order:
        return c.emit("Identity", c.name(node.args[0]))
    a, b = (_axis(each, len(order)) for each in node.args[1:3])
    order[a], order[b] = order[b], order[a]
    return _transposed(c, node, order)


@rule("t")
def _t(c: Context, node: fx.Node) -> str:
    return _transposed(c, node, list(reversed(range(len(c.shape(node.args[0]))))))


@rule("expand")
def _expand(c: Context, node: fx.Node) -> str:
    return c.emit("Expand", c.name(node.args[0]), c.integers(c.result().shape))


@rule("repeat")
def _repeat(c: Context, node: fx.Node) -> str:
    counts = node.args[1]
    shape = c.shape(node.args[0])
    padded = (1,) * (len(counts) - len(shape)) + shape
    return c.emit("Tile", c.reshape(c.name(node.args[0]), padded), c.integers(counts))


def _sliced(c: Context, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
    return c.emit("Slice", x, *(c.integers([each]) for each in (start, end, axis, step)))


@rule("slice.Tensor")
def _slice(c: Context, node: fx.Node) -> str:
    axis = _axis(argument(node, 1, "dim", 0), len(c.shape(node.args[0])))
    start, end = argument(node, 2, "start") or 0, argument(node, 3, "end")
    numbers = (start, _END if end is None else end, argument(node, 4, "step", 1))
    if not all(isinstance(each, int) for each in numbers):
        raise Unsupported("an end of it is dynamic")
    return _sliced(c, c.name(node.args[0]), axis, numbers[0], min(numbers[1], _END), numbers[2])


@rule("select.int")
def _select(c: Context, node: fx.Node) -> str:
    shape = c.shape(node.args[0])
    axis = _axis(node.args[1], len(shape))
    index = node.args[2]
    if not isinstance(index, int):
        raise Unsupported("its index is dynamic")
    index += shape[axis] if index < 0 else 0
    return c.reshape(_sliced(c, c.name(node.args[0]), axis, index, index + 1), c.result().shape)


@rule("narrow")
def _narrow(c: Context, node: fx.Node) -> str:
    shape = c.shape(node.args[0])
    axis, start, length = node.args[1:4]
    axis = _axis(axis, len(shape))
    start += shape[axis] if start < 0 else 0
    return _sliced(c, c.name(node.args[0]), axis, start, start + length)


def _parts(c: Context, node: fx.Node, axis: int, lengths: Sequence[int]) -> list[str]:
    name = c.name(node.args[0])
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [_sliced(c, name, axis, end - length, end) for end, length in zip(ends, lengths)]


@rule("split.Tensor")
def _split(c: Context, node: fx.Node) -> list[str]:
    shape = c.shape(node.args[0])
    axis = _axis(argument(node, 2, "dim", 0), len(shape))
    each = node.args[1]
    lengths = [min(each, shape[axis] - begin) for begin in range(0, shape[axis], each)]
    return _parts(c, node, axis, lengths)


@rule("split_with_sizes")
def _split_with_sizes(c: Context, node: fx.Node) -> list[str]:
    axis = _axis(argument(node, 2, "dim", 0), len(c.shape(node.args[0])))
    return _parts(c, node, axis, node.args[1])


@rule("unbind.int")
def _unbind(c: Context, node: fx.Node) -> list[str]:
    shape = c.shape(node.args[0])
    axis = _axis(argument(node, 1, "dim", 0), len(shape))
    rest = shape[:axis] + shape[axis + 1 :]
    return [c.reshape(each, rest) for each in _parts(c, node, axis, [1] * shape[axis])]


@rule("copy_")
def _write(c: Context, node: fx.Node) -> str:
    raise Unsupported("it writes to an input of the graph")


@rule("cat")
def _cat(c: Context, node: fx.Node) -> str:
    dtype = c.result().dtype
    names = [c.operand(each, dtype) for each in node.args[0]]
    return c.emit("Concat", *names, axis=_axis(argument(node, 1, "dim", 0), c.result().ndim))


@rule("stack")
def _stack(c: Context, node: fx.Node) -> str:
    dtype, shape = c.result().dtype, list(c.result().shape)
    axis = _axis(argument(node, 1, "dim", 0), len(shape))
    shape[axis] = 1
    names = [c.reshape(c.operand(each, dtype), shape) for each in node.args[0]]
    return c.emit("Concat", *names, axis=axis)


@rule("flip")
def _flip(c: Context, node: fx.Node) -> str:
    name = c.name(node.args[0])
    rank = len(c.shape(node.args[0]))
    for axis in node.args[1]:
        name = _sliced(c, name, _axis(axis, rank), -1, -_END, -1)
    return c.emit("Identity", name)


@rule("roll")
def _roll(c: Context, node: fx.Node) -> str:
    shape = c.shape(node.args[0])
    axes = argument(node, 2, "dims", [])
    if not axes:
        raise Unsupported("it rolls all axes as one")
    name = c.name(node.args[0])
    for shift, axis in zip(node.args[1], axes):
        axis = _axis(axis, len(shape))
        at = -shift % shape[axis]
        if at:
            tail, head = _sliced(c, name, axis, at, _END), _sliced(c, name, axis, 0, at)
            name = c.emit("Concat", tail, head, axis=axis)
    return c.emit("Identity", name)


def _padded(c: Context, node: fx.Node, mode: str, value: Any = None) -> str:
    rank = len(c.shape(node.args[0]))
    pads = node.args[1]
    begins, ends = [0] * rank, [0] * rank
    for i in range(len(pads) // 2):
        begins[rank - 1 - i], ends[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    fill = [] if value is None else [c.scalar(value, c.result().dtype)]
    return c.emit("Pad", c.name(node.args[0]), c.integers(begins + ends), *fill, mode=mode)


@rule("constant_pad_nd")
def _constant_pad(c: Context, node: fx.Node) -> str:
    return _padded(c, node, "constant", argument(node, 2, "value", 0))


@rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflection_pad(c: Context, node: fx.Node) -> str:
    return _padded(c, node, "reflect")


@rule("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replication_pad(c: Context, node: fx.Node) -> str:
    return _padded(c, node, "edge")


@rule("pixel_shuffle")
def _pixel_shuffle(c: Context, node: fx.Node) -> str:
    if len(c.shape(node.args[0])) != 4:
        raise Unsupported("its input has not 4 axes")
    return c.emit("DepthToSpace", c.name(node.args[0]), blocksize=node.args[1], mode="CRD")


@rule("tril", "triu")
def _triangle(c: Context, node: fx.Node) -> str:
    upper = int("triu" in str(node.target))
    diagonal = c.scalar(argument(node, 1, "diagonal", 0), torch.int64)
    return c.emit("Trilu", c.name(node.args[0]), diagonal, upper=upper)
