"""Tasks: a computation and a target, tuned, and its best program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kiln.farm import program
from kiln.auto_scheduler.cost_model import XGBModel
from kiln.auto_scheduler.hardware import HardwareParams
from kiln.auto_scheduler.layout import check_layout_rewrite
from kiln.auto_scheduler.log_database import database_of
from kiln.auto_scheduler.measuring import (
    LocalBuilder,
    LocalRunner,
    RecordedTask,
    builder_and_runner,
)
from kiln.auto_scheduler.own_code import served_of
from kiln.auto_scheduler.program import Program
from kiln.auto_scheduler.records import load_best_record
from kiln.auto_scheduler.refuse import refuse
from kiln.auto_scheduler.rounds import Rounds
from kiln.auto_scheduler.search_policy import PreloadMeasuredStates, SketchPolicy, check_policy
from kiln.auto_scheduler.task_inputs import names_of_inputs, with_ranges
from kiln.auto_scheduler.workload import ComputeDAG, make_workload_key
from kiln.errors import InvalidArgumentError, NotFoundError
from kiln.farm.client import Client
from kiln.farm.computation import Computation, text_file
from kiln.farm.job import Job, compiled
from kiln.farm.values import Record


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
        builder, runner = self.both()
        per_round = min(self.num_measures_per_round, max(1, self.num_measure_trials // tasks))
        return {
            **builder.options(),
            **runner.options(),
            "trials": self.num_measure_trials,
            "trials_per_round": per_round,
        }

    def client(self) -> Client:
        """The farm that measures."""
        builder, runner = self.both()
        return runner.client(builder.build_jobs())

    def both(self) -> tuple[Any, Any]:
        """The builder and the runner."""
        return builder_and_runner(self.builder, self.runner, (LocalBuilder, LocalRunner))


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
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        """Of a registered function with arguments, a key, or a ComputeDAG; `target` is a text.

        `hardware_params` become options of the target. With `layout_rewrite_option` 2 candidates
        are measured with weights packed; 1 is refused. Inputs that `task_inputs` names get values
        between the least and the largest of their buffers in checks.
        """
        refuse(
            "SearchTask",
            {"target_host": "the host is the machine that measures"},
            {"target_host": target_host},
        )
        check_layout_rewrite(layout_rewrite_option)
        if target is None:
            raise InvalidArgumentError("SearchTask has no target, expected 'llvm' or 'cuda'")
        self.target = str(target)
        self.target_host = None
        if hardware_params is not None:
            self.target = hardware_params.options(self.target)
        self.hardware_params = hardware_params
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        if compute_dag is None and workload_key is None:
            raise InvalidArgumentError("SearchTask has no computation, expected func, key or DAG")
        self.compute_dag = compute_dag or ComputeDAG(workload_key)
        self.workload_key = workload_key or self.compute_dag.workload_key()
        self.layout_rewrite_option = layout_rewrite_option or 0
        if self.layout_rewrite_option and not self._is_packed:
            self.compute_dag = self.compute_dag.rewrite_layout_from_state(
                self.compute_dag.init_state
            )
        self.task_input_names = names_of_inputs(
            self.workload_key, task_inputs, task_inputs_overwrite, task_inputs_save_to_file
        )
        self.desc = desc or self.compute_dag.computation.name

    def __repr__(self) -> str:
        return f"<SearchTask {self.desc} for {self.target}>"

    @property
    def _is_packed(self) -> bool:
        """Whether the computation reads weights that were packed before."""
        return "@packed_placeholders(" in self.compute_dag.computation.text

    @property
    def measured_computation(self) -> Computation:
        """The computation as a job gets it: with the ranges of the inputs of `task_inputs`."""
        computed = self.compute_dag.computation
        return with_ranges(computed, self.workload_key, self.task_input_names)

    def as_measured(self, record: Record) -> RecordedTask:
        """The task as a line of a log says it: with the target and the device that measured."""
        return _Measured(
            self.workload_key,
            record.target,
            list(record.hardware.values()),
            "",
            self.layout_rewrite_option,
            self.task_input_names,
            self.compute_dag,
        )

    def tune(
        self,
        tuning_options: TuningOptions,
        search_policy: Any = None,
        adaptive_training: bool = False,
    ) -> Job:
        """Tunes on the farm, and returns the job when it has ended.

        `adaptive_training` is that of the cost model of the default policy. Ctrl-C cancels; what
        was measured is in the log and in the farm's database.
        """
        policy = search_policy or SketchPolicy(self, XGBModel(adaptive_training=adaptive_training))
        check_policy("search_policy", policy, self)
        client = tuning_options.client()
        preload(client, policy.init_search_callbacks)
        rounds = Rounds([self], tuning_options.measure_callbacks or (), policy)
        model = policy.program_cost_model
        with rounds:
            job = client.tune(
                self.measured_computation,
                target=self.target,
                early_stopping=tuning_options.early_stopping,
                callbacks=[rounds, *([model.watch] if model else [])],
                verbose=tuning_options.verbose,
                served=served_of([policy], builder=tuning_options.both()[0]),
                **{**tuning_options.options(), **policy.options()},
            )
        if model:
            model.after(self, job)
        return job

    def keys(self) -> tuple[str, ...]:
        """Keys under which logs may have this task."""
        return tuple(dict.fromkeys((self.workload_key, self.compute_dag.workload_key())))

    def _best(self, log_file: str | os.PathLike[str]) -> tuple[Any, Any]:
        found = [load_best_record(log_file, key, self.target) for key in self.keys()]
        pairs: list[Any] = [pair for pair in found if pair[0] is not None]
        if not pairs:
            raise NotFoundError(f"{os.fspath(log_file)} has no program for {self.workload_key}")
        return min(pairs, key=lambda pair: pair[1].mean_s)

    def apply_best(
        self,
        log_file: str | os.PathLike[str],
        include_compatible: bool = False,
        layout_rewrite_option: Any = None,
    ) -> Program:
        """The best program of the log, compiled. NotFoundError: the log has none.

        With `include_compatible`, one for other extents, or one that is chosen without measuring.
        The program takes weights as they are, whatever `layout_rewrite_option` is.
        """
        check_layout_rewrite(layout_rewrite_option)
        if self._is_packed and not self.layout_rewrite_option:
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

    @contextmanager
    def _database(self, log_file: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, str]]]:
        """The file of the task's text, and a database of a log's records, while the block runs."""
        computation = self.compute_dag.computation
        with text_file(computation.source, computation.name) as path:
            is_named = self.workload_key != self.compute_dag.workload_key()
            flags = [f"--bind={self.workload_key}={path}"] if is_named else []
            with database_of(log_file, flags) as environment:
                yield path, environment


@dataclass(frozen=True)
class _Measured(RecordedTask):
    """A task of a record, with its computation."""

    compute_dag: ComputeDAG | None = field(default=None, repr=False)


def preload(client: Client, callbacks: Sequence[Any]) -> None:
    """Gives the farm what the logs of PreloadMeasuredStates hold."""
    for each in callbacks:
        if isinstance(each, PreloadMeasuredStates):
            client.import_records(each.filename)


def create_task(
    func: Any,
    args: Sequence[Any],
    target: Any,
    target_host: Any = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """SearchTask of a registered function."""
    return SearchTask(
        func=func,
        args=args,
        target=target,
        target_host=target_host,
        hardware_params=hardware_params,
    )


def auto_schedule(
    task: SearchTask, search_policy: Any = None, tuning_options: TuningOptions | None = None
) -> Program:
    """Tunes the task, and returns its best program of the job."""
    job = task.tune(tuning_options or TuningOptions(), search_policy)
    network = job.compile()
    return Program(network, [each.name for each in network.inputs])
