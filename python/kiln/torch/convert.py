"""A graph of ATen operators as a model of ONNX, which Kiln reads.

Kiln's reader of ONNX has rules for all operators of that standard, so a graph needs no third form.
The models hold products, softmax and normalisations as one operator each, as the tracer leaves
them: Kiln's passes look for these.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from kiln.torch import rules  # noqa: F401  (fills RULES)
from kiln.torch.context import RULES, Context, Unsupported, dtype_name, shape_of, value_of
from kiln.onnx.model_file import OnnxModel


def why_not(graph: fx.Graph) -> dict[fx.Node, str]:
    """The operators that have no rule, or whose rule refuses them, each with the reason.

    Each rule is tried alone, on a model that is thrown away.
    """
    refused: dict[fx.Node, str] = {}
    for node in graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module"):
            continue
        try:
            _convert(Context(), node, refused)
        except Unsupported as error:
            refused[node] = str(error)
        except (IndexError, KeyError, RuntimeError, TypeError, ValueError, AttributeError) as error:
            # A release of torch may call an operator otherwise than the rule knows.
            refused[node] = f"its arguments are not those that its rule knows ({error})"
    return refused


def operator_name(node: fx.Node) -> str:
    """ "aten.convolution"."""
    name = str(node.target)
    return name.removesuffix(".default") if node.op == "call_function" else f"{node.op} {name}"


def _convert(context: Context, node: fx.Node, refused: Mapping[fx.Node, str]) -> None:
    context.node = node
    if node.target is operator.getitem:
        _pick(context, node, refused)
        return
    found = RULES.get(node.target)
    if found is None:
        raise Unsupported("Kiln's converter has no rule for it")
    devices = {
        each.meta["val"].device
        for each in [node, *node.all_input_nodes]
        if isinstance(each.meta.get("val"), torch.Tensor)
    }
    if len(devices) > 1:
        raise Unsupported("its tensors are on several devices")
    context.result()
    context.names[node] = found(context, node)


def _pick(context: Context, node: fx.Node, refused: Mapping[fx.Node, str]) -> None:
    """One of several results of an operator."""
    source, index = node.args
    if not isinstance(source, fx.Node) or source in refused:
        raise Unsupported("the operator that makes it is left out")
    context.result()
    if source not in context.names:
        _convert(context, source, refused)
        context.node = node
    name = context.names[source][index]
    if name is None:
        raise Unsupported(f"result {index} of {operator_name(source)} is for training")
    context.names[node] = name


def memory_order(value: torch.Tensor) -> list[int] | None:
    """The axes from the slowest to the fastest in memory; None if the elements have gaps."""
    order = sorted(range(value.ndim), key=lambda axis: (-value.stride(axis), axis))
    # An axis of extent 1 may have any stride, and stays where it is among the others.
    if value.is_contiguous():
        return list(range(value.ndim))
    return order if value.permute(order).is_contiguous() else None


@dataclass(frozen=True)
class Port:
    """An input or output of a model, and how torch's tensor lies in memory."""

    name: str
    dtype: torch.dtype
    # Extents as torch has them, and the order of the axes in the model: the memory's.
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def in_memory(self) -> tuple[int, ...]:
        """Extents in the order of memory, which are those of the model."""
        return tuple(self.shape[axis] for axis in self.order)

    @property
    def is_plain(self) -> bool:
        """True if memory has the axes in their order."""
        return list(self.order) == list(range(len(self.order)))

    @property
    def inverse(self) -> tuple[int, ...]:
        """The permutation from the order of memory to torch's."""
        return tuple(self.order.index(axis) for axis in range(len(self.order)))


@dataclass(frozen=True)
class Converted:
    """A model with what connects it to torch."""

    model: OnnxModel
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def convert(graph: fx.Graph, frozen: Mapping[fx.Node, torch.Tensor]) -> Converted:
    """The graph as a model. Unsupported: an operator has no rule.

    Placeholders in `frozen` become constants with these elements: Kiln then folds normalisations
    into weights, transforms weights for Winograd's method and packs them, once.
    """
    context = Context()
    inputs, outputs = [], []
    for node in graph.nodes:
        context.node = node
        if node.op == "placeholder" and node in frozen:
            context.names[node] = context.elements(frozen[node].detach().cpu())
        elif node.op == "placeholder":
            inputs.append(_input(context, node, len(inputs)))
        elif node.op == "output":
            for each in _flat(node.args[0]):
                outputs.append(_output(context, each, len(outputs)))
        else:
            _convert(context, node, {})
    return Converted(context.model, tuple(inputs), tuple(outputs))


def _flat(values: Any) -> Iterable[fx.Node]:
    return [values] if isinstance(values, fx.Node) else values


def _port(node: fx.Node, name: str) -> Port:
    value = value_of(node)
    order = memory_order(value)
    order = list(range(value.ndim)) if order is None else order
    return Port(name, value.dtype, shape_of(value), tuple(order))


def _input(context: Context, node: fx.Node, index: int) -> Port:
    port = _port(node, f"in{index}")
    context.model.input(port.name, dtype_name(port.dtype), port.in_memory)
    context.names[node] = port.name
    if not port.is_plain:
        context.names[node] = context.emit("Transpose", port.name, perm=list(port.inverse))
    return port


def _output(context: Context, node: fx.Node, index: int) -> Port:
    port = _port(node, f"out{index}")
    name = context.name(node)
    if port.is_plain:
        context.model.node("Identity", [name], [port.name], port.name)
    else:
        context.model.node("Transpose", [name], [port.name], port.name, perm=list(port.order))
    context.model.output(port.name, dtype_name(port.dtype), port.in_memory)
    return port
