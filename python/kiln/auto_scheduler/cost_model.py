"""Cost models of a search, and their predictions for states."""

from __future__ import annotations

import dataclasses
import logging
import os
import random
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler.log_database import bound, log_of
from kiln.auto_scheduler.loop_state import steps_of
from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult, measured
from kiln.errors import FailedPreconditionError, InvalidArgumentError, KilnError
from kiln.farm import program
from kiln.farm.values import Event, Record

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask
    from kiln.farm.job import Job

logger = logging.getLogger("kiln.auto_scheduler")
# Score of a state that has no program.
_NO_PROGRAM = float("-inf")
# Parameters of the model with which it trains only once it has a fifth more samples.
_ADAPTIVE = {"full_growth": 0.2, "step_growth": 1000.0}
# The default of num_warmup_sample.
_WARMUP = 100


class CostModel:
    """Base of cost models that Kiln has."""

    policy = ""
    # Name of the model for the engine.
    engine_name = ""

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {}

    def watch(self, event: Event) -> None:
        """Sees the events of a job that the model ranks."""

    def after(self, task: SearchTask, job: Job) -> None:
        """The job has ended; `task` is its first one."""

    def predict(self, task: SearchTask, states: Sequence[Any]) -> list[float]:
        """A score for each state, the higher the faster; minus infinity if it has no program."""
        return self._asked(task, states)[0]

    def _asked(
        self, task: SearchTask, states: Sequence[Any]
    ) -> tuple[list[float], list[list[float]]]:
        told = task.compute_dag.ask(
            "predict",
            target=task.target,
            states=[steps_of(each) for each in states],
            model=self.engine_name,
        )
        scores = [_NO_PROGRAM if each is None else each for each in told["scores"]]
        return scores, told["stages"]


