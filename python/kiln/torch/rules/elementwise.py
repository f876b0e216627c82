"""Functions of each element."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule

_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu",
    "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "mish": "Mish",
}  # fmt: skip
_COPIES = ("clone", "alias", "detach", "lift_fresh_copy", "_to_copy", "contiguous", "dropout")
_COMPARED = {
    "eq": "Equal",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "lt": "Less",
    "le": "LessOrEqual",
}
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}


def _input(c: Context, node: fx.Node, index: int = 0) -> str:
    """An argument in the type of the result, as torch promotes whole numbers to floats."""
    return c.operand(node.args[index], c.result().dtype)


def _unary(op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        return c.emit(op, _input(c, node))

    return convert


for _aten, _op in _SAME.items():
    rule(_aten)(_unary(_op))


@rule(*_COPIES)
def _copy(c: Context, node: fx.Node) -> str:
    if c.result().device != c.tensor(node.args[0]).device:
        raise Unsupported("it copies from one device to another")
    return c.emit("Identity", _input(c, node))


@rule("rsqrt")
def _rsqrt(c: Context, node: fx.Node) -> str:
    return c.emit("Reciprocal", c.emit("Sqrt", _input(c, node)))


@rule("square")
def _square(c: Context, node: fx.Node) -> str:
    x = _input(c, node)
    return c.emit("Mul", x, x)


@rule("exp2")
def _exp2(c: Context, node: fx.Node) -> str:
    dtype = c.result().dtype
    return c.emit("Exp", c.emit("Mul", _input(c, node), c.scalar(math.log(2), dtype)))


@rule("log2")
def _log2(c: Context, node: fx.Node) -> str:
    return _log_of_base(c, node, 2)


@rule("log10")
def _log10(c: Context, node: fx.Node) -> str:
    return _log_of_base(c, node, 10)


def _log_of_base(c: Context, node: fx.Node, base: int) -> str:
    dtype = c.result().dtype
    return c.emit("Mul", c.emit("Log", _input(c, node)), c.scalar(1 / math.log(base), dtype))


@rule("trunc", "fix")
def _trunc(c: Context, node: fx.Node) -> str:
    x = _input(c, node)
    return c.emit("Mul", c.emit("Sign", x), c.emit("Floor", c.emit("Abs", x)))


@rule("silu")
def _silu(c: Context, node: fx.Node) -> str:
    x = _input(c, node)
    return c.emit("Mul", x, c.emit("Sigmoid", x))


@rule("gelu")
def _gelu(c: Context, node: fx.Node) -> str:
    return c.emit("Gelu", _input(c, node), approximate=argument(node, 1, "approximate", "none"))


@rule("hardsigmoid")
def _hardsigmoid(c: Context, node: fx.Node) -> str:
    return c.emit("HardSigmoid", _input(c, node), alpha=1 / 6, beta=0.5)


@rule("hardswish")
def _hardswish(c: Context, node: fx.Node) -> str:
    return c.emit("HardSwish", _input(c, node))


@rule("leaky_relu")
def _leaky_relu(c: Context, node: fx.Node) -> str:
    return c.emit(
        "LeakyRelu", _input(c, node), alpha=float(argument(node, 1, "negative_slope", 0.01))
    )


@rule("elu")
def _elu(c: Context, node: fx.Node) -> str:
    names = ("alpha", "scale", "input_scale")
    alpha, scale, input_scale = (argument(node, 1 + i, name, 1) for i, name in enumerate(names))
    if scale != 1 or input_scale != 1:
        raise Unsupported("its scales are not 1")
    return c.emit("Elu", _input(c, node), alpha=float(alpha))


@rule("softplus")
def _softplus(c: Context, node: fx.Node) -> str:
    beta, threshold = argument(node, 1, "beta", 1), argument(node, 2, "threshold", 20)
    dtype = c.result().dtype
    x = _input(c, node)
    scaled = x if beta == 1 else c.emit("Mul", x, c.scalar(beta, dtype))
    soft = c.emit("Softplus", scaled)
    if beta != 1:
        soft = c.emit("Mul", soft, c.scalar(1 / beta, dtype))
    return c.emit("Where", c.emit("Greater", scaled, c.scalar(threshold, dtype)), x, soft)


@rule("hardtanh")
def _hardtanh(c: Context, node: fx.Node) -> str:
    return _between(c, node, argument(node, 1, "min_val", -1), argument(node, 2, "max_val", 1))


@rule("relu6")
def _relu6(c: Context, node: fx.Node) -> str:
    return _between(c, node, 0, 6)


@rule("clamp", "clamp.Tensor")
def _clamp(c: Context, node: fx.Node) -> str:
    return _between(c, node, argument(node, 1, "min"), argument(node, 2, "max"))


@rule("clamp_min", "clamp_min.Tensor")
def _clamp_min(c: Context, node: fx.Node) -> str:
    return _between(c, node, node.args[1], None)


@rule("clamp_max", "clamp_max.Tensor")
def _clamp_max(c: Context, node: fx.Node) -> str:
    return _between(c, node, None, node.args[1])


def _between(c: Context, node: fx.Node, low: Any, high: Any) -> str:
    dtype = c.result().dtype
    name = _input(c, node)
    if low is not None:
        name = c.emit("Max", name, c.operand(low, dtype))
    return name if high is None else c.emit("Min", name, c.operand(high, dtype))


def _scaled(c: Context, factor: Any, argument_: Any) -> str:
    """An operand times the alpha of torch's add and sub."""
    dtype = c.result().dtype
    name = c.operand(argument_, dtype)
    return name if factor == 1 else c.emit("Mul", name, c.scalar(factor, dtype))


