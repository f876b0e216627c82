"""Which operators of a graph become networks of Kiln's: as large parts as can be."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from kiln.torch.convert import operator_name, why_not
from kiln.torch.report import Left
from kiln.torch.rules.products import PRODUCTS


@dataclass(frozen=True)
class Part:
    """Some operators of a graph, as a graph of their own."""

    # In the order of execution, in the graph that they are of.
    nodes: tuple[fx.Node, ...]
    # Parameters and other values that they read, and values that others read of them. The
    # placeholders of `module` are the parameters, then the inputs.
    parameters: tuple[fx.Node, ...]
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    module: fx.GraphModule

    def flops(self) -> float:
        """The work of the products, for shares of a budget."""
        return float(sum(PRODUCTS[node.target](node) for node in self.nodes if _is_product(node)))


def _is_product(node: fx.Node) -> bool:
    return node.target in PRODUCTS


class _Support(OperatorSupportBase):
    def __init__(self, refused: dict[fx.Node, str]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Any, node: fx.Node) -> bool:
        del submodules
        return node.op == "call_function" and node not in self._refused


def parts_of(module: fx.GraphModule, frozen: Set[fx.Node]) -> tuple[list[Part], list[Left]]:
    """The parts that are worth programs of Kiln's, and what is left out, with the reasons.

    `frozen` are the placeholders that are parameters.

    A part without a product of matrices or a convolution is left out: torch's own compiler fuses
    elementwise functions as well. So is one that reads parameters alone.
    """
    refused = why_not(module.graph)
    found = CapabilityBasedPartitioner(
        module, _Support(refused), allows_single_node_partition=True
    ).propose_partitions()
    order = {node: index for index, node in enumerate(module.graph.nodes)}
    parts, small = [], []
    for partition in found:
        nodes = sorted(partition.nodes, key=order.__getitem__)
        part = part_of(module, nodes, frozen)
        if part.inputs and any(map(_is_product, nodes)):
            parts.append(part)
        else:
            small += nodes
    parts.sort(key=lambda part: order[part.nodes[0]])
    return parts, _left(module, refused, small)


def _left(module: fx.GraphModule, refused: dict[fx.Node, str], small: list[fx.Node]) -> list[Left]:
    counted = Counter(
        (operator_name(node), why)
        for node, why in refused.items()
        if "getitem" not in str(node.target)
    )
    left = [Left(name, count, why) for (name, why), count in counted.items()]
    names = Counter(operator_name(node) for node in small if "getitem" not in str(node.target))
    why = "no product of matrices and no convolution is beside it that Kiln could compute with it"
    left += [Left(name, count, why) for name, count in names.items()]
    return left


def part_of(module: fx.GraphModule, nodes: Sequence[fx.Node], frozen: Set[fx.Node]) -> Part:
    """These nodes, which no path leaves and enters again, as a graph of their own."""
    chosen = set(nodes)
    read = dict.fromkeys(
        each for node in nodes for each in node.all_input_nodes if each not in chosen
    )
    parameters = [each for each in read if each in frozen or each.op == "get_attr"]
    inputs = [each for each in read if each not in parameters]
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for each in parameters + inputs:
        copies[each] = graph.placeholder(each.name)
        copies[each].meta = copy.copy(each.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    # Results of an operator that has several leave one by one.
    outputs = [
        node
        for node in nodes
        if any(user not in chosen for user in node.users)
        and isinstance(node.meta.get("val"), torch.Tensor)
    ]
    graph.output(tuple(copies[node] for node in outputs))
    made = fx.GraphModule(module, graph)
    return Part(tuple(nodes), tuple(parameters), tuple(inputs), tuple(outputs), made)


def with_parts_as_calls(
    module: fx.GraphModule,
    parts: Sequence[Part],
    call: Callable[[int], tuple[Any, tuple[Any, ...]]],
) -> fx.GraphModule:
    """The graph with each part as one call of a function that returns a list.

    `call(index)` is the function, and the arguments before the list of the part's inputs.
    """
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    of_part = {node: index for index, part in enumerate(parts) for node in part.nodes}
    waiting = list(module.graph.nodes)
    while waiting:
        later = []
        for node in waiting:
            index = of_part.get(node)
            if node in copies:
                continue
            needed = node.all_input_nodes if index is None else parts[index].inputs
            if any(each not in copies for each in needed):
                later.append(node)
            elif index is None:
                copies[node] = graph.node_copy(node, copies.__getitem__)
            else:
                _call(graph, parts[index], copies, call(index))
        assert len(later) < len(waiting), "parts depend on each other"
        waiting = later
    return fx.GraphModule(module, graph)


def _call(
    graph: fx.Graph, part: Part, copies: dict[fx.Node, fx.Node], call: tuple[Any, tuple[Any, ...]]
) -> None:
    function, before = call
    results = graph.call_function(function, (*before, [copies[each] for each in part.inputs]))
    results.meta["val"] = [each.meta["val"] for each in part.outputs]
    for index, node in enumerate(part.outputs):
        copies[node] = graph.call_function(operator.getitem, (results, index))
        copies[node].meta = copy.copy(node.meta)
    # The other nodes of the part are done with, and nobody reads them.
    for node in part.nodes:
        copies.setdefault(node, results)
