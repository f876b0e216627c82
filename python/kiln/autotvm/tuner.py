"""Tuners, each of which is a policy of Kiln."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kiln.auto_scheduler import place
from kiln.autotvm.measure import LocalBuilder, LocalRunner, measure_option as options_of
from kiln.autotvm.task import ConfigEntity, Task
from kiln.errors import InvalidArgumentError
from kiln.farm.job import Job
from kiln.farm.values import Event, Record

# A callback: tuner, configurations and records of a round.
Callback = Callable[["Tuner", list[ConfigEntity], list[Record]], None]


def config_of(task: Task, record: Record) -> ConfigEntity | None:
    """The configuration of a record; None for a candidate that the template did not make."""
    found = re.search(r"\bconfig (\d+)", record.origin)
    return task.config_space.get(int(found.group(1))) if found else None


class Tuner:
    """Tunes a task on the farm of auto_scheduler.client()."""

    policy = ""

    def __init__(self, task: Task, seed: int | None = None) -> None:
        """`seed` is of everything random."""
        if not isinstance(task, Task):
            raise InvalidArgumentError(
                f"found a {type(task).__name__}, expected a task of create()"
            )
        self.task = task
        self.seed = seed
        self.n_trial = 0
        self.job: Job | None = None

    def tune(
        self,
        n_trial: int,
        measure_option: Mapping[str, Any] | None = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Job:
        """Measures so many configurations, and returns the job when it has ended.

        Ctrl-C cancels; what was measured is kept.
        """
        self.n_trial = n_trial
        records: list[Record] = []

        def told(event: Event) -> None:
            if event.record is not None:
                records.append(event.record)
            if event.round is not None and records:
                tell()

        def tell() -> None:
            configs = [(config_of(self.task, each), each) for each in records]
            records.clear()
            known = [(config, record) for config, record in configs if config is not None]
            for callback in callbacks:
                callback(self, [config for config, _ in known], [record for _, record in known])

        options = dict(measure_option or options_of(LocalBuilder(), LocalRunner()))
        self.job = place.client().tune(
            self.task.computation,
            template=self.task.name,
            target=self.task.target,
            policy=self.policy,
            trials=n_trial,
            early_stopping=early_stopping,
            seed=self.seed,
            callbacks=[told],
            verbose=0,
            **options,
        )
        if records:
            tell()
        return self.job

    def best_config(self) -> ConfigEntity | None:
        """The fastest configuration of the job; None: the fastest program is not the template's."""
        if self.job is None:
            raise InvalidArgumentError("the tuner has not tuned yet")
        return config_of(self.task, self.job.best())


class XGBTuner(Tuner):
    """A model that learns from what is measured, and annealing."""

    policy = "template.xgb"


class GATuner(Tuner):
    """A genetic search."""

    policy = "template.genetic"


class CoordinateDescentTuner(Tuner):
    """One knob after the other."""

    policy = "template.coordinate"


class RandomTuner(Tuner):
    """By chance."""

    policy = "template.random"


class GridSearchTuner(Tuner):
    """In the order of the indices."""

    policy = "template.grid"
