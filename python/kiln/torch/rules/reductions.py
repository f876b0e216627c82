"""Sums, means, largest elements over axes, and softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule


def _axes(c: Context, node: fx.Node, axes: Any) -> list[int]:
    """The axes that are reduced; without any, all."""
    rank = len(c.shape(node.args[0]))
    if axes is None or axes == []:
        return list(range(rank))
    return [
        axis % rank if rank else 0 for axis in (axes if isinstance(axes, (list, tuple)) else [axes])
    ]


def _reduced(c: Context, op: str, x: str, axes: list[int], keep: bool) -> str:
    """A reduction; over no axes it is the value itself."""
    if not axes:
        return c.emit("Identity", x)
    return c.emit(op, x, c.integers(axes), keepdims=int(keep))


def _reduction(op: str, place: int) -> Any:
    """A rule; `place` is where the axes are among the arguments, keepdim behind them."""

    def convert(c: Context, node: fx.Node) -> str:
        axes = _axes(c, node, argument(node, place, "dim"))
        keep = bool(argument(node, place + 1, "keepdim", False))
        x = c.operand(node.args[0], c.result().dtype)
        return _reduced(c, op, x, axes, keep)

    return convert


rule("sum.dim_IntList")(_reduction("ReduceSum", 1))
rule("mean.dim")(_reduction("ReduceMean", 1))
rule("amax")(_reduction("ReduceMax", 1))
rule("amin")(_reduction("ReduceMin", 1))
rule("logsumexp")(_reduction("ReduceLogSumExp", 1))
rule("prod.dim_int")(_reduction("ReduceProd", 1))


def _whole(op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        x = c.operand(node.args[0], c.result().dtype)
        return _reduced(c, op, x, _axes(c, node, None), False)

    return convert


rule("sum")(_whole("ReduceSum"))
rule("mean")(_whole("ReduceMean"))
rule("max")(_whole("ReduceMax"))
rule("min")(_whole("ReduceMin"))
rule("prod")(_whole("ReduceProd"))


@rule("any", "any.dim", "any.dims")
def _any(c: Context, node: fx.Node) -> str:
    return _of_bools(c, node, "ReduceMax")


@rule("all", "all.dim", "all.dims")
def _all(c: Context, node: fx.Node) -> str:
    return _of_bools(c, node, "ReduceMin")


def _of_bools(c: Context, node: fx.Node, op: str) -> str:
    axes = _axes(c, node, argument(node, 1, "dim"))
    is_true = c.operand(node.args[0], torch.bool)
    number = c.cast(is_true, torch.bool, torch.int32)
    found = _reduced(c, op, number, axes, bool(argument(node, 2, "keepdim", False)))
    return c.cast(found, torch.int32, torch.bool)


def _extreme(c: Context, node: fx.Node, op: str) -> list[str]:
    """The largest or least elements along an axis, and where they are."""
    axes = _axes(c, node, node.args[1])
    keep = bool(argument(node, 2, "keepdim", False))
    x = c.name(node.args[0])
    value = _reduced(c, "Reduce" + op, x, axes, keep)
    return [value, c.emit("Arg" + op, x, axis=axes[0], keepdims=int(keep))]


@rule("max.dim")
def _max_dim(c: Context, node: fx.Node) -> list[str]:
    return _extreme(c, node, "Max")


@rule("min.dim")
def _min_dim(c: Context, node: fx.Node) -> list[str]:
    return _extreme(c, node, "Min")


@rule("argmax", "argmin")
def _arg(c: Context, node: fx.Node) -> str:
    op = "ArgMax" if "argmax" in str(node.target) else "ArgMin"
    axis, keep = argument(node, 1, "dim"), bool(argument(node, 2, "keepdim", False))
    x = c.name(node.args[0])
    if axis is not None:
        return c.emit(op, x, axis=_axes(c, node, axis)[0], keepdims=int(keep))
    found = c.emit(op, c.reshape(x, [-1]), axis=0, keepdims=0)
    return c.reshape(found, c.result().shape)


def _variance(
    c: Context, x: str, shape: Any, axes: list[int], keep: bool, correction: Any
) -> list[str]:
    """The variance and the mean."""
    dtype = c.result().dtype
    count = 1
    for axis in axes:
        count *= shape[axis]
    divisor = count - (1 if correction is None else correction)
    if divisor <= 0:
        raise Unsupported("it divides by 0")
    mean = _reduced(c, "ReduceMean", x, axes, True)
    difference = c.emit("Sub", x, mean)
    total = _reduced(c, "ReduceSum", c.emit("Mul", difference, difference), axes, keep)
    variance = c.emit("Mul", total, c.scalar(1 / divisor, dtype))
    kept = mean if keep else _reduced(c, "ReduceMean", x, axes, False)
    return [variance, kept]


def _variance_of(c: Context, node: fx.Node) -> list[str]:
    axes = _axes(c, node, argument(node, 1, "dim"))
    correction = node.kwargs.get("correction")
    keep = bool(node.kwargs.get("keepdim", False))
    return _variance(c, c.name(node.args[0]), c.shape(node.args[0]), axes, keep, correction)


@rule("var.correction")
def _var(c: Context, node: fx.Node) -> str:
    return _variance_of(c, node)[0]


@rule("std.correction")
def _std(c: Context, node: fx.Node) -> str:
    return c.emit("Sqrt", _variance_of(c, node)[0])


@rule("var_mean.correction")
def _var_mean(c: Context, node: fx.Node) -> list[str]:
    return _variance_of(c, node)


@rule("linalg_vector_norm")
def _norm(c: Context, node: fx.Node) -> str:
    order = argument(node, 1, "ord", 2)
    if order not in (1, 2):
        raise Unsupported(f"its order is {order}, expected 1 or 2")
    axes = _axes(c, node, argument(node, 2, "dim"))
    x = c.operand(node.args[0], c.result().dtype)
    return _reduced(c, f"ReduceL{int(order)}", x, axes, bool(argument(node, 3, "keepdim", False)))


@rule("cumsum")
def _cumsum(c: Context, node: fx.Node) -> str:
    axis = _axes(c, node, node.args[1])[0]
    return c.emit("CumSum", c.operand(node.args[0], c.result().dtype), c.scalar(axis, torch.int64))


def _along(op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        if not c.result().ndim:
            raise Unsupported("its input has no axes")
        axis = node.args[1] % c.result().ndim
        return c.emit(op, c.operand(node.args[0], c.result().dtype), axis=axis)

    return convert


rule("_softmax", "softmax.int")(_along("Softmax"))
rule("_log_softmax", "log_softmax.int")(_along("LogSoftmax"))
