"""Policies and cost models, by which a task names how it is searched."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kiln.farm import program
from kiln.auto_scheduler.refuse import refuse
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import words_of

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask


class RandomModel:
    """Candidates by chance."""

    policy = "sketch.random"

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {}


class XGBModel:
    """A model that learns from what is measured, and begins with the analytic model."""

    policy = "sketch.xgb"

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int | None = None,
        seed: int | None = None,
        model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        """`verbose_eval` and `adaptive_training` do nothing: training is a part of a round."""
        del verbose_eval, adaptive_training
        refuse(
            "XGBModel",
            {
                "num_warmup_sample": "the analytic model ranks the first rounds",
                "seed": "SketchPolicy(seed=) is the seed of everything random",
                "model_file": "XGBModel.load begins with a trained model",
            },
            {"num_warmup_sample": num_warmup_sample, "seed": seed, "model_file": model_file},
        )
        self._model: str | None = None

    def load(self, file_name: str) -> None:
        """Begins with the model in a file of `kiln model train`, or one that the farm keeps."""
        self._model = file_name

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {"model": self._model}


class PreloadMeasuredStates:
    """Begins with the measurements of a log, which are not made again."""

    def __init__(self, filename: str) -> None:
        self.filename = filename


@dataclass(frozen=True)
class Sketch:
    """A schedule with blanks."""

    # Steps as in a log, with 0 for a blank.
    steps: str
    # Blanks: {"axis", "extent", "lengths", "ways", "values"} each.
    blanks: tuple[dict[str, Any], ...]
    # Ways to fill the blanks.
    tile_sizes: int

    def fill(self, lengths: Sequence[Sequence[int]]) -> list[Any]:
        """Steps of a schedule, with a list of lengths for each blank, for measure().

        InvalidArgumentError: a list has not the blank's number of lengths, or values other than
        those of the blank, or a product that does not divide its extent.
        """
        if len(lengths) != len(self.blanks):
            raise InvalidArgumentError(
                f"{len(lengths)} lists of lengths are given, expected {len(self.blanks)}"
            )
        steps = json.loads(self.steps)
        splits = [step for step in steps if step[0] == "SP" and 0 in step[4]]
        for step, blank, given in zip(splits, self.blanks, lengths):
            values = [int(each) for each in given]
            is_known = all(each in blank["values"] for each in values)
            if len(values) != blank["lengths"] or not is_known:
                raise InvalidArgumentError(
                    f"{blank['axis']}: lengths {values}, expected {blank['lengths']} of "
                    f"{blank['values']}"
                )
            if blank["extent"] % math.prod(values):
                raise InvalidArgumentError(
                    f"{blank['axis']}: the product of {values} does not divide {blank['extent']}"
                )
            step[4] = values
        return steps


class EmptyPolicy:
    """The unscheduled loops, once."""

    def __init__(
        self, task: SearchTask, init_search_callbacks: Sequence[Any] | None = None
    ) -> None:
        self.task = task
        self.init_search_callbacks = list(init_search_callbacks or [])

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {"policy": "empty"}


class SketchPolicy:
    """Evolution of sketches."""

    def __init__(
        self,
        task: SearchTask,
        program_cost_model: Any = None,
        params: Mapping[str, float] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        """`params` are those of docs/search-parameters.md. PreloadMeasuredStates is a callback."""
        self.task = task
        self.program_cost_model = program_cost_model or XGBModel()
        if not hasattr(self.program_cost_model, "policy"):
            raise InvalidArgumentError(
                f"program_cost_model is a {type(program_cost_model).__name__}, expected XGBModel "
                "or RandomModel"
            )
        self.params = dict(params or {})
        self.seed = seed
        self.verbose = verbose
        self.init_search_callbacks = list(init_search_callbacks or [])
        for each in self.init_search_callbacks:
            if not isinstance(each, PreloadMeasuredStates):
                raise InvalidArgumentError(
                    f"init_search_callbacks has a {type(each).__name__}, expected "
                    "PreloadMeasuredStates"
                )

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        model = self.program_cost_model
        return {
            "policy": model.policy,
            "parameter": self.params or None,
            "seed": self.seed,
            **model.options(),
        }

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """The sketches of the task, without a job."""
        with words_of([self.task.compute_dag.computation]) as words:
            command = ["show", *words, "--sketches", f"--target={self.task.target}"]
            if print_for_debug:
                print(program.run(command))
            found = program.run_json(command)
        return [Sketch(each["steps"], tuple(each["blanks"]), each["tile_sizes"]) for each in found]
