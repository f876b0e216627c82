"""Products of rows as one operator, whatever axes stand before the rows.

The tracer writes a linear layer of [batch, length, width] as a view with two axes, a product, and a
view back. The view behind the product keeps what follows it, an activation or a sum, out of
the product's kernel; so the views move before the product, where most of them vanish.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

_ATEN = torch.ops.aten
_VIEWS = (_ATEN.view.default, _ATEN._unsafe_view.default, _ATEN.reshape.default)


def with_whole_layers(module: fx.GraphModule) -> fx.GraphModule:
    """The graph, changed in place: view(product(view(x))) becomes a product of x."""
    for node in list(module.graph.nodes):
        product = node.args[0] if node.target in _VIEWS else None
        if isinstance(product, fx.Node) and len(product.users) == 1 and _keeps_rows(node, product):
            _replace(module.graph, node, product)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def _keeps_rows(view: fx.Node, product: fx.Node) -> bool:
    """True if the view only splits the first axis of a product of two matrices."""
    if product.target not in (_ATEN.mm.default, _ATEN.addmm.default, _ATEN.linear.default):
        return False
    value, shape = product.meta["val"], view.meta["val"].shape
    if value.ndim != 2 or len(shape) < 2 or shape[-1] != value.shape[1]:
        return False
    if product.target is _ATEN.addmm.default:
        is_bias = product.args[0].meta["val"].ndim == 1
        return is_bias and all(each == 1 for each in product.kwargs.values())
    return True


def _replace(graph: fx.Graph, view: fx.Node, product: fx.Node) -> None:
    with graph.inserting_before(view):
        made = _product(graph, product, view.meta["val"].shape[:-1])
    made.meta = dict(view.meta)
    view.replace_all_uses_with(made)
    graph.erase_node(view)


def _product(graph: fx.Graph, product: fx.Node, rows: Any) -> fx.Node:
    bias = None
    if product.target is _ATEN.addmm.default:
        bias, x, right = product.args[:3]
    else:
        x, right = product.args[:2]
        bias = product.args[2] if len(product.args) > 2 else None
    x = _with_rows(graph, x, [*rows, x.meta["val"].shape[-1]])
    if product.target is not _ATEN.linear.default:
        weight = _untransposed(right)
        if weight is None:
            made = graph.call_function(_ATEN.matmul.default, (x, right))
            return made if bias is None else _added(graph, made, bias, rows, right)
        right = weight
    return graph.call_function(_ATEN.linear.default, (x, right, bias))


def _with_rows(graph: fx.Graph, x: fx.Node, shape: list[int]) -> fx.Node:
    """The left factor with these extents; without a view if it is one of such a value."""
    if x.target in _VIEWS and list(x.args[0].meta["val"].shape) == shape:
        return x.args[0]
    made = graph.call_function(_ATEN.reshape.default, (x, shape))
    made.meta["val"] = x.meta["val"].reshape(shape)
    return made


def _untransposed(right: fx.Node) -> fx.Node | None:
    """The matrix of which the right factor is the transpose."""
    is_transpose = (
        right.target is _ATEN.t.default
        or right.target is _ATEN.permute.default
        and [axis % 2 for axis in right.args[1]] == [1, 0]
        or right.target is _ATEN.transpose.int
        and sorted(axis % 2 for axis in right.args[1:]) == [0, 1]
    )
    return right.args[0] if is_transpose else None


def _added(graph: fx.Graph, made: fx.Node, bias: fx.Node, rows: Any, right: fx.Node) -> fx.Node:
    value = bias.meta["val"].new_empty([*rows, right.meta["val"].shape[1]])
    made.meta["val"] = value
    return graph.call_function(_ATEN.add.Tensor, (made, bias))
