"""A part of a graph as an operator, which Inductor calls among its own kernels."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kiln.torch.convert import Port

_numbers = itertools.count()
# The parts that are called, by their keys. Whoever calls a part holds it.
_parts: weakref.WeakValueDictionary[str, PartOperator] = weakref.WeakValueDictionary()


class PartOperator:
    """A compiled part with a key under which graphs call it."""

    def __init__(self, program: Callable[..., Any], outputs: Sequence[Port], digest: str) -> None:
        """`digest` names what is computed: Inductor's cache keeps graphs by their texts."""
        self._program = program
        self._outputs = outputs
        self.key = f"{digest}.{next(_numbers)}"
        _parts[self.key] = self

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs."""
        return self._program(tensors)

    def outputs_like(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Outputs without elements, for tracers."""
        device = tensors[0].device
        return [
            torch.empty(port.in_memory, dtype=port.dtype, device=device).permute(port.inverse)
            for port in self._outputs
        ]


@torch.library.custom_op(
    "kiln::part", mutates_args=(), schema="(str key, Tensor[] tensors) -> Tensor[]"
)
def call_part(key: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Calls a part by its key."""
    return _parts[key](tensors)


@call_part.register_fake
def _fake(key: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return _parts[key].outputs_like(tensors)
