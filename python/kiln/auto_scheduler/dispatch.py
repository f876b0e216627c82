"""Contexts that say which schedule a computation gets, and networks compiled with them."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kiln.farm import program
from kiln.auto_scheduler import place
from kiln.auto_scheduler.log_database import bound, database_of, log_of
from kiln.auto_scheduler.loop_state import State, StateObject, steps_of
from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult, RecordedTask, result_of
from kiln.auto_scheduler.nested import NestedContext
from kiln.auto_scheduler.records import best_of, load_records
from kiln.auto_scheduler.target_kind import kind_of
from kiln.errors import InvalidArgumentError
from kiln.farm.client import Client
from kiln.farm.engine import engine
from kiln.farm.job import compiled
from kiln.network import Network

Pair = tuple[MeasureInput, MeasureResult]

# Cost of a schedule that a user has set: no record is faster.
_SET_S = 1e-12
_SQLITE = b"SQLite format 3"


class DispatchContext(NestedContext):
    """Says which schedule a computation gets, while a `with` block runs; the innermost first.

    For a context of your own, override query.
    """

    current: ClassVar[DispatchContext]
    _outer: DispatchContext | None = None

    def query(
        self,
        target: Any,
        workload_key: str,
        has_complex_op: bool = True,
        dag: Any = None,
        func_name: str = "",
    ) -> State | None:
        """The schedule of a computation: this context's, or else that of the one around it.

        InvalidArgumentError: the target names no kind.
        """
        kind_of(target)
        found = self._query_inside(target, workload_key, func_name)
        if found is None and self._outer is not None:
            return self._outer.query(target, workload_key, has_complex_op, dag, func_name)
        return self._with_dag(found, dag)

    def update(self, target: Any, workload_key: str, state: Any) -> None:
        """Sets the schedule of a computation."""
        raise NotImplementedError

    def _query_inside(self, target: Any, workload_key: str, func_name: str) -> State | None:
        del target, workload_key, func_name
        return None

    @staticmethod
    def _with_dag(found: State | None, dag: Any) -> State | None:
        if found is None or not hasattr(dag, "ask"):
            return found
        return State(StateObject(dag, found.transform_steps), dag)

    def pairs_of(self, target: str, keys: Iterable[str]) -> list[Pair]:
        """What build() takes for these computations: the answers of query as records."""
        pairs = []
        for key in keys:
            found = self.query(target, key)
            if found is not None:
                pairs.append(_pair(target, key, found, _SET_S))
        return pairs


class FallbackContext(DispatchContext):
    """The outermost context: it knows what was set, and build() takes the farm's records."""

    def __init__(self) -> None:
        self._set: dict[tuple[str, str], list[Any]] = {}

    def _query_inside(self, target: Any, workload_key: str, func_name: str) -> State | None:
        del func_name
        steps = self._set.get((kind_of(target), workload_key))
        return None if steps is None else State(StateObject(None, steps), None)

    def update(self, target: Any, workload_key: str, state: Any) -> None:
        self._set[kind_of(target), workload_key] = steps_of(state)


DispatchContext.current = FallbackContext()


