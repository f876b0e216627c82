"""Programs that hold the elements of parameters, and follow their changes.

Kiln folds normalisations into weights, transforms weights for Winograd's method and packs them when
it compiles: a program has parameters as constants. So that a module answers with the parameters
that it has, each call looks whether they are the same tensors, in the same memory, with the same
version. After a change the next call compiles anew, with the records there are; nothing is tuned.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kiln.torch.report import say

# Sets of parameters whose programs are kept: those of layers that share a graph.
_MOST_SETS = 128

Compiled = Callable[[Sequence[Any]], Sequence[Any]]


def _version(tensor: torch.Tensor) -> int:
    """How often torch wrote to it. Inference tensors do not count."""
    return 0 if tensor.is_inference() else tensor._version  # pylint: disable=protected-access


def _state(tensors: Sequence[torch.Tensor]) -> tuple[list[int], list[int]]:
    """Addresses and versions."""
    try:
        versions = [each._version for each in tensors]  # pylint: disable=protected-access
    # One of them is an inference tensor.
    except RuntimeError:
        versions = [_version(each) for each in tensors]
    return [each.data_ptr() for each in tensors], versions


@dataclass
class _Entry:
    """A program with its parameters."""

    call: Compiled
    owners: list[weakref.ref[torch.Tensor]]
    state: tuple[list[int], list[int]]
    # Holds the memory, so that an address means the same elements while the program is kept.
    memory: list[torch.Tensor]

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """True if these are the tensors that it was made for, whatever their elements are now."""
        return all(owner() is each for owner, each in zip(self.owners, tensors))

    def is_dead(self) -> bool:
        """True if one of its tensors is gone."""
        return any(owner() is None for owner in self.owners)


class Followed:
    """A function of a graph's inputs that is compiled again when parameters changed.

    Threads may call it at once. One of them compiles, and those with other parameters than those of
    the last call wait for it.
    """

    def __init__(
        self, make: Callable[[Sequence[Any]], Compiled], places: Sequence[int], origin: str
    ) -> None:
        """`make` compiles for these inputs; `places` are those of the parameters among them."""
        self._make = make
        self._places = list(places)
        self._origin = origin
        # The newest last. The list is replaced under the lock, and read without it.
        self._entries: list[_Entry] = []
        self._lock = threading.Lock()

    def start(self, call: Compiled, values: Sequence[Any]) -> None:
        """Takes a function that was made for these inputs."""
        tensors = [values[place] for place in self._places]
        self._keep(call, tensors, _state(tensors))

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of the graph."""
        tensors = [inputs[place] for place in self._places]
        state = _state(tensors)
        newest = self._entries[-1]
        if newest.state == state:
            return newest.call(inputs)
        with self._lock:
            entry = self._entry(tensors, state, inputs)
        return entry.call(inputs)

    def _entry(self, tensors: Sequence[torch.Tensor], state: Any, inputs: Sequence[Any]) -> _Entry:
        """The program of other parameters than those of the last call."""
        for entry in self._entries:
            if entry.state == state:
                self._entries = [*(each for each in self._entries if each is not entry), entry]
                return entry
        say(f"{self._origin}: the parameters are others than before, and Kiln compiles again")
        call = self._make(inputs)
        self._entries = [
            each for each in self._entries if not each.is_of(tensors) and not each.is_dead()
        ]
        # The state before compiling: a thread may write to a parameter meanwhile.
        return self._keep(call, tensors, state)

    def _keep(self, call: Compiled, tensors: Sequence[torch.Tensor], state: Any) -> _Entry:
        owners = [weakref.ref(each) for each in tensors]
        entry = _Entry(call, owners, state, [each.detach() for each in tensors])
        self._entries = [*self._entries[1 - _MOST_SETS :], entry]
        return entry
