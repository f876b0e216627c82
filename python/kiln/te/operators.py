"""Operators, the tensors that they make, and the text of several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.te.expression import (
    Axis,
    Combiner,
    Expression,
    Names,
    Part,
    Read,
    Reduction,
    Tensor,
    quoted,
)

# Attributes of the text form by TVM's names.
_AXES = {
    "auto_scheduler_simplify_const_tensor_indices": "simplify_const_tensor_indices",
    "auto_scheduler_always_unroll_inner": "always_unroll_inner",
    "auto_scheduler_no_split_at_inner": "no_split_at_inner",
}


class Placeholder:
    """An input."""

    def __init__(self, name: str, shape: Sequence[int], dtype: str) -> None:
        self.name = name
        self.output = Tensor(name, shape, dtype, self)

    def text(self, names: Names) -> str:
        """The statement."""
        extents = ", ".join(str(each) for each in self.output.shape)
        return f"input {names.tensors[self.output]}: {self.output.dtype}[{extents}]"


class Compute:
    """An operator: values for each point of its axes, and the tensors that they fill."""

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        axes: Sequence[Axis],
        values: Sequence[Expression],
        attributes: dict[str, Any],
    ) -> None:
        self.name = name
        self.axes = axes
        self.values = values
        self.attributes = attributes
        self.outputs = [
            Tensor(
                name if len(values) == 1 else f"{name}.v{index}", shape, _type(value), self, index
            )
            for index, value in enumerate(values)
        ]

    @property
    def axis(self) -> list[Axis]:
        """The axes of the results."""
        return list(self.axes)

    @property
    def reduce_axis(self) -> list[Axis]:
        """The axes that it reduces over, each once."""
        reductions = (each for each in _walk(self.values) if isinstance(each, Reduction))
        return list(dict.fromkeys(axis for each in reductions for axis in each.axes))

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that it reads, each once."""
        return list(dict.fromkeys(self.reads()))

    def output(self, index: int) -> Tensor:
        """One of its tensors."""
        return self.outputs[index]

    def reads(self) -> Iterator[Tensor]:
        """The tensors that it reads, in the order of the text; some several times."""
        for expression in _walk(self.values):
            if isinstance(expression, Read):
                yield expression.tensor

    def combiners(self) -> Iterator[Combiner]:
        """The combiners of its reductions."""
        for expression in _walk(self.values):
            if isinstance(expression, Reduction) and isinstance(expression.reducer, Combiner):
                yield expression.reducer

    def text(self, names: Names, own_name: str) -> str:
        """The statement, below its attributes."""
        scope = Names(names.tensors, names.combiners)
        axes = ", ".join(axis.declared(scope) for axis in self.axes)
        body = self._body(scope)
        return "".join(f"{line}\n" for line in self._hints(scope)) + f"{own_name}[{axes}] = {body}"

    def _body(self, names: Names) -> str:
        first = self.values[0]
        if isinstance(first, Part):
            whole = first.whole
            parts = [
                each.index if isinstance(each, Part) and each.whole is whole else -1
                for each in self.values
            ]
            if parts != list(range(len(whole.operands))):
                raise InvalidArgumentError(
                    f"{self.name}: a reduction of several values is the whole value of te.compute, "
                    "expected all of its parts in their order"
                )
            return whole.text(names)
        if len(self.values) == 1:
            return first.text(names)
        return f"({', '.join(value.within(1, names) for value in self.values)})"

    def _hints(self, names: Names) -> Iterator[str]:
        known = {axis.name: axis for axis in self.axes}
        for expression in _walk(self.values):
            if isinstance(expression, Reduction):
                known.update({axis.name: axis for axis in expression.axes})
        for key, value in self.attributes.items():
            if key == "layout_free_placeholders":
                listed = [names.tensors.get(each) for each in value]
                if None in listed:
                    raise InvalidArgumentError(f"{self.name}: {key} has a tensor that is not read")
                yield f"@layout_free_placeholders({', '.join(map(str, listed))})"
            elif key in _AXES:
                listed = [value] if isinstance(value, str) else list(value)
                for each in listed:
                    if each not in known:
                        raise InvalidArgumentError(
                            f"{self.name}: {key} names {each!r}, which is no axis of it"
                        )
                yield f"@{_AXES[key]}({', '.join(names.axis(known[each]) for each in listed)})"
            elif key == "const_matrix" and value:
                yield "@const_matrix"
            elif key == "FLOP":
                yield f"@flop({float(value)!r})"


def _type(value: Expression) -> str:
    return value.dtype or ("float32" if "." in value.text(Names({}, {})) else "int64")


def _walk(values: Sequence[Expression]) -> Iterator[Expression]:
    """All expressions of trees, each once, without Python's recursion: sums may be long."""
    seen: set[int] = set()
    pending = list(reversed(values))
    while pending:
        expression = pending.pop()
        if id(expression) in seen:
            continue
        seen.add(id(expression))
        yield expression
        pending.extend(reversed(expression.operands))


def _operators(tensors: Sequence[Tensor]) -> list[Any]:
    """The operators of the tensors and of all that they read, each after what it reads."""
    ordered: list[Any] = []
    done: set[Any] = set()
    pending = [(tensor.op, False) for tensor in reversed(tensors)]
    while pending:
        op, is_ready = pending.pop()
        if op in done:
            continue
        if is_ready or isinstance(op, Placeholder):
            done.add(op)
            ordered.append(op)
            continue
        pending.append((op, True))
        pending.extend((tensor.op, False) for tensor in reversed(list(op.reads())))
    return ordered


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def names_of(tensors: Sequence[Tensor]) -> dict[Any, str]:
    """The name that each operator of the tensors has in their text."""
    taken: set[str] = set()
    return {op: _unique(op.name, taken) for op in _operators(tensors)}


def text_of(tensors: Sequence[Tensor]) -> str:
    """The text form: inputs, combiners, operators."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise InvalidArgumentError(
                f"found a {type(tensor).__name__}, expected one of te.placeholder or te.compute"
            )
    operators = _operators(tensors)
    plain_names = names_of(tensors)
    taken = set(plain_names.values())
    tensor_names: dict[Tensor, str] = {}
    own_names = {op: quoted(name) for op, name in plain_names.items()}
    for op in operators:
        if isinstance(op, Placeholder):
            tensor_names[op.output] = own_names[op]
            continue
        for index, output in enumerate(op.outputs):
            is_one = len(op.outputs) == 1
            tensor_names[output] = own_names[op] if is_one else f"{own_names[op]}.v{index}"
    combiners: dict[Combiner, str] = {}
    computes = [op for op in operators if isinstance(op, Compute)]
    for op in computes:
        for combiner in op.combiners():
            if combiner not in combiners:
                combiners[combiner] = quoted(_unique(combiner.name, taken))
    names = Names(tensor_names, combiners)
    lines = [op.text(names) for op in operators if isinstance(op, Placeholder)]
    try:
        lines += [combiner.declaration(names) for combiner in combiners]
        lines += [op.text(names, own_names[op]) for op in computes]
    except RecursionError as error:
        raise InvalidArgumentError(
            "an expression is too deep, expected at most some 300 in each other"
        ) from error
    return "\n".join(lines) + "\n"
