"""Declares computations in Python, with the functions of TVM's te under their names.

    from kiln import te
    A = te.placeholder((512, 256), name="A")
    B = te.placeholder((256, 128), name="B")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((512, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    matmul = te.create([A, B, C])

create() prints the text form (docs/text-form.md), and the program reads it: whatever is wrong is
said as for any other text. Shapes are numbers.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.te.building import build, lower
from kiln.te.expression import (
    Axis,
    Call,
    Combiner,
    Expression,
    Literal,
    Part,
    Reduction,
    Tensor,
    Value,
    binary,
    check_type,
    expression,
)
from kiln.te.operators import Compute, Placeholder, text_of
from kiln.te.schedule import Schedule, create_schedule, thread_axis

__all__ = [
    "Schedule",
    "Tensor",
    "abs",
    "all",
    "any",
    "build",
    "ceil",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "create",
    "create_schedule",
    "erf",
    "exp",
    "exp2",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "isnan",
    "log",
    "log2",
    "lower",
    "max",
    "max_value",
    "min",
    "min_value",
    "placeholder",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
    "text",
    "thread_axis",
]

_FLOAT_LIMITS = {"float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38}
_FLOAT_LIMITS |= {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}


def placeholder(shape: Sequence[int], dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """An input."""
    extents = _extents(shape)
    check_type(dtype)
    return Placeholder(name, extents, dtype).output


def reduce_axis(dom: Sequence[Any], name: str = "k") -> Axis:
    """An axis to reduce over, from dom[0] up to but without dom[1].

    The end may be a sum of axes times numbers, where the start is 0: a row of a triangle.
    """
    if len(dom) != 2 or not isinstance(dom[0], int):
        raise InvalidArgumentError(
            f"found the range {dom!r}, expected (first, end) with a number first"
        )
    low, end = dom
    return Axis(end - low if low else end, name, low)


def compute(
    shape: Sequence[int],
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    axis_names: Sequence[str] | None = None,
) -> Any:
    """A tensor with one value for each point; a tuple of tensors if fcompute returns several.

    `attrs` are hints, by the names that TVM has for them: layout_free_placeholders,
    auto_scheduler_simplify_const_tensor_indices, auto_scheduler_always_unroll_inner,
    auto_scheduler_no_split_at_inner, const_matrix, FLOP. Others, and `tag`, do nothing. Axes have
    the names of the function's parameters, or `axis_names`.
    """
    del tag
    extents = _extents(shape)
    named = axis_names or _axis_names(fcompute, len(extents))
    axes = [Axis(extent, axis) for extent, axis in zip(extents, named)]
    made = fcompute(*axes)
    is_one = not isinstance(made, (tuple, list))
    values = [expression(each) for each in ([made] if is_one else made)]
    outputs = Compute(name, extents, axes, values, dict(attrs or {})).outputs
    return outputs[0] if is_one else tuple(outputs)


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        extents = tuple(int(each) for each in shape)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"found the shape {shape!r}, expected whole numbers") from error
    if [*extents] != [*shape] or not builtins.all(each > 0 for each in extents):
        raise InvalidArgumentError(f"found the shape {shape!r}, expected whole numbers above 0")
    return extents


def _axis_names(fcompute: Callable[..., Any], count: int) -> list[str]:
    parameters = list(inspect.signature(fcompute).parameters.values())
    if builtins.all(each.kind is not each.VAR_POSITIONAL for each in parameters):
        if len(parameters) != count:
            raise InvalidArgumentError(
                f"the function takes {len(parameters)} axes, expected {count}, one a dimension"
            )
        return [each.name for each in parameters]
    named = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
    return named + [f"i{index}" for index in range(len(named), count)]


# ---- reductions ---------------------------------------------------------------------------------


def _reduction(name: str, value: Any, axis: Any) -> Expression:
    return Reduction(name, [expression(value)], _axes(axis))


def _axes(axis: Any) -> list[Axis]:
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    if not axes or not builtins.all(isinstance(each, Axis) for each in axes):
        raise InvalidArgumentError(f"found axis={axis!r}, expected axes of te.reduce_axis")
    return axes


def sum(expr: Value, axis: Any) -> Expression:
    """The sum over the axes."""
    return _reduction("sum", expr, axis)


def prod(expr: Value, axis: Any) -> Expression:
    """The product over the axes."""
    return _reduction("prod", expr, axis)


def max(expr: Value, other: Value | None = None, axis: Any = None) -> Expression:
    """The largest value over the axes; max(a, b) the larger of two values."""
    return _extreme("max", expr, other, axis)


def min(expr: Value, other: Value | None = None, axis: Any = None) -> Expression:
    """The least value over the axes; min(a, b) the lesser of two values."""
    return _extreme("min", expr, other, axis)


def _extreme(name: str, value: Any, other: Any, axis: Any) -> Expression:
    # TVM's reductions take the axis in the second place as well.
    if axis is None and (isinstance(other, (Axis, tuple, list))):
        other, axis = None, other
    if (other is None) == (axis is None):
        raise InvalidArgumentError(f"te.{name} takes either a second value or axis=")
    if axis is not None:
        return _reduction(name, value, axis)
    left, right = expression(value), expression(other)
    return Call(name, (left, right), left.dtype or right.dtype)


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """A reduction of your own: fcombine(x, y) of two values, fidentity(dtype) to start from.

    Of tuples, x and y are tuples and fidentity takes a type for each part. The combination must be
    associative and commutative, which is tried. The result takes (expr, axis).
    """
    combiners: dict[tuple[str, ...], Combiner] = {}

    def reducer(expr: Any, axis: Any) -> Any:
        is_one = not isinstance(expr, (tuple, list))
        values = [expression(each) for each in ([expr] if is_one else expr)]
        dtypes = tuple(each.dtype or "float32" for each in values)
        if dtypes not in combiners:
            combiners[dtypes] = Combiner(name, dtypes, fcombine, fidentity(*dtypes))
        whole = Reduction(combiners[dtypes], values, _axes(axis))
        return whole if is_one else tuple(Part(whole, index) for index in range(len(values)))

    return reducer


# ---- functions ----------------------------------------------------------------------------------


def const(value: Any, dtype: str = "float32") -> Expression:
    """A number of a type."""
    return Call(check_type(dtype), (Literal(value),), dtype)


def min_value(dtype: str) -> Expression:
    """The least finite value of a type."""
    return _limit(dtype, -1)


def max_value(dtype: str) -> Expression:
    """The largest finite value of a type."""
    return _limit(dtype, 1)


def _limit(dtype: str, sign: int) -> Expression:
    if dtype in _FLOAT_LIMITS:
        return const(sign * _FLOAT_LIMITS[dtype], dtype)
    if not check_type(dtype).startswith(("int", "uint")):
        raise InvalidArgumentError(f"te has no limits of {dtype}")
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    if dtype.startswith("u"):
        return const(2**bits - 1 if sign > 0 else 0, dtype)
    return const(2 ** (bits - 1) - 1 if sign > 0 else -(2 ** (bits - 1)), dtype)


def if_then_else(cond: Value, true_value: Value, false_value: Value) -> Expression:
    """One of two values, of which only that one is evaluated: it guards what is read."""
    return _choice("if", cond, true_value, false_value)


def select(cond: Value, true_value: Value, false_value: Value) -> Expression:
    """One of two values that are both evaluated."""
    return _choice("select", cond, true_value, false_value)


def _choice(name: str, cond: Any, true_value: Any, false_value: Any) -> Expression:
    one, other = expression(true_value), expression(false_value)
    return Call(name, (cond, one, other), one.dtype or other.dtype)


def all(*conditions: Any, axis: Any = None) -> Expression:
    """True if each condition is; with axis= over the axes."""
    return _conditions("all", "&&", conditions, axis)


def any(*conditions: Any, axis: Any = None) -> Expression:
    """True if some condition is; with axis= over the axes."""
    return _conditions("any", "||", conditions, axis)


def _conditions(name: str, op: str, conditions: Sequence[Any], axis: Any) -> Expression:
    if not conditions or (axis is not None and len(conditions) > 1):
        raise InvalidArgumentError(f"te.{name} takes conditions, or one with axis=")
    if axis is not None:
        return _reduction(name, conditions[0], axis)
    joined = expression(conditions[0])
    for each in conditions[1:]:
        joined = binary(op, joined, each)
    return joined


def _function(name: str, value: Any) -> Expression:
    operand = expression(value)
    return Call(name, (operand,), operand.dtype)


def exp(x: Value) -> Expression:
    """e to the x."""
    return _function("exp", x)


def exp2(x: Value) -> Expression:
    """2 to the x."""
    return _function("exp2", x)


def log(x: Value) -> Expression:
    """Natural logarithm."""
    return _function("log", x)


def log2(x: Value) -> Expression:
    """Logarithm to the base 2."""
    return _function("log2", x)


def sqrt(x: Value) -> Expression:
    """Square root."""
    return _function("sqrt", x)


def rsqrt(x: Value) -> Expression:
    """1 / square root."""
    return _function("rsqrt", x)


def tanh(x: Value) -> Expression:
    """Hyperbolic tangent."""
    return _function("tanh", x)


def sigmoid(x: Value) -> Expression:
    """1 / (1 + exp(-x))."""
    return _function("sigmoid", x)


def erf(x: Value) -> Expression:
    """Error function."""
    return _function("erf", x)


def sin(x: Value) -> Expression:
    """Sine."""
    return _function("sin", x)


def cos(x: Value) -> Expression:
    """Cosine."""
    return _function("cos", x)


def abs(x: Value) -> Expression:
    """Absolute value."""
    return _function("abs", x)


def floor(x: Value) -> Expression:
    """The largest whole number that is not above x."""
    return _function("floor", x)


def ceil(x: Value) -> Expression:
    """The least whole number that is not below x."""
    return _function("ceil", x)


def round(x: Value) -> Expression:
    """The nearest whole number, of two equally near ones the even one."""
    return _function("round", x)


def power(x: Value, y: Value) -> Expression:
    """x to the y."""
    left, right = expression(x), expression(y)
    return Call("pow", (left, right), left.dtype or right.dtype)


def isnan(x: Value) -> Expression:
    """True if x is no number."""
    value = expression(x)
    return value != value  # pylint: disable=comparison-with-itself


def floordiv(a: Value, b: Value) -> Expression:
    """a // b, rounded towards minus infinity."""
    return expression(a) // b


def floormod(a: Value, b: Value) -> Expression:
    """a % b, with the sign of b."""
    return expression(a) % b


# ---- texts --------------------------------------------------------------------------------------


def text(tensors: Sequence[Tensor] | Tensor) -> str:
    """The text form of what the tensors need: inputs first, in the order that is given."""
    return text_of([tensors] if isinstance(tensors, Tensor) else list(tensors))


def create(tensors: Sequence[Tensor] | Tensor, name: str = "") -> Any:
    """The computation (kiln.Computation) of the tensors, checked by the program.

    Tensors that nobody reads are its outputs. `name` is for people; otherwise the last output's.
    """
    from kiln.farm.computation import computation

    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        raise InvalidArgumentError("no tensor is given, expected an output at least")
    return computation(text_of(listed), name or listed[-1].name)
