"""Policies, by which a task names how it is searched, and the parts of a search on their own."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler.cost_model import CostModel, XGBModel
from kiln.auto_scheduler.loop_state import State, StateObject, steps_of
from kiln.errors import InvalidArgumentError
from kiln.farm import program
from kiln.farm.computation import words_of

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask


# Samples of a call, if the parameters do not say how many.
_POPULATION = 512


class SearchCallback:
    """Base of what is given to a policy before its search."""


class PreloadMeasuredStates(SearchCallback):
    """Begins with the measurements of a log, which are not made again."""

    def __init__(self, filename: str) -> None:
        self.filename = filename


class Sketch(State):
    """A state with blanks."""

    def __init__(
        self, state_object: StateObject, dag: Any, blanks: Sequence[dict[str, Any]], points: float
    ) -> None:
        super().__init__(state_object, dag)
        # {"axis", "extent", "lengths", "ways", "values"} each.
        self.blanks = tuple(blanks)
        # Ways to fill the blanks.
        self.tile_sizes = points

    def fill(self, lengths: Sequence[Sequence[int]]) -> State:
        """A state with a list of lengths for each blank, for measure().

        InvalidArgumentError: a list has not the blank's number of lengths, or values other than
        those of the blank, or a product that does not divide its extent.
        """
        if len(lengths) != len(self.blanks):
            raise InvalidArgumentError(
                f"{len(lengths)} lists of lengths are given, expected {len(self.blanks)}"
            )
        steps = self.transform_steps
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
        return State(StateObject(self.compute_dag, steps), self.compute_dag)


class SearchPolicy:
    """Base of policies."""

    task: SearchTask
    verbose = 1
    # None: it ranks by no model.
    program_cost_model: CostModel | None = None
    init_search_callbacks: Sequence[SearchCallback] = ()

    @property
    def search_task(self) -> SearchTask:
        """The task."""
        return self.task

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        raise NotImplementedError

    def set_verbose(self, verbose: int) -> None:
        """0 = silent, 1 = a line a round, 2 = a line a trial as well."""
        self.verbose = verbose


def check_policy(name: str, policy: Any, task: SearchTask) -> None:
    """InvalidArgumentError: `policy`, which is called `name`, is none, or is one of another task."""
    if not isinstance(policy, SearchPolicy):
        raise InvalidArgumentError(
            f"{name} is a {type(policy).__name__}, expected a SketchPolicy or an EmptyPolicy"
        )
    found = policy.search_task
    if (found.workload_key, found.target) != (task.workload_key, task.target):
        raise InvalidArgumentError(f"{name} is of {found}, expected a policy of {task}")


class EmptyPolicy(SearchPolicy):
    """The unscheduled loops, once."""

    def __init__(
        self, task: SearchTask, init_search_callbacks: Sequence[Any] | None = None
    ) -> None:
        self.task = task
        self.init_search_callbacks = list(init_search_callbacks or [])

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {"policy": "empty"}


class SketchPolicy(SearchPolicy):
    """Evolution of sketches."""

    # Parameters that TVM has as well, with Kiln's values; docs/search-parameters.md lists all.
    DEFAULT_PARAMS = {
        "eps_greedy": 0.05,
        "sample_init_min_population": 50,
        "sample_init_use_measured_ratio": 0.2,
        "evolutionary_search_population": 2048,
        "evolutionary_search_num_iters": 4,
        "evolutionary_search_mutation_prob": 0.85,
        "max_innermost_split_factor": 64,
        "max_vectorize_size": 64,
        "disable_change_compute_location": 0,
    }

    program_cost_model: CostModel

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
        if not isinstance(self.program_cost_model, CostModel):
            raise InvalidArgumentError(
                f"program_cost_model is a {type(program_cost_model).__name__}, expected XGBModel, "
                "RandomModel or a PythonBasedModel"
            )
        self.params = dict(params or {})
        self.seed = seed
        self._random = random.Random(seed)
        self.verbose = verbose
        self.init_search_callbacks = list(init_search_callbacks or [])
        for each in self.init_search_callbacks:
            if not isinstance(each, SearchCallback):
                raise InvalidArgumentError(
                    f"init_search_callbacks has a {type(each).__name__}, expected "
                    "PreloadMeasuredStates or PreloadCustomSketchRule"
                )

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions.

        Without a seed each search has another one, as in TVM: it looks for new programs, while a
        farm does not search again what it has searched by the same seed.
        """
        model = self.program_cost_model
        named = {"policy": model.policy, "parameter": self.params or None, **model.options()}
        if self.seed is None:
            return {"seed": self._random.randrange(2**62), **named}
        return {**named, "seed": self.seed}

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """The sketches of the task, without a job."""
        dag = self.task.compute_dag
        with words_of([dag.computation]) as words:
            command = ["show", *words, "--sketches", f"--target={self.task.target}"]
            if print_for_debug:
                print(program.run(command))
            found = program.run_json(command)
        return [
            Sketch(
                StateObject(dag, json.loads(each["steps"])), dag, each["blanks"], each["tile_sizes"]
            )
            for each in found
        ]

    def sample_initial_population(self) -> list[State]:
        """Random states of the sketches that have a program, without a job.

        As many as the parameter sample_init_population says, 512; another call samples others.
        """
        count = int(self.params.get("sample_init_population", _POPULATION))
        told = self._asked("sample", count=count)
        return [self._state(steps) for steps in told["states"]]

    def evolutionary_search(self, init_populations: Sequence[Any], out_size: int) -> list[State]:
        """The best states that evolution of these finds by the cost model, the best one first."""
        told = self._asked(
            "evolve",
            count=out_size,
            states=[steps_of(each) for each in init_populations],
            model=self.program_cost_model.engine_name,
        )
        return [self._state(steps) for steps in told["states"]]

    def _state(self, steps: list[Any]) -> State:
        return State(StateObject(self.task.compute_dag, steps), self.task.compute_dag)

    def _asked(self, do: str, **fields: Any) -> dict[str, Any]:
        """What the engine says, each time by another seed of the policy's."""
        seed = self._random.randrange(2**62)
        return self.task.compute_dag.ask(
            do, target=self.task.target, seed=seed, parameters=self.params, **fields
        )
