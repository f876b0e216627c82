"""The model that the rules of operators write to, and the table of the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from kiln.onnx.model_file import ELEMENT_TYPES, OnnxModel


class Unsupported(Exception):
    """A sentence that says why an operator does not become part of a network of Kiln's."""


def dtype_name(dtype: torch.dtype) -> str:
    """ "float32". Unsupported: Kiln has no such type."""
    name = str(dtype).removeprefix("torch.")
    if name not in ELEMENT_TYPES:
        raise Unsupported(f"Kiln has no {name}")
    return name


def value_of(node: fx.Node) -> torch.Tensor:
    """The fake tensor that the tracer left at the node. Unsupported: it is no tensor."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise Unsupported("its result is no tensor")
    return value


def shape_of(value: torch.Tensor) -> tuple[int, ...]:
    """The extents. Unsupported: one of them is not known, or is 0."""
    if not all(isinstance(extent, int) for extent in value.shape):
        raise Unsupported("a shape of it is dynamic")
    if 0 in value.shape:
        raise Unsupported("a tensor of it has no elements")
    return tuple(value.shape)


class Context:
    """The model so far, and the names of the values in it."""

    def __init__(self) -> None:
        self.model = OnnxModel()
        # Names of what nodes make: one, or a list with None for what is not computed.
        self.names: dict[fx.Node, Any] = {}
        # The node that is being converted.
        self.node: fx.Node
        self._constants: dict[Any, str] = {}
        self._count = 0

    # ---- arguments --------------------------------------------------------------------------

    def tensor(self, node: Any) -> torch.Tensor:
        """The fake tensor of an argument. Unsupported: it is none, or of no type of Kiln's."""
        if not isinstance(node, fx.Node):
            raise Unsupported(f"an argument of it is a {type(node).__name__}, not a tensor")
        value = value_of(node)
        dtype_name(value.dtype)
        shape_of(value)
        return value

    def shape(self, node: Any) -> tuple[int, ...]:
        """The extents of an argument."""
        return shape_of(self.tensor(node))

    def dtype(self, node: Any) -> torch.dtype:
        """The type of the elements of an argument."""
        return self.tensor(node).dtype

    def result(self) -> torch.Tensor:
        """The fake tensor of the node's result, the first one if it has several."""
        value = self.node.meta.get("val")
        if isinstance(value, (list, tuple)):
            value = value[0]
        if not isinstance(value, torch.Tensor):
            raise Unsupported("its result is no tensor")
        dtype_name(value.dtype)
        shape_of(value)
        return value

    def name(self, node: fx.Node) -> str:
        """The name of the value of an argument in the model."""
        self.tensor(node)
        return self.names.get(node, node.name)

    # ---- values -----------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name of a value that no other value has."""
        self._count += 1
        return f"{self.node.name}.{self._count}"

    def emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Adds an operator with one result, and returns the result's name."""
        return self.emit_several(op, inputs, 1, **attributes)[0]

    def emit_several(
        self, op: str, inputs: Sequence[str], count: int, **attributes: Any
    ) -> list[str]:
        """Adds an operator, and returns the names of its results."""
        outputs = [self.fresh() for _ in range(count)]
        self.model.node(op, inputs, outputs, self.node.name, **attributes)
        return outputs

    def elements(self, value: torch.Tensor) -> str:
        """A constant with the elements of a tensor, which is in the memory of the host."""
        name = self.fresh()
        data = value.detach().contiguous().reshape(-1)
        # numpy has neither bfloat16 nor floats of 8 bits.
        data = data.view(torch.uint8) if data.numel() else data
        self.model.constant(name, dtype_name(value.dtype), value.shape, data.numpy())
        return name

    def scalar(self, value: float | int | bool, dtype: torch.dtype) -> str:
        """A constant without axes."""
        key = (repr(value), dtype)
        if key not in self._constants:
            self._constants[key] = self.elements(torch.tensor(value, dtype=dtype))
        return self._constants[key]

    def integers(self, values: Sequence[int]) -> str:
        """A constant for axes, extents and the like."""
        key = tuple(values)
        if key not in self._constants:
            self._constants[key] = self.elements(torch.tensor(list(values), dtype=torch.int64))
        return self._constants[key]

    def cast(self, name: str, source: torch.dtype, to: torch.dtype) -> str:
        """The value with elements of another type."""
        if source == to:
            return name
        return self.emit("Cast", name, to=ELEMENT_TYPES[dtype_name(to)])

    def operand(self, argument: Any, dtype: torch.dtype) -> str:
        """A tensor or a number, with elements of a type."""
        if isinstance(argument, fx.Node):
            return self.cast(self.name(argument), self.dtype(argument), dtype)
        if not isinstance(argument, (bool, int, float)):
            raise Unsupported(f"an argument of it is {argument!r}, expected a tensor or a number")
        return self.scalar(argument, dtype)

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The value with other extents for the same elements."""
        return self.emit("Reshape", name, self.integers(shape))


# A rule converts an operator. It returns the name of its result, or of several, None for those that
# it does not compute, or raises Unsupported.
Rule = Callable[[Context, fx.Node], Any]
RULES: dict[Any, Rule] = {}


def operators(*names: str) -> list[Any]:
    """The operators of ATen with these names, "add.Tensor", that this release of torch has."""
    found = []
    for each in names:
        packet, _, overload = each.partition(".")
        found.append(getattr(getattr(torch.ops.aten, packet, None), overload or "default", None))
    return [each for each in found if each is not None]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Marks the rule of operators of ATen."""

    def add(function: Rule) -> Rule:
        RULES.update((each, function) for each in operators(*names))
        return function

    return add


def argument(node: fx.Node, index: int, name: str, default: Any = None) -> Any:
    """An argument of a call by its place or name."""
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, default)
