"""Tasks: a computation and a target, tuned, and its best program."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from kiln.farm import program
from kiln.auto_scheduler import place
from kiln.auto_scheduler.measuring import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    measured,
)
from kiln.auto_scheduler.program import Program
from kiln.auto_scheduler.records import load_best_record
from kiln.auto_scheduler.refuse import refuse
from kiln.auto_scheduler.search_policy import PreloadMeasuredStates, SketchPolicy
from kiln.auto_scheduler.workload import ComputeDAG, make_workload_key
from kiln.errors import InvalidArgumentError, KilnError, NotFoundError
from kiln.farm.computation import text_file
from kiln.farm.job import Job, compiled
from kiln.farm.values import Event, Record, record_of
from kiln.proto import scheduler_pb2

_NOT_TAKEN = {
    "target_host": "the host is this machine",
    "hardware_params": "they are those of the device that measures",
    "layout_rewrite_option": "a computation's weights are taken as they are; those of networks are "
    "packed by kiln.Client.tune(layout_rewrite=)",
    "task_inputs": "inputs are random, and kiln.Client.tune(input_range=) says from where to where",
    "task_inputs_overwrite": "there are no task_inputs",
    "task_inputs_save_to_file": "there are no task_inputs",
}


@dataclass
class HardwareParams:
    """Facts of a device. Kiln takes those of the device that measures, so no task takes these."""

    num_cores: int | None = None
    vector_unit_bytes: int | None = None
    cache_line_bytes: int | None = None
    max_shared_memory_per_block: int | None = None
    max_local_memory_per_block: int | None = None
    max_threads_per_block: int | None = None
    max_vthread_extent: int | None = None
    warp_size: int | None = None
    target: str | None = None
    target_host: str | None = None


@dataclass
class TuningOptions:
    """How a task is tuned."""

    num_measure_trials: int = 0
    # A task ends after so many trials without improvement.
    early_stopping: int | None = None
    num_measures_per_round: int = 64
    # 0 = silent, 1 = a line a round, 2 = a line a trial as well.
    verbose: int = 1
    builder: Any = "local"
    runner: Any = "local"
    # RecordToFile, PythonBasedMeasureCallback.
    measure_callbacks: Sequence[Any] | None = None

    def options(self, tasks: int = 1) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        if self.num_measure_trials < 1:
            raise InvalidArgumentError(
                f"num_measure_trials is {self.num_measure_trials}, expected at least 1"
            )
        builder = LocalBuilder() if self.builder == "local" else self.builder
        runner = LocalRunner() if self.runner == "local" else self.runner
        for each in (builder, runner):
            if not hasattr(each, "options"):
                raise InvalidArgumentError(
                    f"found {each!r}, expected 'local', a builder or a runner"
                )
        per_round = min(self.num_measures_per_round, max(1, self.num_measure_trials // tasks))
        return {
            **builder.options(),
            **runner.options(),
            "trials": self.num_measure_trials,
            "trials_per_round": per_round,
        }


class SearchTask:
    """A computation to tune for a target."""

    def __init__(
        self,
        func: Any = None,
        args: Sequence[Any] | None = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: Any = None,
        target_host: Any = None,
        hardware_params: Any = None,
        layout_rewrite_option: Any = None,
        task_inputs: Any = None,
        task_inputs_overwrite: Any = None,
        task_inputs_save_to_file: Any = None,
        desc: str = "",
    ) -> None:
        """Of a registered function with arguments, a key, or a ComputeDAG; `target` is a text."""
        refuse(
            "SearchTask",
            _NOT_TAKEN,
            {**locals(), "task_inputs_overwrite": task_inputs_overwrite or None},
        )
        if target is None:
            raise InvalidArgumentError("SearchTask has no target, expected 'llvm' or 'cuda'")
        self.target = str(target)
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        if compute_dag is None and workload_key is None:
            raise InvalidArgumentError("SearchTask has no computation, expected func, key or DAG")
        self.compute_dag = compute_dag or ComputeDAG(workload_key)
        self.workload_key = workload_key or self.compute_dag.workload_key()
        self.desc = desc or self.compute_dag.computation.name

    def __repr__(self) -> str:
        return f"<SearchTask {self.desc} for {self.target}>"

    def tune(self, tuning_options: TuningOptions, search_policy: Any = None) -> Job:
        """Tunes on the farm of auto_scheduler.client(), and returns the job when it has ended.

        Ctrl-C cancels; what was measured is in the log and in the farm's database.
        """
        policy = search_policy or SketchPolicy(self)
        preload([self], getattr(policy, "init_search_callbacks", []))
        rounds = Rounds([self], tuning_options.measure_callbacks or (), policy)
        with rounds:
            return place.client().tune(
                self.compute_dag.computation,
                target=self.target,
                early_stopping=tuning_options.early_stopping,
                callbacks=[rounds],
                verbose=tuning_options.verbose,
                **{**tuning_options.options(), **policy.options()},
            )

    def keys(self) -> tuple[str, ...]:
        """Keys under which logs may have this task."""
        return tuple(dict.fromkeys((self.workload_key, self.compute_dag.workload_key())))

    def _best(self, log_file: str | os.PathLike[str]) -> tuple[Any, Any]:
        found = [load_best_record(log_file, key, self.target) for key in self.keys()]
        pairs: list[Any] = [pair for pair in found if pair[0] is not None]
        if not pairs:
            raise NotFoundError(f"{os.fspath(log_file)} has no program for {self.workload_key}")
        return min(pairs, key=lambda pair: sum(pair[1].costs) / len(pair[1].costs))

    def apply_best(
        self,
        log_file: str | os.PathLike[str],
        include_compatible: bool = False,
        layout_rewrite_option: Any = None,
    ) -> Program:
        """The best program of the log, compiled. NotFoundError: the log has none.

        With `include_compatible`, one for other extents, or one that is chosen without measuring.
        """
        refuse("apply_best", _NOT_TAKEN, {"layout_rewrite_option": layout_rewrite_option})
        if "@packed_placeholders(" in self.compute_dag.computation.text:
            raise InvalidArgumentError(
                f"{self.desc} takes weights that its network packs: compile the network, "
                "auto_scheduler.client().compile(network)"
            )
        if not include_compatible:
            self._best(log_file)
        with self._database(log_file) as (path, environment):
            words = [path, f"--target={self.target}"]
            words += [] if include_compatible else ["--strict"]
            network = compiled(words, environment, None)
        tensors = self.compute_dag.tensors
        names = [each.name for each in tensors if any(each.name == i.name for i in network.inputs)]
        rest = [each.name for each in network.inputs if each.name not in names]
        return Program(network, names + rest)

    def print_best(self, log_file: str | os.PathLike[str], print_mode: str = "schedule") -> str:
        """The best program of the log as text: "schedule", or "cuda"; also all of `kiln show`."""
        self._best(log_file)
        with self._database(log_file) as (path, environment):
            return program.run(["show", path, f"--as={print_mode}"], environment)

    def _database(self, log_file: str | os.PathLike[str]) -> _Database:
        return _Database(self, os.fspath(log_file))


class _Database:
    """A database of a log's records, and the file of the task's text, while the block runs."""

    def __init__(self, task: SearchTask, log_file: str) -> None:
        self._task = task
        self._log_file = os.path.abspath(log_file)

    def __enter__(self) -> tuple[str, dict[str, str]]:
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-log.")
        computation = self._task.compute_dag.computation
        self._text = text_file(computation.source, computation.name)
        path = self._text.__enter__()
        environment = {"KILN_DB": os.path.join(self._folder.name, "log.db")}
        words = ["records", "import", self._log_file]
        if self._task.workload_key != self._task.compute_dag.workload_key():
            words.append(f"--bind={self._task.workload_key}={path}")
        try:
            program.run(words, environment)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return path, environment

    def __exit__(self, *error: Any) -> None:
        self._folder.cleanup()
        self._text.__exit__(*error)


def measure(
    task: SearchTask, states: Sequence[Sequence[Any]]
) -> tuple[list[MeasureInput], list[MeasureResult]]:
    """Builds, checks and times schedules on this machine's device, one after the other.

    A state is its steps, as Sketch.fill, MeasureInput.steps and logs have them. A state takes some
    0.6 s. Steps that do not fit the task have the error 1, and what is wrong as the message.
    """
    pairs = [_measured_alone(task, list(each)) for each in states]
    return [given for given, _ in pairs], [result for _, result in pairs]


def _measured_alone(task: SearchTask, steps: list[Any]) -> tuple[MeasureInput, MeasureResult]:
    computation = task.compute_dag.computation
    target = f"--target={task.target}"
    with tempfile.TemporaryDirectory(prefix="kiln-state.") as folder:
        with text_file(computation.source, computation.name) as path:
            written = os.path.join(folder, "schedule")
            with open(written + ".json", "w", encoding="utf-8") as file:
                json.dump(steps, file)
            try:
                shown = ["show", path, f"--steps={written}.json", "--as=schedule"]
                schedule = program.run(shown)
            except KilnError as error:
                given = MeasureInput(task, task.workload_key, task.target, steps, [0] * 8)
                return given, MeasureResult([1e10], 1, str(error), 0.0, int(time.time()))
            with open(written, "w", encoding="utf-8") as file:
                file.write(schedule)
            environment = {"KILN_DB": os.path.join(folder, "trial.db")}
            words = ["trial", path, f"--schedule={written}", target]
            found = program.run_json(words, environment)[0]
    message = json_format.ParseDict(found, scheduler_pb2.Record(), ignore_unknown_fields=True)
    return measured(task, task.workload_key, record_of(message))


def preload(tasks: Sequence[SearchTask], callbacks: Sequence[Any]) -> None:
    """Gives the farm what the logs of PreloadMeasuredStates hold of the tasks."""
    for each in callbacks:
        if isinstance(each, PreloadMeasuredStates):
            place.client().import_records(each.filename)


class Rounds:
    """Hands what was measured to callbacks of TVM's kind, a round at a time."""

    def __init__(self, tasks: Sequence[SearchTask], callbacks: Sequence[Any], policy: Any) -> None:
        for each in callbacks:
            if not hasattr(each, "callback"):
                raise InvalidArgumentError(
                    f"measure_callbacks has a {type(each).__name__}, expected RecordToFile or a "
                    "PythonBasedMeasureCallback"
                )
        self._tasks = tasks
        self._callbacks = callbacks
        self._policy = policy
        self._records: list[Record] = []

    def __enter__(self) -> Rounds:
        return self

    def __exit__(self, *_: Any) -> None:
        self._tell()

    def __call__(self, event: Event) -> None:
        if event.record is not None:
            self._records.append(event.record)
        if event.round is not None:
            self._tell()

    def _tell(self) -> None:
        records, self._records = self._records, []
        if not records:
            return
        pairs = [
            measured(self._tasks[record.task], self._tasks[record.task].workload_key, record)
            for record in records
        ]
        for each in self._callbacks:
            each.callback(self._policy, [given for given, _ in pairs], [one for _, one in pairs])
