"""Programs that hold the elements of parameters, and follow their changes.

Kiln folds normalisations into weights, transforms weights for Winograd's method and packs them when
it compiles: a program has parameters as constants. So that a module answers with the parameters
that it has, each call looks whether they are the same tensors, in the same memory, with the same
version. After a change the next call compiles anew, with the records there are; nothing is tuned.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch

from kiln.torch.report import say

# Sets of parameters whose programs are kept: layers with one graph and weights of their own.
_MOST_SETS = 128

Compiled = Callable[[Sequence[Any]], Sequence[Any]]


def _version(tensor: torch.Tensor) -> int:
    """How often torch wrote to it. Inference tensors do not count."""
    return 0 if tensor.is_inference() else tensor._version  # pylint: disable=protected-access


def _state(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    return [(each.data_ptr(), _version(each)) for each in tensors]


@dataclass
class _Entry:
    """A program with its parameters."""

    call: Compiled
    owners: list[weakref.ref[torch.Tensor]]
    state: list[tuple[int, int]]
    # Holds the memory, so that no other tensor gets its address while the program is kept.
    memory: list[torch.Tensor]

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """True if these are the tensors that the program has the elements of."""
        return all(map(is_, [owner() for owner in self.owners], tensors))


class Followed:
    """A function of a graph's inputs that is compiled again when parameters changed."""

    def __init__(
        self, make: Callable[[Sequence[Any]], Compiled], places: Sequence[int], origin: str
    ) -> None:
        """`make` compiles for these inputs; `places` are those of the parameters among them."""
        self._make = make
        self._places = list(places)
        self._origin = origin
        self._entries: dict[tuple[int, ...], _Entry] = {}
        self._current: _Entry | None = None

    def start(self, call: Compiled, values: Sequence[Any]) -> None:
        """Takes a function that was made for these inputs."""
        self._keep(call, [values[place] for place in self._places])

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of the graph."""
        tensors = [inputs[place] for place in self._places]
        entry = self._current
        if entry is None or not entry.is_of(tensors):
            entry = self._entries.get(tuple(map(id, tensors)))
        if entry is None or not entry.is_of(tensors) or entry.state != _state(tensors):
            say(f"{self._origin}: the parameters are others than before, and Kiln compiles again")
            entry = self._keep(self._make(inputs), tensors)
        self._current = entry
        return entry.call(inputs)

    def _keep(self, call: Compiled, tensors: Sequence[torch.Tensor]) -> _Entry:
        entry = _Entry(
            call,
            [weakref.ref(each) for each in tensors],
            _state(tensors),
            [each.detach() for each in tensors],
        )
        self._entries[tuple(map(id, tensors))] = entry
        while len(self._entries) > _MOST_SETS:
            del self._entries[next(iter(self._entries))]
        self._current = entry
        return entry