class ApplyHistoryBest(DispatchContext):
    """While the block runs, build() takes its programs from these records alone.

    Blocks may stand in each other: a computation that the inner records do not have gets the
    schedule of the outer ones.
    """

    def __init__(
        self, records: Any, n_lines: int | None = None, include_compatible: bool = False
    ) -> None:
        """Of a log, several logs, pairs, a database of Kiln (*.db), or a farm (kiln.Client).

        `n_lines` takes the first ones alone. With `include_compatible`, a task without a program
        takes one of other extents, or one that is chosen without measuring.
        """
        self.pairs: list[Pair] = []
        self.include_compatible = include_compatible
        self._set: list[Pair] = []
        self.load(records, n_lines)

    def load(self, records: Any, n_lines: int | None = None) -> None:
        """Adds records."""
        listed = records if _is_paths(records) else [records]
        for each in listed:
            self.pairs += [pair for _, pair in zip(range(n_lines or 2**62), _pairs(each))]

    def update(self, target: Any, workload_key: str, state: Any) -> None:
        self._set.append(_pair(str(target), workload_key, state, _SET_S))

    def _query_inside(self, target: Any, workload_key: str, func_name: str) -> State | None:
        del func_name
        # The last update counts.
        for given, _ in reversed(self._set):
            if (kind_of(given.task.target), given.task.workload_key) == (kind_of(target), workload_key):
                return given.state
        found, _ = best_of(self.pairs, workload_key, kind_of(target), self.include_compatible)
        return None if found is None else found.state

    def pairs_of(self, target: str, keys: Iterable[str]) -> list[Pair]:
        # All records go to the compiler, which also finds those of other extents.
        known = {given.task.workload_key for given, _ in self.pairs + self._set}
        outer = self._outer.pairs_of(target, set(keys) - known) if self._outer else []
        newest = {
            (kind_of(given.task.target), given.task.workload_key): (given, result)
            for given, result in self._set
        }
        return [*self.pairs, *newest.values(), *outer]


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """As ApplyHistoryBest; what no record has is sampled, and measured if `num_measure` says so."""

    def __init__(
        self,
        records: Any,
        sample_simple_workloads: bool = False,
        cost_model_file: str | None = None,
        num_measure: int = -1,
    ) -> None:
        """`records` may be None. `num_measure` = -1: the best of the cost model's, not measured."""
        self.sample_simple_workloads = sample_simple_workloads
        self.cost_model_file = cost_model_file
        self.num_measure = num_measure
        super().__init__([] if records is None else records, None, True)

    def query(
        self,
        target: Any,
        workload_key: str,
        has_complex_op: bool = True,
        dag: Any = None,
        func_name: str = "",
    ) -> State | None:
        """The schedule of a record, or else a sample of `dag`, which is kept."""
        found = super().query(target, workload_key, has_complex_op, dag, func_name)
        is_wanted = has_complex_op or self.sample_simple_workloads
        if found is not None or not is_wanted or not hasattr(dag, "ask"):
            return found
        return self._sample(str(target), workload_key, dag)

    def _sample(self, target: str, workload_key: str, dag: Any) -> State:
        from kiln.auto_scheduler.cost_model import XGBModel
        from kiln.auto_scheduler.measuring import measure
        from kiln.auto_scheduler.search_policy import SketchPolicy
        from kiln.auto_scheduler.search_task import SearchTask

        model = XGBModel()
        if self.cost_model_file:
            model.load(self.cost_model_file)
        task = SearchTask(compute_dag=dag, workload_key=workload_key, target=target)
        policy = SketchPolicy(task, model, {"sample_init_population": 64}, seed=1)
        states = policy.sample_initial_population()
        scores = model.predict(task, states)
        ranked = [states[at] for at in sorted(range(len(states)), key=lambda at: -scores[at])]
        if self.num_measure > 0:
            inputs, results = measure(task, ranked[: self.num_measure])
            self.pairs += [pair for pair in zip(inputs, results) if pair[1].error_no == 0]
            found = self._query_inside(target, workload_key, "")
            if found is not None:
                return State(StateObject(dag, found.transform_steps), dag)
        self.update(target, workload_key, ranked[0])
        return ranked[0]


def _pair(target: str, key: str, state: Any, cost_s: float) -> Pair:
    task = RecordedTask(key, target, [0] * 8)
    given = MeasureInput(task, State(StateObject(None, steps_of(state)), None))
    return given, MeasureResult([cost_s], 0, "", 0.0, 0)


def _is_paths(records: Any) -> bool:
    return isinstance(records, (list, tuple)) and all(
        isinstance(each, (str, os.PathLike)) for each in records
    )


