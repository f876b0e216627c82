"""Several tasks in one job, and the tasks of a network."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from kiln.farm import program
from kiln.auto_scheduler.cost_model import RandomModel, XGBModel
from kiln.auto_scheduler.own_code import served_of
from kiln.auto_scheduler.refuse import refuse
from kiln.auto_scheduler.rounds import Rounds
from kiln.auto_scheduler.search_policy import (
    PreloadMeasuredStates,
    SearchPolicy,
    SketchPolicy,
    check_policy,
)
from kiln.auto_scheduler.search_task import SearchTask, TuningOptions, preload
from kiln.auto_scheduler.workload import ComputeDAG
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import computation
from kiln.farm.job import Job
from kiln.farm.values import Event

_STRATEGIES = ("gradient", "round-robin")
# Latency of a task without a result, as TVM has it.
_NO_RESULT_S = 1e10


class TaskSchedulerCallback:
    """Base of what a TaskScheduler tells before and after each round of a task."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """A round of the task begins."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """A round of the task has ended."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks before each round."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Prints."""
        rows = []
        for at, task in enumerate(task_scheduler.tasks):
            cost = task_scheduler.best_costs[at]
            is_known = cost < _NO_RESULT_S
            speed = task.compute_dag.flop_ct / cost / 1e9
            rows.append(
                (
                    str(at),
                    task.desc,
                    f"{1e3 * cost:.3f}" if is_known else "-",
                    f"{speed:.2f}" if is_known else "-",
                    str(task_scheduler.task_trials[at]),
                )
            )
        head = ("ID", "Task Description", "Latency (ms)", "Speed (GFLOPS)", "Trials")
        score = task_scheduler.cur_score
        print(_table(head, rows), file=sys.stderr)
        print(
            f"Estimated total latency: {f'{1e3 * score:.3f}' if score < _NO_RESULT_S else '-'} ms\t"
            f"Trials: {task_scheduler.ct}\tUsed time : "
            f"{time.time() - task_scheduler.tic:.0f} s\tNext ID: {task_id}",
            file=sys.stderr,
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as TVM prints it."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    line = "-" * (sum(widths) + 3 * len(widths) + 1)

    def text(row: Sequence[str]) -> str:
        return "| " + " | ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)) + " |"

    return "\n".join([line, text(head), line, *(text(row) for row in rows), line])


class LogEstimatedLatency(TaskSchedulerCallback):
    """Writes a line for each round into a file: time, estimated latency of all tasks, trials."""

    def __init__(self, log_file: str | os.PathLike[str]) -> None:
        """Empties the file."""
        self.log_file = os.fspath(log_file)
        with open(self.log_file, "w", encoding="utf-8"):
            pass

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Writes the line."""
        score = task_scheduler.cur_score
        shown = "N/A" if score >= _NO_RESULT_S else f"{score * 1e3:.3f}"
        with open(self.log_file, "a", encoding="utf-8") as file:
            file.write(
                f"ElapsedTime(s)\t{time.time() - task_scheduler.tic:.0f}\t"
                f"EstimatedLatency(ms)\t{shown}\tTrials\t{task_scheduler.ct}\n"
            )


def _policy_of(name: str, adaptive_training: bool) -> Any:
    """The cost model of a policy by name."""
    policy, _, model = ("sketch.xgb" if name == "default" else name).partition(".")
    if policy == "sketch" and model == "xgb":
        return XGBModel(adaptive_training=adaptive_training)
    if policy == "sketch" and model == "random":
        return RandomModel()
    raise InvalidArgumentError(
        f"search_policy is '{name}', expected default, sketch.xgb or sketch.random"
    )


