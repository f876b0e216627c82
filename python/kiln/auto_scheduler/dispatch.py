"""Networks compiled with the best programs of a log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from kiln.farm import program
from kiln.auto_scheduler import place
from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult
from kiln.auto_scheduler.records import load_records, save_records
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import text_file
from kiln.farm.job import compiled
from kiln.network import Network

_contexts: list[ApplyHistoryBest] = []


class ApplyHistoryBest:
    """While the block runs, build() takes its programs from these records alone.

    Blocks may stand in each other; the innermost counts.
    """

    def __init__(
        self,
        records: str | os.PathLike[str] | Iterable[tuple[MeasureInput, MeasureResult]],
        n_lines: int | None = None,
        include_compatible: bool = False,
    ) -> None:
        """Of a log or pairs, the first `n_lines`.

        With `include_compatible`, a task without a program takes one of other extents, or one that
        is chosen without measuring.
        """
        is_log = isinstance(records, (str, os.PathLike))
        pairs = load_records(records) if is_log else iter(records)  # type: ignore[arg-type]
        self.pairs = [pair for _, pair in zip(range(n_lines or 2**62), pairs)]
        self.include_compatible = include_compatible

    def __enter__(self) -> ApplyHistoryBest:
        _contexts.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _contexts.remove(self)

    def update(self, inp: MeasureInput, res: MeasureResult) -> None:
        """Adds a record."""
        self.pairs.append((inp, res))

    def query(self, target: Any, workload_key: str) -> list[Any] | None:
        """The steps of the fastest record of a key and a kind of target; None if there is none."""
        kind = str(target).split()[0]
        found = [
            (sum(result.costs) / len(result.costs), given.steps)
            for given, result in self.pairs
            if result.error_no == 0
            and given.workload_key == workload_key
            and given.target.split()[0] == kind
        ]
        return min(found, key=lambda each: each[0])[1] if found else None

    def build(self, network: str, target: str, flags: list[str]) -> Network:
        """The network with these records."""
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kiln-history."))
            environment = {"KILN_DB": os.path.join(folder, "history.db")}
            log = os.path.join(folder, "history.json")
            save_records(log, [given for given, _ in self.pairs], [one for _, one in self.pairs])
            words = ["records", "import", log]
            for key, text in _texts(network, target, flags).items():
                if any(given.workload_key == key for given, _ in self.pairs):
                    words.append(f"--bind={key}={stack.enter_context(text_file(text, 'task'))}")
            program.run(words, environment)
            strict = [] if self.include_compatible else ["--strict"]
            return compiled([network, f"--target={target}", *strict, *flags], environment, None)


def _texts(network: str, target: str, flags: list[str]) -> dict[str, str]:
    """The computations of a network by their keys."""
    words = ["tasks", network, "--dag", "--include-simple-tasks", f"--target={target}", *flags]
    return {
        variant["workload_key"]: variant["dag"]
        for task in program.run_json(words)
        for variant in task["variants"]
    }


def build(network: str, target: Any, **named: Any) -> Network:
    """A network ("network:NAME" or an ONNX file), compiled: what relay.build is to TVM.

    With the records of the ApplyHistoryBest around it, else those of the farm. `named` are flags
    that `kiln tasks` and `kiln compile` both have: batch=8. KilnError: a task has no program.
    """
    if not isinstance(network, str):
        raise InvalidArgumentError(
            f"network is a {type(network).__name__}, expected a name or file"
        )
    flags = [word for key, value in named.items() for word in program.flag(key, value)]
    if _contexts:
        return _contexts[-1].build(network, str(target), flags)
    return place.client().compile(network, target=str(target), **named)