@rule("add.Tensor", "add.Scalar")
def _add(c: Context, node: fx.Node) -> str:
    alpha = argument(node, 2, "alpha", 1)
    if c.result().dtype == torch.bool:
        return c.emit("Or", _input(c, node), _input(c, node, 1))
    return c.emit("Add", _input(c, node), _scaled(c, alpha, node.args[1]))


@rule("sub.Tensor", "sub.Scalar")
def _sub(c: Context, node: fx.Node) -> str:
    return c.emit("Sub", _input(c, node), _scaled(c, argument(node, 2, "alpha", 1), node.args[1]))


@rule("rsub.Tensor", "rsub.Scalar")
def _rsub(c: Context, node: fx.Node) -> str:
    return c.emit(
        "Sub", _input(c, node, 1), _scaled(c, argument(node, 2, "alpha", 1), node.args[0])
    )


@rule("mul.Tensor", "mul.Scalar")
def _mul(c: Context, node: fx.Node) -> str:
    op = "And" if c.result().dtype == torch.bool else "Mul"
    return c.emit(op, _input(c, node), _input(c, node, 1))


@rule("div.Tensor", "div.Scalar", "true_divide.Tensor")
def _div(c: Context, node: fx.Node) -> str:
    return c.emit("Div", _input(c, node), _input(c, node, 1))


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(c: Context, node: fx.Node) -> str:
    mode = argument(node, 2, "rounding_mode")
    if mode is None:
        return _div(c, node)
    if mode == "floor" and c.result().dtype.is_floating_point:
        return c.emit("Floor", _div(c, node))
    raise Unsupported(f"it rounds to the {mode} of {c.result().dtype}")


@rule("floor_divide", "floor_divide.Scalar")
def _floor_divide(c: Context, node: fx.Node) -> str:
    if not c.result().dtype.is_floating_point:
        raise Unsupported(f"it rounds to the floor of {c.result().dtype}")
    return c.emit("Floor", _div(c, node))


@rule("remainder.Tensor", "remainder.Scalar")
def _remainder(c: Context, node: fx.Node) -> str:
    x, y = _input(c, node), _input(c, node, 1)
    if not c.result().dtype.is_floating_point:
        return c.emit("Mod", x, y)
    return c.emit("Sub", x, c.emit("Mul", y, c.emit("Floor", c.emit("Div", x, y))))


@rule("fmod.Tensor", "fmod.Scalar")
def _fmod(c: Context, node: fx.Node) -> str:
    return c.emit("Mod", _input(c, node), _input(c, node, 1), fmod=1)


@rule("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _pow(c: Context, node: fx.Node) -> str:
    x = _input(c, node)
    if node.args[1] in (1, 2):
        return c.emit("Identity", x) if node.args[1] == 1 else c.emit("Mul", x, x)
    return c.emit("Pow", x, _input(c, node, 1))


@rule("maximum")
def _maximum(c: Context, node: fx.Node) -> str:
    return c.emit("Max", _input(c, node), _input(c, node, 1))


@rule("minimum")
def _minimum(c: Context, node: fx.Node) -> str:
    return c.emit("Min", _input(c, node), _input(c, node, 1))


def _common(c: Context, node: fx.Node) -> list[str]:
    """Both arguments in the type in which torch compares them."""
    values = [c.tensor(each) if isinstance(each, fx.Node) else each for each in node.args[:2]]
    dtype = torch.result_type(*values)
    return [c.operand(each, dtype) for each in node.args[:2]]


def _comparison(op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        return c.emit(op, *_common(c, node))

    return convert


for _aten, _op in _COMPARED.items():
    rule(f"{_aten}.Tensor", f"{_aten}.Scalar")(_comparison(_op))


@rule("ne.Tensor", "ne.Scalar")
def _ne(c: Context, node: fx.Node) -> str:
    return c.emit("Not", c.emit("Equal", *_common(c, node)))


def _logic(op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        return c.emit(op, *(c.operand(each, torch.bool) for each in node.args[:2]))

    return convert


for _aten, _op in _LOGIC.items():
    rule(_aten)(_logic(_op))


def _bitwise(aten: str, op: str) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        chosen = (
            _LOGIC[aten.replace("bitwise", "logical")] if c.result().dtype == torch.bool else op
        )
        return c.emit(chosen, _input(c, node), _input(c, node, 1))

    return convert


for _aten, _op in _BITS.items():
    rule(f"{_aten}.Tensor", f"{_aten}.Scalar")(_bitwise(_aten, _op))


@rule("logical_not")
def _logical_not(c: Context, node: fx.Node) -> str:
    return c.emit("Not", c.operand(node.args[0], torch.bool))


@rule("bitwise_not")
def _bitwise_not(c: Context, node: fx.Node) -> str:
    return c.emit("Not" if c.result().dtype == torch.bool else "BitwiseNot", _input(c, node))


@rule("isnan")
def _isnan(c: Context, node: fx.Node) -> str:
    return c.emit("IsNaN", c.name(node.args[0]))


@rule("isinf")
def _isinf(c: Context, node: fx.Node) -> str:
    return c.emit("IsInf", c.name(node.args[0]))


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(c: Context, node: fx.Node) -> str:
    return c.emit("Where", c.name(node.args[0]), _input(c, node, 1), _input(c, node, 2))


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(c: Context, node: fx.Node) -> str:
    return c.emit("Where", c.name(node.args[1]), _input(c, node, 2), _input(c, node))