def make_search_policies(
    search_policy: Any,
    search_policy_params: dict[str, float] | None,
    tasks: Sequence[SearchTask],
    num_measures_per_round: int,
    verbose: int,
    load_model_file: str | None = None,
    load_log_file: str | None = None,
    adaptive_training: bool = False,
) -> list[SearchPolicy]:
    """A policy for each task, with one cost model for all."""
    del num_measures_per_round
    if not isinstance(search_policy, str):
        policies = list(search_policy)
        if len(policies) != len(tasks):
            raise InvalidArgumentError(
                f"{len(policies)} policies are given, expected {len(tasks)}, one for each task"
            )
        for at, (policy, task) in enumerate(zip(policies, tasks)):
            check_policy(f"search_policy[{at}]", policy, task)
        return policies
    model = _policy_of(search_policy, adaptive_training)
    if load_model_file:
        model.load(load_model_file)
    callbacks = [PreloadMeasuredStates(load_log_file)] if load_log_file else []
    return [
        SketchPolicy(each, model, search_policy_params, None, verbose, callbacks) for each in tasks
    ]


class TaskScheduler:
    """Tunes tasks together, and gives the most trials to the ones that matter most."""

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        task_weights: Sequence[float] | None = None,
        objective_func: Any = None,
        strategy: str = "gradient",
        load_model_file: str | None = None,
        load_log_file: str | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
    ) -> None:
        """`objective_func` is a function of the tasks' best costs in seconds, 1e10 for a task without
        a result, or "weighted-sum", "geometric-mean" or "max"; None is the first of these.

        `alpha` is the weight of what a task has gained over the last `backward_window_size` rounds,
        `beta` how many times slower than tasks like it a task is expected to become at most
        (docs/search.md). `gamma` does nothing, as in TVM. `callbacks` None prints the table before
        each round, if the tuning options are verbose.
        """
        if not tasks:
            raise InvalidArgumentError("TaskScheduler has no tasks, expected one at least")
        if strategy not in _STRATEGIES:
            raise InvalidArgumentError(
                f"strategy is '{strategy}', expected {' or '.join(_STRATEGIES)}"
            )
        for each in callbacks or ():
            if not isinstance(each, TaskSchedulerCallback):
                raise InvalidArgumentError(
                    f"callbacks has a {type(each).__name__}, expected a TaskSchedulerCallback"
                )
        self.callbacks = None if callbacks is None else list(callbacks)
        self.tasks = list(tasks)
        self.task_weights = list(task_weights) if task_weights is not None else None
        if self.task_weights is not None and len(self.task_weights) != len(self.tasks):
            raise InvalidArgumentError(
                f"{len(self.task_weights)} weights are given, expected {len(self.tasks)}"
            )
        self.objective = objective_func
        self.strategy = strategy
        self.load_model_file = load_model_file
        self.load_log_file = load_log_file
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.backward_window_size = backward_window_size
        # Callbacks read these: rounds and trials of each task, its best cost in seconds, all
        # trials, the objective, the time of the beginning.
        self.task_cts = [0] * len(self.tasks)
        self.task_trials = [0] * len(self.tasks)
        self.best_costs = [_NO_RESULT_S] * len(self.tasks)
        self.ct = 0
        self.cur_score = _NO_RESULT_S
        self.tic = time.time()

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: Any = "default",
        search_policy_params: dict[str, float] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> Job:
        """Tunes all tasks in one job, and returns it when it has ended.

        `search_policy` is a name, or a policy for each task, of which the first one counts.
        """
        policies = make_search_policies(
            search_policy,
            search_policy_params,
            self.tasks,
            tune_option.num_measures_per_round,
            tune_option.verbose,
            self.load_model_file,
            self.load_log_file,
            adaptive_training,
        )
        targets = {task.target for task in self.tasks}
        if len(targets) > 1:
            raise InvalidArgumentError(f"the tasks have targets {sorted(targets)}, expected one")
        client = tune_option.client()
        preload(client, policies[0].init_search_callbacks)
        model = policies[0].program_cost_model
        rounds = Rounds(self.tasks, tune_option.measure_callbacks or (), policies[0])
        self.tic = time.time()
        named: dict[str, Any] = {
            **tune_option.options(len(self.tasks)),
            **policies[0].options(),
        }
        is_own = callable(self.objective)
        with rounds:
            job = client.tune(
                [task.measured_computation for task in self.tasks],
                target=self.tasks[0].target,
                weights=self.task_weights,
                objective=None if is_own else self.objective,
                served=served_of(
                    policies, self.objective if is_own else None, tune_option.both()[0]
                ),
                task_strategy=self.strategy,
                task_alpha=self.alpha,
                task_beta=self.beta,
                task_window=self.backward_window_size,
                early_stopping=per_task_early_stopping,
                total_early_stopping=tune_option.early_stopping,
                callbacks=[
                    rounds,
                    *([model.watch] if model else []),
                    self._told(tune_option.verbose),
                ],
                verbose=tune_option.verbose if self.callbacks is not None else 0,
                **named,
            )
        if model:
            model.after(self.tasks[0], job)
        return job

    def _told(self, verbose: int) -> Any:
        """A callback of a job that keeps the figures, and tells the callbacks."""
        callbacks = self.callbacks
        if callbacks is None:
            callbacks = [PrintTableInfo()] if verbose else []
        begun: list[int] = []

        def told(event: Event) -> None:
            if event.record is not None:
                record = event.record
                self.ct += 1
                self.task_trials[record.task] += 1
                if record.cost_s is not None:
                    self.best_costs[record.task] = min(self.best_costs[record.task], record.cost_s)
            if not begun:
                begun.append(0)
                for each in callbacks:
                    each.pre_tune(self, 0)
            if event.round is not None:
                task = event.round.task
                self.task_cts[task] += 1
                for at, best in enumerate(event.round.best_s):
                    self.best_costs[at] = best or self.best_costs[at]
                latency = event.round.total_latency_s
                self.cur_score = _NO_RESULT_S if latency is None else latency
                for each in callbacks:
                    each.post_tune(self, task)
                following = event.status.next_task
                for each in callbacks:
                    each.pre_tune(self, task if following is None else following)

        return told


