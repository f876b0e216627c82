"""Logs of autotvm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from kiln.autotvm.task import ConfigEntity, Task
from kiln.errors import InvalidArgumentError
from kiln.farm.values import Record

_VERSION = 0.2
# Numbers of autotvm's errors by Kiln's.
_ERRORS = {
    "NO_ERROR": 0,
    "INSTANTIATION_ERROR": 1,
    "COMPILE_HOST_ERROR": 2,
    "COMPILE_DEVICE_ERROR": 3,
    "RUNTIME_DEVICE_ERROR": 4,
    "WRONG_ANSWER_ERROR": 5,
    "BUILD_TIMEOUT_ERROR": 6,
    "RUN_TIMEOUT_ERROR": 7,
}
# Cost of a failed configuration.
_FAILED_S = 1e10


def line_of(task: Task, config: ConfigEntity, record: Record) -> str:
    """A line of a log, without its end."""
    costs = list(record.costs_s) if record.cost_s is not None else [_FAILED_S]
    return json.dumps(
        {
            "input": [record.target, task.name, list(task.args), {}],
            "config": {"index": config.index, "code_hash": None, "entity": list(config.entity)},
            "result": [costs, _ERRORS.get(record.error, 8), record.all_cost_s, record.timestamp_s],
            "version": _VERSION,
            "tvm_version": "0.8.0",
        }
    )


def load_from_file(
    filename: str | os.PathLike[str],
) -> Iterator[tuple[str, tuple[Any, ...], ConfigEntity, tuple[float, ...], int]]:
    """Target, workload, configuration, costs in seconds and error number of each line."""
    try:
        file = open(filename, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {os.fspath(filename)}: {error}") from error
    with file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
                target, name, args, _ = found["input"]
                config = ConfigEntity(found["config"]["index"], tuple(found["config"]["entity"]))
                costs, error, *_ = found["result"]
                yield str(target), (name, *args), config, tuple(map(float, costs)), int(error)
            except (ValueError, TypeError, LookupError) as error:
                raise InvalidArgumentError(
                    f"{os.fspath(filename)}:{number}: no line of a log of autotvm: {error!r}"
                ) from error


class ApplyHistoryBest:
    """The best configurations of a log."""

    def __init__(self, records: str | os.PathLike[str]) -> None:
        self._best: dict[tuple[str, str], tuple[float, ConfigEntity]] = {}
        for target, workload, config, costs, error in load_from_file(records):
            if error != 0:
                continue
            key = (target.split()[0], json.dumps(workload))
            cost = sum(costs) / len(costs)
            if key not in self._best or cost < self._best[key][0]:
                self._best[key] = (cost, config)

    def __enter__(self) -> ApplyHistoryBest:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def query(self, target: Any, workload: tuple[Any, ...]) -> ConfigEntity | None:
        """The best configuration of a kind of target and a workload; None if there is none."""
        found = self._best.get((str(target).split()[0], json.dumps(workload)))
        return found[1] if found else None


def apply_history_best(records: str | os.PathLike[str]) -> ApplyHistoryBest:
    """The best configurations of a log."""
    return ApplyHistoryBest(records)
