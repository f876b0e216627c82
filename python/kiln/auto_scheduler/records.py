"""Logs of measurements in TVM's form."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kiln.auto_scheduler.measuring import (
    MeasureInput,
    MeasureResult,
    PythonBasedMeasureCallback,
    check_line,
    input_of,
    input_row,
)
from kiln.auto_scheduler.target_kind import kind_of
from kiln.errors import InvalidArgumentError
from kiln.farm.engine import engine

_VERSION = "v0.6"


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """A line of a log, without its end."""
    costs = [res.costs, res.error_no, res.all_cost, int(res.timestamp)]
    return json.dumps({"i": input_row(inp), "r": costs, "v": _VERSION})


def load_record_from_string(record: str) -> tuple[MeasureInput, MeasureResult]:
    """The pair of a line of a log. InvalidArgumentError: it is none."""
    try:
        found = json.loads(record)
        costs, error, all_cost, timestamp = found["r"]
        costs = [float(each) for each in costs]
        result = MeasureResult(costs, int(error), "", float(all_cost), float(timestamp))
        given = input_of(found["i"])
        check_line(given.task.target, costs, result.error_no)
        return given, result
    except (ValueError, TypeError, LookupError) as error:
        raise InvalidArgumentError(f"no line of a log of auto_scheduler: {error!r}") from error


class RecordToFile(PythonBasedMeasureCallback):
    """Appends what is measured to a log, each trial as soon as it is measured."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        """Makes the folder of the file if it is not there."""
        self.filename = os.fspath(filename)
        os.makedirs(os.path.dirname(os.path.abspath(self.filename)), exist_ok=True)

    def record(self, inp: MeasureInput, res: MeasureResult) -> None:
        """Appends a line."""
        save_records(self.filename, [inp], [res])

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        """Appends lines."""
        save_records(self.filename, inputs, results)


def save_records(
    filename: str | os.PathLike[str],
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
) -> None:
    """Appends pairs to a log."""
    with open(filename, "a", encoding="utf-8") as file:
        file.writelines(dump_record_to_string(*pair) + "\n" for pair in zip(inputs, results))


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
            return load_record_from_string(line)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{self.filename}:{number}: {error}") from error

    def check_workload_key(self, inputs: Sequence[MeasureInput]) -> None:
        """InvalidArgumentError: the log has no line of a workload of the inputs."""
        known = {given.task.workload_key for given, _ in self}
        for each in inputs:
            if each.task.workload_key not in known:
                raise InvalidArgumentError(
                    f"{self.filename} has no line of workload {each.task.workload_key}"
                )

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


def distill_record_file(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> None:
    """Writes the best record of each workload and target."""
    out = os.fspath(out_file)
    best: dict[tuple[str, str], tuple[float, MeasureInput, MeasureResult]] = {}
    for given, result in load_records(in_file):
        if result.error_no != 0:
            continue
        key = (given.task.workload_key, given.task.target)
        cost = result.mean_s
        if key not in best or cost < best[key][0]:
            best[key] = (cost, given, result)
    with open(out, "w", encoding="utf-8") as file:
        for _, given, result in best.values():
            file.write(dump_record_to_string(given, result) + "\n")


def load_best_record(
    filename: str | os.PathLike[str],
    workload_key: str | None = None,
    target: Any = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest pair of a key and a kind of target; (None, None) if there is none.

    With `include_compatible`, pairs of other extents count as well, the slower the farther off.
    """
    kind = kind_of(target) if target else None
    return best_of(load_records(filename), workload_key, kind, include_compatible)


def best_of(
    pairs: Iterable[tuple[MeasureInput, MeasureResult]],
    workload_key: str | None,
    kind: str | None,
    include_compatible: bool,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """As load_best_record, of pairs. `kind` is "llvm" or "cuda", None any of them."""
    best: tuple[float, MeasureInput | None, MeasureResult | None] = (math.inf, None, None)
    distances: dict[str, float | None] = {}
    for given, result in pairs:
        if result.error_no != 0 or (kind and given.task.target.split()[0] != kind):
            continue
        key = given.task.workload_key
        distance: float | None = 1.0
        if workload_key is not None and key != workload_key:
            if not include_compatible:
                continue
            if key not in distances:
                distances[key] = engine().ask_keys(workload_key, key)
            distance = distances[key]
        if distance is None:
            continue
        cost = result.mean_s * distance
        if cost < best[0]:
            best = (cost, given, result)
    return best[1], best[2]
