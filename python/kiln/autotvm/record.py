"""Logs of autotvm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, TextIO

from kiln.auto_scheduler.measuring import check_line
from kiln.autotvm.dispatcher import ApplyHistoryBest, apply_history_best, key_of
from kiln.autotvm.measure import MeasureInput, MeasureResult
from kiln.autotvm.space import ConfigEntity
from kiln.errors import InvalidArgumentError

__all__ = [
    "ApplyHistoryBest",
    "apply_history_best",
    "decode",
    "encode",
    "load_from_buffer",
    "load_from_file",
    "measure_str_key",
    "pick_best",
    "split_workload",
]

_VERSION = 0.2
_TVM_VERSION = "0.8.0"


class RecordedTask:
    """What a line of a log says of its task."""

    def __init__(self, name: str, args: list[Any]) -> None:
        self.name = name
        self.args = tuple(args)
        self.workload = (name, *args)


def _check_protocol(protocol: str) -> None:
    if protocol != "json":
        raise InvalidArgumentError(f"protocol is {protocol!r}, expected json")


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A line of a log, without its end."""
    _check_protocol(protocol)
    name, *args = inp.task.workload
    return json.dumps(
        {
            "input": [str(inp.target), name, args, {}],
            "config": inp.config.to_json_dict(),
            "result": [list(result.costs), int(result.error_no), result.all_cost, result.timestamp],
            "version": _VERSION,
            "tvm_version": _TVM_VERSION,
        }
    )


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """The pair of a line; None for a comment, and for a line of version 0.1.

    InvalidArgumentError: it is none.
    """
    _check_protocol(protocol)
    if not row.strip() or row.startswith("#"):
        return None
    try:
        found = json.loads(row)
        if found.get("v") == 0.1:
            return None
        target, name, args, _ = found["input"]
        config = ConfigEntity.from_json_dict(found["config"])
        costs, error, all_cost, timestamp = found["result"]
        given = MeasureInput(str(target), RecordedTask(str(name), list(args)), config)
        result = MeasureResult(
            tuple(map(float, costs)), int(error), float(all_cost), float(timestamp)
        )
        check_line(given.target, result.costs, result.error_no)
        return given, result
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InvalidArgumentError(f"no line of a log of autotvm: {error!r}") from error


def load_from_buffer(file: TextIO) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Pairs of an open log."""
    name = getattr(file, "name", "log")
    for number, line in enumerate(file, 1):
        try:
            pair = decode(line)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{name}:{number}: {error}") from error
        if pair is not None:
            yield pair


def load_from_file(
    filepath: str | os.PathLike[str],
) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Pairs of a log."""
    try:
        file = open(filepath, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {os.fspath(filepath)}: {error}") from error
    with file:
        yield from load_from_buffer(file)


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that is equal for equal inputs."""
    config = json.dumps(inp.config.to_json_dict()) if include_config else ""
    return str(inp.target) + key_of(inp.task.workload) + config


def pick_best(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> None:
    """Writes the best line of each workload and target."""
    best: dict[str, tuple[float, MeasureInput, MeasureResult]] = {}
    for given, result in load_from_file(in_file):
        if result.error_no != 0:
            continue
        key, cost = measure_str_key(given, False), result.mean_s
        if key not in best or cost < best[key][0]:
            best[key] = (cost, given, result)
    with open(out_file, "w", encoding="utf-8") as file:
        file.writelines(encode(given, result) + "\n" for _, given, result in best.values())


def split_workload(in_file: str | os.PathLike[str], clean: bool = True) -> None:
    """Writes in_file.000.wkl and so on, a file for each workload; `clean` drops repeated lines."""
    lines: dict[str, dict[str, tuple[MeasureInput, MeasureResult]]] = {}
    for number, (given, result) in enumerate(load_from_file(in_file)):
        of_workload = lines.setdefault(measure_str_key(given, False), {})
        key = measure_str_key(given) if clean else str(number)
        known = of_workload.get(key)
        if known is None or result.mean_s < known[1].mean_s:
            of_workload[key] = (given, result)
    for number, of_workload in enumerate(lines.values()):
        with open(f"{os.fspath(in_file)}.{number:03d}.wkl", "w", encoding="utf-8") as file:
            file.writelines(encode(*pair) + "\n" for pair in of_workload.values())
