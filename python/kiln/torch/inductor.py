"""Torch by itself: Inductor where it runs, else eager."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import preserve_rng_state
from torch.utils._python_dispatch import _disable_current_modes


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """A block that computes with real tensors, whatever is being traced around it.

    Random numbers go on after it as before it.
    """
    with (
        torch._guards.tracing(None),
        _disable_current_modes(),
        preserve_rng_state(),
        torch.no_grad(),
    ):
        yield


def compiled(
    module: fx.GraphModule, values: Sequence[Any], mode: str | None = None
) -> tuple[Callable[[Sequence[Any]], Any] | None, str]:
    """The graph compiled by Inductor, called once; or None with the reason why it cannot be.

    The function takes a list and returns a list or a tuple.
    """
    from torch._inductor.compile_fx import compile_fx

    patches = torch._inductor.list_mode_options(mode, dynamic=False) if mode else {}
    try:
        with apart():
            made = compile_fx(
                fx.GraphModule(module, copy_of(module)), list(values), config_patches=patches
            )
            made(*values)
    # Without a compiler of C++, without Triton, or for an operator that it does not know, it raises
    # errors of many kinds.
    except Exception as error:  # pylint: disable=broad-exception-caught
        return None, reason(error)
    return lambda given: made(*given), ""


def copy_of(module: fx.GraphModule) -> fx.Graph:
    """Inductor may change the graph that it is given."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    result = graph.graph_copy(module.graph, copies)
    graph.output(result)
    return graph


def eager_instead(what: str, why: str) -> str:
    """A note for a report."""
    return f"Inductor does not run here, and eager computes {what}: {why}"


def reason(error: BaseException) -> str:
    """Kind and first line of an error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"[:200]
