"""Logs of measurements in TVM's form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult, PythonBasedMeasureCallback
from kiln.errors import InvalidArgumentError

_VERSION = "v0.6"


def line_of(given: MeasureInput, result: MeasureResult) -> str:
    """A line of a log, without its end."""
    task = [given.workload_key, given.target, given.hardware_params, "", 0, []]
    costs = [result.costs, result.error_no, result.all_cost, int(result.timestamp)]
    return json.dumps({"i": [task, [[], given.steps]], "r": costs, "v": _VERSION})


class RecordToFile(PythonBasedMeasureCallback):
    """Appends what is measured to a log, a round at a time."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        """Makes the folder of the file if it is not there."""
        self.filename = os.fspath(filename)
        os.makedirs(os.path.dirname(os.path.abspath(self.filename)), exist_ok=True)

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        save_records(self.filename, inputs, results)


def save_records(
    filename: str | os.PathLike[str],
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
) -> None:
    """Appends pairs to a log."""
    with open(filename, "a", encoding="utf-8") as file:
        file.writelines(line_of(*pair) + "\n" for pair in zip(inputs, results))


class RecordReader:
    """Reads a log of auto_scheduler."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.filename = os.fspath(filename)

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        """Pairs, line by line. InvalidArgumentError: "x.json:12: ..."."""
        try:
            file = open(self.filename, encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"cannot read {self.filename}: {error}") from error
        with file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith(("#", " ")):
                    yield self._pair(number, line)

    def _pair(self, number: int, line: str) -> tuple[MeasureInput, MeasureResult]:
        try:
            record = json.loads(line)
            task, (_, steps) = record["i"]
            costs, error, all_cost, timestamp = record["r"]
            hardware = [int(each) for each in task[2]] if len(task) > 2 else []
            given = MeasureInput(None, str(task[0]), str(task[1]), list(steps), hardware)
            costs = [float(each) for each in costs]
            result = MeasureResult(costs, int(error), "", float(all_cost), float(timestamp))
        except (ValueError, TypeError, LookupError) as error:
            raise InvalidArgumentError(
                f"{self.filename}:{number}: no line of a log of auto_scheduler: {error!r}"
            ) from error
        return given, result

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Inputs and results of so many lines, after those that are skipped."""
        end = None if max_lines is None or max_lines < 0 else skip_lines + max_lines
        pairs = list(self)[skip_lines:end]
        return [each for each, _ in pairs], [each for _, each in pairs]


def load_records(filename: str | os.PathLike[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Pairs of inputs and results."""
    return iter(RecordReader(filename))


def distill_record_file(
    in_file: str | os.PathLike[str], out_file: str | os.PathLike[str] | None = None
) -> None:
    """Writes the best record of each workload and target; `out_file` is else in_file.best.json."""
    out = os.fspath(out_file or f"{os.fspath(in_file)}.best.json")
    best: dict[tuple[str, str], tuple[float, MeasureInput, MeasureResult]] = {}
    for given, result in load_records(in_file):
        if result.error_no != 0:
            continue
        key, cost = (given.workload_key, given.target), sum(result.costs) / len(result.costs)
        if key not in best or cost < best[key][0]:
            best[key] = (cost, given, result)
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(line_of(given, result) + "\n" for _, given, result in best.values())


def load_best_record(
    filename: str | os.PathLike[str],
    workload_key: str | None = None,
    target: str | None = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest pair of a key and a kind of target; (None, None) if there is none."""
    if include_compatible:
        raise InvalidArgumentError(
            "load_best_record: include_compatible is True, expected False: apply_best takes it"
        )
    kind = str(target).split()[0] if target else None
    found = [
        (given, result)
        for given, result in load_records(filename)
        if result.error_no == 0
        and (workload_key is None or given.workload_key == workload_key)
        and (kind is None or given.target.split()[0] == kind)
    ]
    none: tuple[MeasureInput | None, MeasureResult | None] = (None, None)
    return min(found, key=lambda pair: sum(pair[1].costs) / len(pair[1].costs), default=none)
