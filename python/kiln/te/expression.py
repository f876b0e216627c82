"""Expressions, axes and tensors: what the functions of kiln.te make, and how they print.

An expression is a tree whose nodes know their operands and, as far as operands tell, their type.
It becomes a text when the operator that it is the value of is printed, since only then the names of
axes are known.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from kiln.errors import InvalidArgumentError

TYPES = (
    "float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float64 int8 int16 int32 int64 uint8 "
    "uint16 uint32 uint64 bool"
).split()
# Words of the language, which stand in backquotes as names.
_WORDS = set(TYPES) | set(
    "input let param combine from sum prod max min argmax argmin any all if select exp log sqrt "
    "rsqrt tanh sigmoid erf pow abs floor ceil round sin cos exp2 log2".split()
)

# How tightly operators bind, from the grammar of docs/text-form.md. A reduction takes all that
# follows it, so it binds least.
_REDUCTION, _TERNARY, _OR, _AND, _BIT_OR, _BIT_XOR, _BIT_AND = range(7)
_COMPARE, _SHIFT, _ADD, _MULTIPLY, _UNARY, _ATOM = range(7, 13)
_BINARY = {
    "||": _OR,
    "&&": _AND,
    "|": _BIT_OR,
    "^": _BIT_XOR,
    "&": _BIT_AND,
    "==": _COMPARE,
    "!=": _COMPARE,
    "<": _COMPARE,
    "<=": _COMPARE,
    ">": _COMPARE,
    ">=": _COMPARE,
    "<<": _SHIFT,
    ">>": _SHIFT,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "//": _MULTIPLY,
    "%": _MULTIPLY,
}

Value = Union["Expression", int, float, bool]


def quoted(name: str) -> str:
    """A name as the language writes it."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*('[0-9]+)?", name) and name not in _WORDS:
        return name
    if "`" in name or not name.isprintable() or not name:
        raise InvalidArgumentError(
            f"{name!r} is no name: it is empty, or has a character that no name has"
        )
    return f"`{name}`"


def check_type(dtype: str) -> str:
    """The type. InvalidArgumentError: there is no such type."""
    if dtype not in TYPES:
        raise InvalidArgumentError(f"found type {dtype!r}, expected one of {' '.join(TYPES)}")
    return dtype


class Names:
    """Names of axes and tensors within one text."""

    def __init__(self, tensors: Mapping[Any, str], combiners: Mapping[Any, str]) -> None:
        self.tensors = tensors
        self.combiners = combiners
        self.axes: dict[Axis, str] = {}

    def axis(self, axis: Axis) -> str:
        """The name of an axis of this operator; a second axis of one name gets a number."""
        if axis not in self.axes:
            taken = set(self.axes.values())
            name, number = axis.name, 1
            while name in taken:
                name, number = f"{axis.name}_{number}", number + 1
            self.axes[axis] = name
        return quoted(self.axes[axis])


