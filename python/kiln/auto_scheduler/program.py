"""A compiled computation, called and timed as TVM's modules are."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.network import Network


@dataclass(frozen=True)
class BenchmarkResult:
    """Timings of a program, in seconds."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the readings."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """Median of the readings."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The least reading."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The largest reading."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Standard deviation of the readings."""
        return statistics.pstdev(self.results)


class Program:
    """A callable. fn(a, b) returns c; fn(a, b, c) writes into c, as TVM's functions do."""

    entry_name = "main"

    def __init__(self, network: Network, inputs: Sequence[str]) -> None:
        """`inputs` are names in the order in which they are given."""
        self.network = network
        self._inputs = list(inputs)

    def __repr__(self) -> str:
        return repr(self.network)

    def __call__(self, *arrays: Any) -> Any:
        """Outputs for these inputs; outputs that stand behind the inputs are written to."""
        inputs, outputs = len(self._inputs), len(self.network.outputs)
        if len(arrays) not in (inputs, inputs + outputs):
            raise InvalidArgumentError(
                f"{len(arrays)} arrays are given, expected {inputs} inputs "
                f"({', '.join(self._inputs)}), or {inputs + outputs} with the outputs"
            )
        ordered = self._in_order(arrays[:inputs])
        return self.network(*ordered, out=arrays[inputs:] or None)

    def _in_order(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays as the network takes them."""
        given = dict(zip(self._inputs, arrays))
        return [given[tensor.name] for tensor in self.network.inputs]

    def time_evaluator(
        self,
        func_name: str = "main",
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """A function of the arrays of a call that times `repeat` readings of `number` runs each.

        A reading has more runs where it would be shorter than `min_repeat_ms`. The name and the
        device do nothing: a program has one of each.
        """
        del func_name, dev

        def evaluate(*arrays: Any) -> BenchmarkResult:
            inputs = self._in_order(arrays[: len(self._inputs)])
            times = self.network.bench(
                *inputs, repeat=repeat, number=number, min_repeat_s=min_repeat_ms / 1000
            )
            return BenchmarkResult(tuple(times))

        return evaluate
