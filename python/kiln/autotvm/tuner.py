"""Tuners, each of which is a policy of Kiln."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from kiln.auto_scheduler.measuring import served_build
from kiln.auto_scheduler.refuse import refuse
from kiln.autotvm import callback
from kiln.autotvm.callback import flops_of, format_si_prefix
from kiln.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    MeasureOption,
    MeasureResult,
    result_of,
)
from kiln.autotvm.space import ConfigEntity
from kiln.autotvm.task import Task
from kiln.errors import InvalidArgumentError
from kiln.farm.job import Job
from kiln.farm.values import Event, Record

__all__ = [
    "CoordinateDescentTuner",
    "DropletTuner",
    "GATuner",
    "GridSearchTuner",
    "RandomTuner",
    "Tuner",
    "XGBTuner",
    "callback",
]

# A callback: tuner, and inputs and results of a round.
Callback = Callable[["Tuner", list[MeasureInput], list[MeasureResult]], None]


def config_of(task: Task, record: Record) -> ConfigEntity | None:
    """The configuration of a record; None for a candidate that the template did not make."""
    found = re.search(r"\bconfig (\d+)", record.origin)
    return task.config_space.get(int(found.group(1))) if found else None


class Tuner:
    """Tunes a task on a farm."""

    policy = ""

    def __init__(self, task: Task, seed: int | None = None) -> None:
        """`seed` is of everything random."""
        if not isinstance(task, Task):
            raise InvalidArgumentError(
                f"found a {type(task).__name__}, expected a task of create()"
            )
        self.task = task
        self.seed = seed
        self.job: Job | None = None
        self.reset()

    # Parameters of the policy.
    parameters: dict[str, float] = {}

    def reset(self) -> None:
        """Forgets what was tuned."""
        self.n_trial = 0
        self.best_flops = 0.0
        self.best_config: ConfigEntity | None = None
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self.ttl: int | None = None

    def load_history(self, data_set: Any, min_seed_records: int = 500) -> None:
        """Does nothing: a job begins with what its farm has measured of the template."""

    def tune(
        self,
        n_trial: int,
        measure_option: MeasureOption | None = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        si_prefix: str = "G",
    ) -> Job:
        """Measures so many configurations, and returns the job when it has ended.

        Ctrl-C cancels; what was measured is kept.
        """
        format_si_prefix(0, si_prefix)
        self.n_trial = n_trial
        self.ttl = early_stopping
        records: list[Record] = []
        done = 0

        def told(event: Event) -> None:
            if event.record is not None:
                records.append(event.record)
            if event.round is not None and records:
                tell()

        def tell() -> None:
            nonlocal done
            inputs, results = [], []
            for record in records:
                config = config_of(self.task, record)
                if config is not None:
                    inputs.append(MeasureInput(record.target, self.task, config))
                    results.append(result_of(record))
            records.clear()
            for pair in zip(inputs, results):
                done += 1
                if flops_of(*pair) > self.best_flops:
                    self.best_flops, self.best_config = flops_of(*pair), pair[0].config
                    self.best_measure_pair, self.best_iter = pair, done
            for each in callbacks:
                each(self, inputs, results)

        option = measure_option or MeasureOption(LocalBuilder(), LocalRunner())
        with tempfile.TemporaryDirectory(prefix="kiln-template.") as folder:
            path = os.path.join(folder, re.sub(r"\W", "_", self.task.name)[:100] + ".tmpl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.task.template_text)
            self.job = option.client().tune(
                self.task.computation,
                template=path,
                target=self.task.target,
                policy=self.policy,
                parameter=self.parameters or None,
                trials=n_trial,
                early_stopping=early_stopping,
                seed=self.seed,
                callbacks=[told],
                verbose=0,
                served=served_build(option.builder),
                **option.options(),
            )
        if records:
            tell()
        return self.job


class XGBTuner(Tuner):
    """A model that learns from what is measured, and annealing."""

    policy = "template.xgb"

    def __init__(
        self,
        task: Task,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        optimizer: str = "sa",
        diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
        seed: int | None = None,
    ) -> None:
        """`feature_type` is itervar, curve or knob; `loss_type` is reg, rank or rank-binary.

        `num_threads` and `log_interval` do nothing: the search has all cores of the farm's
        scheduler, and its rounds say how they went.
        """
        super().__init__(task, seed)
        del num_threads, log_interval
        for name, value, known in (
            ("feature_type", feature_type, ("itervar", "curve", "knob")),
            ("loss_type", loss_type, ("reg", "rank", "rank-binary")),
            ("optimizer", optimizer, ("sa",)),
        ):
            if value not in known:
                raise InvalidArgumentError(
                    f"XGBTuner: {name} is {value!r}, expected {' or '.join(known)}"
                )
        self.parameters = {
            "template_plan_size": plan_size,
            "template_itervar_features": float(feature_type == "itervar"),
            "template_curve_features": float(feature_type == "curve"),
            "template_rank_loss": float(loss_type != "reg"),
            "template_history": float(feature_type != "knob"),
            "template_diversity": diversity_filter_ratio or 0.0,
        }


class GATuner(Tuner):
    """A genetic search."""

    policy = "template.genetic"

    def __init__(
        self,
        task: Task,
        pop_size: int = 100,
        elite_num: int = 3,
        mutation_prob: float = 0.1,
        seed: int | None = None,
    ) -> None:
        """`pop_size` are the points of a generation; the other two are fixed."""
        super().__init__(task, seed)
        fixed = {"elite_num": (elite_num, 3), "mutation_prob": (mutation_prob, 0.1)}
        refuse(
            "GATuner",
            dict.fromkeys(fixed, "its value is fixed"),
            {key: value if value != usual else None for key, (value, usual) in fixed.items()},
        )
        self.parameters = {"template_population": pop_size}


class IndexBaseTuner(Tuner):
    """Base of tuners that choose points by their indices alone."""

    def __init__(
        self, task: Task, range_idx: tuple[int, int] | None = None, seed: int | None = None
    ) -> None:
        """`range_idx` is refused: the whole space is looked at."""
        super().__init__(task, seed)
        why = {"range_idx": "the whole space is looked at; a filter makes it smaller"}
        refuse(type(self).__name__, why, {"range_idx": range_idx})


class RandomTuner(IndexBaseTuner):
    """By chance."""

    policy = "template.random"


class GridSearchTuner(IndexBaseTuner):
    """In the order of the indices."""

    policy = "template.grid"


class CoordinateDescentTuner(Tuner):
    """One knob after the other."""

    policy = "template.coordinate"


class DropletTuner(CoordinateDescentTuner):
    """One knob after the other, under TVM's name."""

    def __init__(
        self, task: Task, start_position: Any = None, pvalue: float = 0.05, seed: int | None = None
    ) -> None:
        """Both options are refused unless the default: the search begins where it likes."""
        super().__init__(task, seed)
        refuse(
            "DropletTuner",
            dict.fromkeys(("start_position", "pvalue"), "its value is fixed"),
            {"start_position": start_position, "pvalue": None if pvalue == 0.05 else pvalue},
        )