def _pairs(records: Any) -> Iterator[Pair]:
    if isinstance(records, Client):
        for each in records.records():
            task = RecordedTask(each.workload_key, each.target, list(each.hardware.values()))
            state = State(StateObject(None, each.step_list), None)
            yield MeasureInput(task, state), result_of(each)
    elif isinstance(records, (str, os.PathLike)):
        yield from _pairs_of_file(os.fspath(records))
    else:
        yield from records


def _pairs_of_file(path: str) -> Iterator[Pair]:
    try:
        with open(path, "rb") as file:
            is_database = file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {path}: {error}") from error
    if not is_database:
        yield from load_records(path)
        return
    with tempfile.TemporaryDirectory(prefix="kiln-history.") as folder:
        log = os.path.join(folder, "log.json")
        words = ["records", "export", f"--output={log}", "--extended"]
        program.run(words, {"KILN_DB": os.path.abspath(path)})
        for given, result in load_records(log):
            yield _with_packed_key(given), result


def _with_packed_key(given: MeasureInput) -> MeasureInput:
    """A line of an export says by an option what a key of Kiln's says itself."""
    task = given.task
    if task.layout_rewrite_option != 2 or not isinstance(task, RecordedTask):
        return given
    packed = dataclasses.replace(task, workload_key=f'{task.workload_key[:-1]}, "packed"]')
    return MeasureInput(packed, given.state)


def _texts(network: str, target: str, flags: list[str]) -> dict[str, str]:
    """The computations of a network by their keys."""
    words = ["tasks", network, "--dag", "--include-simple-tasks", f"--target={target}", *flags]
    return {
        variant["workload_key"]: variant["dag"]
        for task in program.run_json(words)
        for variant in task["variants"]
    }


def _built(network: str, target: str, flags: list[str], context: DispatchContext) -> Network:
    """The network with the schedules of a context."""
    texts = _texts(network, target, flags)
    pairs = context.pairs_of(target, texts)
    known = {given.task.workload_key for given, _ in pairs}
    used = {key: text for key, text in texts.items() if key in known}
    with (
        log_of(pairs) as log,
        bound(used) as texts_of_keys,
        database_of(log, texts_of_keys) as environment,
    ):
        strict = [] if getattr(context, "include_compatible", False) else ["--strict"]
        return compiled([network, f"--target={target}", *strict, *flags], environment, None)


def build(network: str, target: Any, **named: Any) -> Network:
    """A network ("network:NAME" or an ONNX file), compiled: what relay.build is to TVM.

    With the schedules of the contexts around it, else those of the farm's records. `named` are
    flags that `kiln tasks` and `kiln compile` both have: batch=8. KilnError: a task has no program.
    """
    if not isinstance(network, str):
        raise InvalidArgumentError(
            f"network is a {type(network).__name__}, expected a name or file"
        )
    flags = [word for key, value in named.items() for word in program.flag(key, value)]
    context = DispatchContext.current
    if not isinstance(context, FallbackContext):
        return _built(network, str(target), flags, context)
    return place.client().compile(network, target=str(target), **named)


def is_auto_scheduler_enabled() -> bool:
    """Whether a context is around the call that says which schedules networks get."""
    return not isinstance(DispatchContext.current, FallbackContext)


def decode_workload_key(workload_key: str) -> tuple[str | None, tuple[Any, ...] | None]:
    """The name or hash of a key, and all of its arguments in one tuple."""

    def flat(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            for each in value:
                yield from flat(each)
        else:
            yield value

    try:
        key = json.loads(workload_key)
    except ValueError:
        return workload_key, None
    if not isinstance(key, list) or not key:
        return workload_key, None
    return key[0], tuple(flat(key[1:]))


def calc_workload_dis_factor(
    target_workload_pair: tuple[Any, Any], workload_pair: tuple[Any, Any]
) -> float:
    """How far a workload's arguments are from another one's: 1 = equal, infinity = of no use."""
    name, args = target_workload_pair
    other, others = workload_pair
    found = engine().ask_keys(json.dumps([name, *args]), json.dumps([other, *others]))
    return float("inf") if found is None else found