def extract_tasks(
    mod: Any,
    params: Any = None,
    target: Any = None,
    include_simple_tasks: bool = False,
    example_inputs: Any = None,
    **named: Any,
) -> tuple[list[SearchTask], list[float]]:
    """The tasks of a network, and the number of uses of each.

    `mod` is "network:resnet-18", the path of an ONNX file, an onnx.ModelProto, or a module of
    torch's with `example_inputs`; `params` are in each of them. `named` are flags of `kiln tasks`,
    batch=8 for one. Convolutions are taken as they stand.
    """
    refuse("extract_tasks", {"params": "the network holds them"}, {"params": params or None})
    if target is None:
        raise InvalidArgumentError("extract_tasks has no target, expected 'llvm' or 'cuda'")
    flags = ["--dag", "--variants=direct", f"--target={target}"]
    flags += program.flag("include_simple_tasks", include_simple_tasks)
    flags += [word for key, value in named.items() for word in program.flag(key, value)]
    tasks: dict[str, SearchTask] = {}
    weights: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="kiln-tasks.") as folder:
        for model in _models(mod, example_inputs, folder):
            for found in program.run_json(["tasks", model, *flags]):
                text = found["variants"][0]["dag"]
                if text not in tasks:
                    dag = ComputeDAG(computation(text, found["task"]))
                    tasks[text] = SearchTask(compute_dag=dag, target=target, desc=found["task"])
                weights[text] = weights.get(text, 0.0) + float(found["weight"])
    return list(tasks.values()), list(weights.values())


def _models(mod: Any, example_inputs: Any, folder: str) -> list[str]:
    """What the program reads for a network: a name, or paths of models in the folder."""
    if isinstance(mod, str):
        return [mod]
    if hasattr(mod, "SerializeToString"):
        path = os.path.join(folder, "model.onnx")
        try:
            content = mod.SerializeToString()
        except ValueError as error:
            raise InvalidArgumentError(
                f"the model cannot be written ({error}); onnx.save with save_as_external_data=True "
                "makes a file whose path is taken"
            ) from error
        with open(path, "wb") as file:
            file.write(content)
        return [path]
    if not hasattr(mod, "named_parameters"):
        raise InvalidArgumentError(
            f"found a {type(mod).__name__}, expected 'network:NAME', the path of an ONNX file, an "
            "onnx.ModelProto or a torch.nn.Module"
        )
    if example_inputs is None:
        raise InvalidArgumentError("a module of torch's needs example_inputs, which say its shapes")
    tasks = importlib.import_module("kiln.torch.tasks")
    return tasks.write_models(mod, example_inputs, folder)
