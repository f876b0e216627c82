"""Cost models and sketch rules that are Python: the process serves them while a job runs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler.cost_model import CostModel
from kiln.auto_scheduler.loop_state import State, StateObject, steps_of
from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult, own_build
from kiln.auto_scheduler.search_policy import SearchCallback
from kiln.errors import InvalidArgumentError
from kiln.farm.serving import Applied, Programs, Results, Served

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask

# Number of MeasureErrorNo for a program that failed; the served call does not say why.
_FAILED = 8


class PythonBasedModel(CostModel):
    """A cost model in Python. Subclasses have `predict` and `update`, as in TVM.

    A subclass that has `predict_rows` and `update_rows` instead gets the features of Kiln as a
    matrix of numpy without a copy, the analytic model's estimates beside them, and no states: it is
    faster by far.
    """

    policy = "sketch.xgb"

    @property
    def engine_name(self) -> str:  # type: ignore[override]
        """InvalidArgumentError: the engine has no such model."""
        raise InvalidArgumentError(
            f"{type(self).__name__} ranks within a job, expected a model of Kiln: XGBModel or "
            "RandomModel"
        )

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns from what was measured since the last call. Costs that were told before may come
        again, corrected by further readings.
        """
        raise NotImplementedError

    def predict(self, task: SearchTask, states: Sequence[Any]) -> Sequence[float]:
        """A score for each state, the higher the faster; minus infinity = not to be measured."""
        raise NotImplementedError

    def predict_stages(self, task: SearchTask, states: Sequence[Any]) -> Sequence[Any]:
        """As in TVM; the search does not ask for stages."""
        raise NotImplementedError

    def predict_rows(self, task: SearchTask, programs: Programs) -> Sequence[float]:
        """As predict, for feature rows."""
        raise NotImplementedError

    def update_rows(self, task: SearchTask, results: Results) -> None:
        """As update, for feature rows, with costs and throughputs."""
        raise NotImplementedError


class PreloadCustomSketchRule(SearchCallback):
    """A sketch rule in Python, which is tried before the rules of Kiln.

    `meet_condition_func(search_policy, state, stage_id)` returns PASS, APPLY or
    APPLY_AND_SKIP_REST. `apply_func(search_policy, state, stage_id)` returns pairs of a state and
    its next stage, [[state, stage_id - 1], ...]. States are State or StateObject. Both are called
    for all states of a level of the sketches in one go.
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Callable[[Any, StateObject, int], int],
        apply_func: Callable[[Any, StateObject, int], Sequence[Any]],
        rule_name: str = "CustomSketchRule",
    ) -> None:
        for name, each in (("meet_condition_func", meet_condition_func), ("apply_func", apply_func)):
            if not callable(each):
                raise InvalidArgumentError(
                    f"PreloadCustomSketchRule: {name} is {each!r}, expected a function"
                )
        self.meet_condition_func = meet_condition_func
        self.apply_func = apply_func
        self.rule_name = rule_name


class _ServedModel:
    """A PythonBasedModel as the stream asks it."""

    def __init__(self, model: PythonBasedModel, tasks: Sequence[SearchTask]) -> None:
        own = type(model)
        self.reads_rows = own.predict_rows is not PythonBasedModel.predict_rows
        self.reads_steps = not self.reads_rows
        self._model = model
        self._tasks = tasks

    def predict(self, programs: Programs) -> Sequence[float]:
        task = self._tasks[programs.task]
        if self.reads_rows:
            return self._model.predict_rows(task, programs)
        return self._model.predict(task, _states(task, programs))

    def update(self, results: Results) -> None:
        task = self._tasks[results.programs.task]
        if self.reads_rows:
            self._model.update_rows(task, results)
            return
        inputs = [
            MeasureInput(task, State(state, task.compute_dag))
            for state in _states(task, results.programs)
        ]
        self._model.update(inputs, [_result(cost) for cost in results.costs_s])


def _states(task: SearchTask, programs: Programs) -> list[StateObject]:
    return [StateObject(task.compute_dag, json.loads(steps)) for steps in programs.steps]


def _result(cost_s: float) -> MeasureResult:
    if math.isnan(cost_s):
        return MeasureResult([1e10], _FAILED, "the program failed", 0.0, time.time())
    return MeasureResult([cost_s], 0, "", cost_s, time.time())


class _ServedRule:
    """A PreloadCustomSketchRule as the stream asks it."""

    def __init__(self, rule: PreloadCustomSketchRule, policies: Sequence[Any]) -> None:
        self.name = rule.rule_name
        self._rule = rule
        self._policies = policies

    def apply(self, task: int, steps: str, stage: int) -> Applied | None:
        rule, policy = self._rule, self._policies[task]
        state = StateObject(policy.search_task.compute_dag, json.loads(steps))
        answer = rule.meet_condition_func(policy, state, stage)
        if answer not in (rule.PASS, rule.APPLY, rule.APPLY_AND_SKIP_REST):
            raise InvalidArgumentError(
                f"meet_condition_func of {self.name} returned {answer!r}, expected PASS (0), "
                "APPLY (1) or APPLY_AND_SKIP_REST (2)"
            )
        if answer == rule.PASS:
            return None
        made = [
            (json.dumps(steps_of(each)), int(after))
            for each, after in rule.apply_func(policy, state, stage)
        ]
        return Applied(made, skip_rest=answer == rule.APPLY_AND_SKIP_REST)


def served_of(
    policies: Sequence[Any],
    objective: Callable[[Sequence[float]], float] | None = None,
    builder: Any = None,
) -> Served | None:
    """What a job of these policies, one for each task, has this process serve; None = nothing.

    The model and the rules are those of the first policy. `builder` may have a build function.
    """
    first = policies[0]
    tasks = [policy.search_task for policy in policies]
    model = first.program_cost_model
    served_model = _ServedModel(model, tasks) if isinstance(model, PythonBasedModel) else None
    rules = [
        _ServedRule(each, policies)
        for each in first.init_search_callbacks
        if isinstance(each, PreloadCustomSketchRule)
    ]
    build, build_jobs = own_build(builder)
    if served_model is None and not rules and objective is None and build is None:
        return None
    return Served(served_model, rules, objective, build=build, build_jobs=build_jobs)
