"""Tasks: a template, a computation and a target; their spaces and configurations."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult
from kiln.auto_scheduler.program import Program
from kiln.auto_scheduler.records import save_records
from kiln.errors import InvalidArgumentError
from kiln.farm import program
from kiln.farm.computation import Computation, op, text_file, words_of
from kiln.farm.job import compiled


@dataclass(frozen=True)
class ConfigEntity:
    """A point of a space."""

    index: int
    # Knobs as a log has them: ["tile_f", "sp", [-1, 4, 2, 8]].
    entity: tuple[Any, ...]
    # Steps of the schedule; None for a line of a log.
    steps: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """Values of the knobs by their names."""
        return {name: value for name, _, value in self.entity}

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{knobs}, index {self.index}"


class ConfigSpace:
    """The space of a task. It prints as TVM prints it."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __len__(self) -> int:
        return int(self._task.asked([], as_json=True)["len"])

    def __str__(self) -> str:
        return self._task.asked([])

    @property
    def knobs(self) -> list[dict[str, Any]]:
        """Name, number of values and kind of each knob."""
        return self._task.asked([], as_json=True)["knobs"]

    def get(self, index: int) -> ConfigEntity:
        """The point of this index. KilnError: the space has no such point."""
        found = self._task.asked([*program.flag("config", index)], as_json=True)
        return ConfigEntity(found["index"], tuple(found["entity"]), found["steps"])


class Task:
    """A template and what it schedules."""

    def __init__(self, name: str, args: Any, target: str) -> None:
        """create() makes one."""
        self.name = name
        self.target = target
        self.args: tuple[Any, ...] = ()
        if isinstance(args, Computation):
            self.computation = args
            self.args = (args.workload_key,)
        else:
            self.args = tuple(args)
            self.computation = op(_operator_of(name, target), *self.args)
        self.config_space = ConfigSpace(self)

    @property
    def workload(self) -> tuple[Any, ...]:
        """Name and arguments, by which logs know the task."""
        return (self.name, *self.args)

    @property
    def flop(self) -> float:
        """Number of operations."""
        return self.computation.flop_count

    def __repr__(self) -> str:
        return f"<Task {self.name} {self.args} for {self.target}>"

    def asked(self, words: Sequence[str], as_json: bool = False) -> Any:
        """What `kiln templates` says of the task."""
        with self._words() as task:
            command = ["templates", *task, *words]
            return program.run_json(command)[0] if as_json else program.run(command)

    @contextmanager
    def _words(self) -> Iterator[list[str]]:
        with words_of([self.computation]) as computation:
            yield [self.name, *computation, f"--target={self.target}"]

    def compile(self, config: ConfigEntity) -> Program:
        """The schedule of a configuration, compiled: a callable."""
        steps = config.steps or self.config_space.get(config.index).steps
        assert steps is not None
        key = self.computation.workload_key
        given = MeasureInput(None, key, self.target, json.loads(steps), [0] * 8)
        with tempfile.TemporaryDirectory(prefix="kiln-config.") as folder:
            log = os.path.join(folder, "config.json")
            save_records(log, [given], [MeasureResult([1.0], 0, "", 0.0, 0)])
            environment = {"KILN_DB": os.path.join(folder, "config.db")}
            with text_file(self.computation.source, self.computation.name) as path:
                program.run(["records", "import", log, f"--bind={key}={path}"], environment)
            network = compiled(["1", f"--target={self.target}"], environment, None)
        if network.kernels[0].source == "untuned":
            raise InvalidArgumentError(f"the schedule of {config} does not fit {self}")
        return Program(network, [each.name for each in network.inputs])


def _operator_of(name: str, target: str) -> str:
    """The operator of a template that ships."""
    kind = target.split()[0]
    for found in program.run_json(["templates"]):
        if found["template"] == name and found["target"] == kind:
            return found["op"]
    raise InvalidArgumentError(
        f"no template '{name}' for {kind} ships, expected one of `kiln templates`; for a file give "
        "a kiln.Computation as args"
    )


def create(task_name: str, args: Any, target: Any) -> Task:
    """A task of a template: its name or file, arguments of its operator or a kiln.Computation."""
    return Task(task_name, args, str(target))
