"""A compiled computation, called and timed as TVM's modules are; and how steps become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kiln.auto_scheduler.log_database import bound, database_of, log_of
from kiln.auto_scheduler.loop_state import State, StateObject
from kiln.auto_scheduler.measuring import (
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RecordedTask,
)
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import Computation
from kiln.farm.job import compiled
from kiln.network import BenchmarkResult, Network

__all__ = ["BenchmarkResult", "Program", "compile_steps"]


class Program:
    """A callable. fn(a, b) returns c; fn(a, b, c) writes into c, as TVM's functions do."""

    entry_name = "main"

    def __init__(self, network: Network, inputs: Sequence[str]) -> None:
        """`inputs` are names in the order in which they are given."""
        self.network = network
        self._inputs = list(inputs)

    def __repr__(self) -> str:
        return repr(self.network)

    def _repr_html_(self) -> str:
        """The kernels, for notebooks."""
        return self.network._repr_html_()  # pylint: disable=protected-access

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
        """As Network.time_evaluator, of the arrays of a call; those of outputs are not looked at."""
        timed = self.network.time_evaluator(func_name, dev, number, repeat, min_repeat_ms)

        def evaluate(*arrays: Any) -> BenchmarkResult:
            return timed(*self._in_order(arrays[: len(self._inputs)]))

        return evaluate


def compile_steps(computation: Computation, steps: list[Any], target: str) -> Network:
    """A schedule, compiled alone. InvalidArgumentError: it does not fit the computation."""
    key = computation.workload_key
    given = MeasureInput(RecordedTask(key, target, [0] * 8), State(StateObject(None, steps), None))
    result = MeasureResult([1.0], MeasureErrorNo.NO_ERROR, "", 0.0, 0)
    texts = {key: computation.source}
    with (
        log_of([(given, result)]) as log,
        bound(texts, computation.name) as flags,
        database_of(log, flags) as environment,
    ):
        network = compiled(["1", f"--target={target}"], environment, None)
    if network.kernels[0].source == "untuned":
        raise InvalidArgumentError(f"the schedule does not fit {computation.name} for {target}")
    return network