class Expression:
    """A value. Python's operators make larger ones; comparisons make bools of the language."""

    level = _ATOM
    dtype: str | None = None
    operands: tuple[Expression, ...] = ()

    def text(self, names: Names) -> str:
        """The expression in the text form."""
        raise NotImplementedError

    def within(self, level: int, names: Names) -> str:
        """The text as an operand, in brackets if it binds less than `level`."""
        text = self.text(names)
        return text if self.level >= level else f"({text})"

    def astype(self, dtype: str) -> Expression:
        """This value in another type."""
        return Call(check_type(dtype), (self,), dtype)

    def __add__(self, other: Value) -> Expression:
        return binary("+", self, other)

    def __radd__(self, other: Value) -> Expression:
        return binary("+", other, self)

    def __sub__(self, other: Value) -> Expression:
        return binary("-", self, other)

    def __rsub__(self, other: Value) -> Expression:
        return binary("-", other, self)

    def __mul__(self, other: Value) -> Expression:
        return binary("*", self, other)

    def __rmul__(self, other: Value) -> Expression:
        return binary("*", other, self)

    def __truediv__(self, other: Value) -> Expression:
        return binary("/", self, other)

    def __rtruediv__(self, other: Value) -> Expression:
        return binary("/", other, self)

    def __floordiv__(self, other: Value) -> Expression:
        return binary("//", self, other)

    def __rfloordiv__(self, other: Value) -> Expression:
        return binary("//", other, self)

    def __mod__(self, other: Value) -> Expression:
        return binary("%", self, other)

    def __rmod__(self, other: Value) -> Expression:
        return binary("%", other, self)

    def __lshift__(self, other: Value) -> Expression:
        return binary("<<", self, other)

    def __rshift__(self, other: Value) -> Expression:
        return binary(">>", self, other)

    def __and__(self, other: Value) -> Expression:
        return binary("&", self, other)

    def __rand__(self, other: Value) -> Expression:
        return binary("&", other, self)

    def __or__(self, other: Value) -> Expression:
        return binary("|", self, other)

    def __ror__(self, other: Value) -> Expression:
        return binary("|", other, self)

    def __xor__(self, other: Value) -> Expression:
        return binary("^", self, other)

    def __neg__(self) -> Expression:
        return Prefix("-", self)

    def __invert__(self) -> Expression:
        return Prefix("!" if self.dtype == "bool" else "~", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return binary("==", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return binary("!=", self, other)

    def __lt__(self, other: Value) -> Expression:
        return binary("<", self, other)

    def __le__(self, other: Value) -> Expression:
        return binary("<=", self, other)

    def __gt__(self, other: Value) -> Expression:
        return binary(">", self, other)

    def __ge__(self, other: Value) -> Expression:
        return binary(">=", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidArgumentError(
            "the truth of an expression is known only when the program runs: use te.all, te.any "
            "and te.if_then_else in place of `and`, `or` and `if`"
        )

    def __iter__(self) -> Any:
        raise InvalidArgumentError(f"{type(self).__name__} is one value, expected a list")


def expression(value: Any) -> Expression:
    """The value as an expression. InvalidArgumentError: it is none."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, (numbers.Number, bool)) or type(value).__module__ == "numpy":
        return Literal(value)
    raise InvalidArgumentError(
        f"found a {type(value).__name__} ({value!r}) in an expression, expected a number, an axis "
        "or an element of a tensor, A[i, j]"
    )


class Literal(Expression):
    """A number, which has the type of what it meets."""

    def __init__(self, value: Any) -> None:
        kind = (
            float
            if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
            else int
        )
        try:
            self.value: int | float = kind(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"found {value!r}, expected a real number") from error
        if isinstance(self.value, float) and math.isnan(self.value):
            raise InvalidArgumentError("found nan, expected a number: the text form has no nan")
        self.level = _UNARY if self.value < 0 else _ATOM

    def text(self, names: Names) -> str:
        return repr(self.value)


class Axis(Expression):
    """A loop axis, from 0 (or `low`) on. A reduction's extent may be an expression."""

    dtype = "int64"

    def __init__(self, extent: Value, name: str, low: int = 0) -> None:
        self.extent = extent
        self.name = name
        self.low = low
        self.level = _ATOM if low == 0 else _ADD

    def __repr__(self) -> str:
        return f"<axis {self.name}: {self.extent}>"

    def text(self, names: Names) -> str:
        name = names.axis(self)
        return name if self.low == 0 else f"{name} {'+' if self.low > 0 else '-'} {abs(self.low)}"

    def declared(self, names: Names) -> str:
        """ "k: 64"."""
        return f"{names.axis(self)}: {expression(self.extent).text(names)}"


class Binary(Expression):
    """Two values and an operator."""

    def __init__(self, op: str, left: Expression, right: Expression) -> None:
        self.op = op
        self.operands = (left, right)
        self.level = _BINARY[op]
        is_bool = self.level in (_COMPARE, _OR, _AND)
        self.dtype = "bool" if is_bool else left.dtype or right.dtype

    def text(self, names: Names) -> str:
        left, right = self.operands
        # Comparisons do not chain; all others group from the left.
        left_level = self.level + 1 if self.level == _COMPARE else self.level
        return f"{left.within(left_level, names)} {self.op} {right.within(self.level + 1, names)}"


def binary(op: str, left: Any, right: Any) -> Expression:
    """left op right."""
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        raise InvalidArgumentError(
            "found a tensor in an expression, expected an element of it: A[i, j]"
        )
    return Binary(op, expression(left), expression(right))


class Prefix(Expression):
    """-x, !x, ~x."""

    level = _UNARY

    def __init__(self, op: str, operand: Expression) -> None:
        self.op = op
        self.operands = (operand,)
        self.dtype = operand.dtype

    def text(self, names: Names) -> str:
        return self.op + self.operands[0].within(_ATOM, names)


class Call(Expression):
    """A function of values: exp(x), float32(x), if(c, a, b)."""

    def __init__(self, function: str, operands: Iterable[Any], dtype: str | None) -> None:
        self.function = function
        self.operands = tuple(expression(each) for each in operands)
        self.dtype = dtype

    def text(self, names: Names) -> str:
        return (
            f"{self.function}({', '.join(each.within(_TERNARY, names) for each in self.operands)})"
        )


class Read(Expression):
    """An element of a tensor."""

    def __init__(self, tensor: Tensor, indices: Sequence[Any]) -> None:
        if len(indices) != len(tensor.shape):
            raise InvalidArgumentError(
                f"{tensor.name} is read with {len(indices)} indices, expected {len(tensor.shape)}: "
                f"its shape is {list(tensor.shape)}"
            )
        self.tensor = tensor
        self.operands = tuple(expression(each) for each in indices)
        self.dtype = tensor.dtype

    def text(self, names: Names) -> str:
        indices = ", ".join(each.within(_TERNARY, names) for each in self.operands)
        return f"{names.tensors[self.tensor]}[{indices}]"


class Combiner:
    """How two values become one, each of several parts, and from what a reduction starts."""

    def __init__(
        self, name: str, dtypes: Sequence[str], combine: Callable[..., Any], identity: Any
    ):
        self.name = name
        self.dtypes = tuple(dtypes)
        self.left = tuple(_Part(f"a{index}", dtype) for index, dtype in enumerate(dtypes))
        self.right = tuple(_Part(f"b{index}", dtype) for index, dtype in enumerate(dtypes))
        is_one = len(dtypes) == 1
        made = combine(self.left[0], self.right[0]) if is_one else combine(self.left, self.right)
        self.values = [expression(each) for each in ((made,) if is_one else made)]
        self.start = [expression(each) for each in ((identity,) if is_one else identity)]

    def declaration(self, names: Names) -> str:
        """The `combine` statement."""

        def joined(values: Sequence[Expression]) -> str:
            texts = [each.within(_TERNARY, names) for each in values]
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

        left = ", ".join(f"{part.name}: {part.dtype}" for part in self.left)
        right = ", ".join(part.name for part in self.right)
        name = names.combiners[self]
        return f"combine {name}({left}; {right}) from {joined(self.start)} = {joined(self.values)}"


class _Part(Expression):
    def __init__(self, name: str, dtype: str) -> None:
        self.name = name
        self.dtype = dtype

    def text(self, names: Names) -> str:
        return self.name


class Reduction(Expression):
    """sum(k: 64) and its like, of one value or, with a combiner, of several."""

    level = _REDUCTION

    def __init__(
        self, reducer: str | Combiner, operands: Sequence[Expression], axes: Sequence[Axis]
    ) -> None:
        self.reducer = reducer
        self.operands = tuple(operands)
        self.axes = tuple(axes)
        self.dtype = operands[0].dtype

    def head(self, names: Names) -> str:
        """ "sum(k: 64)"."""
        name = self.reducer if isinstance(self.reducer, str) else names.combiners[self.reducer]
        return f"{name}({', '.join(axis.declared(names) for axis in self.axes)})"

    def text(self, names: Names) -> str:
        head = self.head(names)
        values = [each.within(_TERNARY, names) for each in self.operands]
        return f"{head} {values[0] if len(values) == 1 else '(' + ', '.join(values) + ')'}"


class Part(Expression):
    """One of the values of a reduction of several, which stand together as an operator's value."""

    def __init__(self, whole: Reduction, index: int) -> None:
        self.whole = whole
        self.index = index
        reducer = whole.reducer
        self.dtype = reducer.dtypes[index] if isinstance(reducer, Combiner) else None
        self.operands = (whole,)

    def text(self, names: Names) -> str:
        raise InvalidArgumentError(
            "a reduction of several values is the whole value of te.compute: return all its parts"
        )


class Tensor:
    """An input, or what te.compute computes. A[i, j] is an element of it."""

    def __init__(
        self, name: str, shape: Sequence[int], dtype: str, op: Any, index: int = 0
    ) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        # The placeholder or compute that it belongs to, and its number among that one's outputs.
        self.op = op
        self.value_index = index

    def __repr__(self) -> str:
        return f"<tensor {self.name}: {self.dtype}{list(self.shape)}>"

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Expression:
        return Read(self, indices if isinstance(indices, tuple) else (indices,))

    def __call__(self, *indices: Any) -> Expression:
        return Read(self, indices)

    def __add__(self, other: Any) -> Tensor:
        return _topi().add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _topi().add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _topi().subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _topi().subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _topi().multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _topi().multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _topi().divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _topi().divide(other, self)

    def __iter__(self) -> Any:
        raise InvalidArgumentError(f"tensor {self.name} cannot be listed: it has no values yet")


def _topi() -> Any:
    """The operators of tensors, which are made of expressions."""
    from kiln import topi

    return topi
