"""Several tasks in one job, and the tasks of a network."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from kiln.farm import program
from kiln.auto_scheduler import place
from kiln.auto_scheduler.refuse import refuse
from kiln.auto_scheduler.search_policy import PreloadMeasuredStates, RandomModel, XGBModel
from kiln.auto_scheduler.search_task import Rounds, SearchTask, TuningOptions, preload
from kiln.auto_scheduler.workload import ComputeDAG
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import computation
from kiln.farm.job import Job
from kiln.farm.values import Event

_POLICIES = {"default": XGBModel, "sketch.xgb": XGBModel, "sketch.random": RandomModel}
_STRATEGIES = {"gradient": "gradient", "round-robin": "round-robin"}


class LogEstimatedLatency:
    """Writes a line for each round into a file: time, estimated latency of all tasks, trials."""

    def __init__(self, log_file: str | os.PathLike[str]) -> None:
        """Empties the file."""
        self.log_file = os.fspath(log_file)
        with open(self.log_file, "w", encoding="utf-8"):
            pass

    def __call__(self, event: Event) -> None:
        """Writes the line if the event is the end of a round."""
        if event.round is None:
            return
        latency = event.round.total_latency_s
        shown = "N/A" if latency is None else f"{latency * 1e3:.3f}"
        with open(self.log_file, "a", encoding="utf-8") as file:
            file.write(
                f"ElapsedTime(s)\t{event.round.elapsed_s:.0f}\tEstimatedLatency(ms)\t{shown}\t"
                f"Trials\t{event.round.trials}\n"
            )


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
        callbacks: Any = None,
    ) -> None:
        """`objective_func` is "weighted-sum", "geometric-mean" or "max"; None is the first.

        alpha, beta, gamma and the window have the values that Kiln has fixed. `callbacks` are
        LogEstimatedLatency.
        """
        if not tasks:
            raise InvalidArgumentError("TaskScheduler has no tasks, expected one at least")
        if callable(objective_func):
            raise InvalidArgumentError(
                "TaskScheduler: objective_func is a function, expected the name of an objective: "
                "weighted-sum, geometric-mean or max"
            )
        if strategy not in _STRATEGIES:
            raise InvalidArgumentError(
                f"strategy is '{strategy}', expected gradient or round-robin"
            )
        fixed = {"alpha": (alpha, 0.2), "beta": (beta, 2), "gamma": (gamma, 0.5)}
        fixed["backward_window_size"] = (backward_window_size, 3)
        refuse(
            "TaskScheduler",
            dict.fromkeys(fixed, "its value is fixed"),
            {key: value if value != usual else None for key, (value, usual) in fixed.items()},
        )
        for each in callbacks or ():
            if not isinstance(each, LogEstimatedLatency):
                raise InvalidArgumentError(
                    f"callbacks has a {type(each).__name__}, expected LogEstimatedLatency"
                )
        self.callbacks = list(callbacks or ())
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

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str = "default",
        search_policy_params: dict[str, float] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> Job:
        """Tunes all tasks in one job, and returns it when it has ended."""
        del adaptive_training
        if search_policy not in _POLICIES:
            raise InvalidArgumentError(
                f"search_policy is '{search_policy}', expected one of {', '.join(_POLICIES)}"
            )
        if self.load_log_file:
            preload(self.tasks, [PreloadMeasuredStates(self.load_log_file)])
        targets = {task.target for task in self.tasks}
        if len(targets) > 1:
            raise InvalidArgumentError(f"the tasks have targets {sorted(targets)}, expected one")
        rounds = Rounds(self.tasks, tune_option.measure_callbacks or (), None)
        with rounds:
            return place.client().tune(
                [task.compute_dag.computation for task in self.tasks],
                target=self.tasks[0].target,
                weights=self.task_weights,
                objective=self.objective,
                task_strategy=self.strategy,
                policy=_POLICIES[search_policy].policy,
                parameter=search_policy_params or None,
                model=self.load_model_file,
                early_stopping=per_task_early_stopping,
                total_early_stopping=tune_option.early_stopping,
                callbacks=[rounds, *self.callbacks],
                verbose=tune_option.verbose,
                **tune_option.options(len(self.tasks)),
            )


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