class RandomModel(CostModel):
    """Candidates by chance."""

    policy = "sketch.random"
    engine_name = "random"

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns nothing."""

    def predict(self, search_task: SearchTask, states: Sequence[Any]) -> list[float]:
        """A random score from 0 to 1 for each state."""
        del search_task
        return [random.random() for _ in states]


class XGBModel(CostModel):
    """A model that learns from what is measured, and begins with the analytic model."""

    policy = "sketch.xgb"

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = _WARMUP,
        seed: int | None = None,
        model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        """`verbose_eval`: a line in the log kiln.auto_scheduler says how well it ranked, each time
        so many more trials are measured; 0 = never.

        The model ranks once it has more than `num_warmup_sample` results of all tasks, and the
        analytic model before; the default leaves the number to the search (docs/cost-models.md).
        `model_file` is written when a job has ended, from the records of all its jobs; if it cannot
        be, a warning in the log says why. With `adaptive_training` it trains only on a fifth more
        samples.
        """
        self.verbose_eval = int(verbose_eval)
        self.num_warmup_sample = int(num_warmup_sample)
        self.seed = seed
        self.model_file = os.fspath(model_file) if model_file else None
        self.adaptive_training = adaptive_training
        self._model: str | None = None
        self._folder: str | None = None
        # Ranked records that no line in the log has counted yet.
        self._ranked: list[Record] = []
        # The jobs that it has ranked, whose records make the file.
        self._jobs: list[Job] = []

    @property
    def engine_name(self) -> str:  # type: ignore[override]
        return os.path.abspath(self._model) if self._model else "analytic"

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        named: dict[str, Any] = {"model": self._model}
        parameters = dict(_ADAPTIVE) if self.adaptive_training else {}
        # A model that has learned before ranks at once.
        if self._model is None and self.num_warmup_sample != _WARMUP:
            parameters["min_samples"] = max(1, self.num_warmup_sample + 1)
        if parameters:
            named["model_parameter"] = parameters
        if self.seed is not None:
            named["seed"] = self.seed
        return named

    # ---- while a job runs -------------------------------------------------------------------

    def watch(self, event: Event) -> None:
        if not self.verbose_eval:
            return
        if event.record is not None and event.record.score is not None:
            self._ranked.append(event.record)
        if len(self._ranked) >= self.verbose_eval:
            ranked, self._ranked = self._ranked, []
            agreement = rank_agreement(ranked)
            if agreement is not None:
                logger.info(
                    "the cost model ordered %.0f%% of the pairs of the last %d ranked candidates "
                    "as the device did",
                    100 * agreement,
                    len(ranked),
                )

    def after(self, task: SearchTask, job: Job) -> None:
        if not self.model_file:
            return
        self._jobs.append(job)
        try:
            self._learn_records(task)
            self.save(self.model_file)
        except (KilnError, OSError) as error:
            # The job has succeeded all the same.
            logger.warning("model_file %s is not written: %s", self.model_file, error)

    # ---- by hand ----------------------------------------------------------------------------

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns from pairs anew: a model of these alone.

        KilnError: they are too few for a model.
        """
        if not inputs:
            return
        task = inputs[0].task
        with log_of(zip(inputs, results)) as log:
            self._learn(log, task.workload_key, getattr(task, "compute_dag", None), task.target)

    def update_from_file(self, file_name: str, n_lines: int | None = None) -> None:
        """Learns from the first `n_lines` records of a log, None = all.

        KilnError: they are too few, or none is of an operator of Kiln's.
        """
        from kiln.auto_scheduler.records import RecordReader

        inputs, results = RecordReader(file_name).read_lines(n_lines)
        if not inputs:
            raise InvalidArgumentError(f"{file_name} has no records, expected some to learn from")
        with log_of(zip(inputs, results)) as log:
            self._learn(log, "", None, inputs[0].task.target)

    def predict_stages(self, task: SearchTask, states: Sequence[Any]) -> list[list[float]]:
        """The scores of the stages of each state that stores something; none without a program."""
        return self._asked(task, states)[1]

    def load(self, file_name: str) -> None:
        """Begins with the model in a file of `save` or `kiln model train`."""
        self._model = os.fspath(file_name)

    def save(self, file_name: str) -> None:
        """Writes the model. FailedPreconditionError: it has neither been loaded nor learned."""
        if self._model is None:
            raise FailedPreconditionError("the model has learned nothing yet, so it has no file")
        if os.path.abspath(self._model) != os.path.abspath(file_name):
            shutil.copyfile(self._model, file_name)

    def _learn_records(self, task: SearchTask) -> None:
        records = [each for job in self._jobs for each in job.records(errors=True)]
        texts = {each.workload_key: each.dag for each in records}
        pairs = [_keyed(each, *measured(task, each)) for each in records]
        with log_of(pairs) as log, bound(texts) as flags:
            self._train([log, *flags], task.target)

    def _learn(self, log: str, key: str, dag: Any, target: str) -> None:
        """Trains on the lines of a log, of a computation or of those that operators have."""
        if dag is None:
            self._train([log], target)
            return
        computation = dag.computation
        with bound({key: computation.source}, computation.name) as flags:
            self._train([log, *flags], target)

    def _train(self, words: Sequence[str], target: str) -> None:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="kiln-model.")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        path = os.path.join(self._folder, "model")
        seed = program.flag("seed", self.seed)
        words = [*words, f"--output={path}", f"--target={target.split()[0]}", *seed]
        program.run(["model", "train", *words])
        self._model = path


def _keyed(
    record: Record, given: MeasureInput, result: MeasureResult
) -> tuple[MeasureInput, MeasureResult]:
    """The pair of a record, with the key that the record has."""
    task: Any = given.task
    task = dataclasses.replace(task, workload_key=record.workload_key)
    return MeasureInput(task, given.state), result


def rank_agreement(records: Sequence[Record]) -> float | None:
    """The share of pairs that scores order as costs do; None without pairs to compare."""
    known = [
        (each.score, each.cost_s)
        for each in records
        if each.score is not None and each.cost_s is not None
    ]
    pairs = right = 0
    for at, (score, cost) in enumerate(known):
        for other_score, other_cost in known[:at]:
            if cost != other_cost and score != other_score:
                pairs += 1
                right += (cost < other_cost) == (score > other_score)
    return right / pairs if pairs else None
