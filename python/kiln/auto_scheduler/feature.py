"""Feature rows of programs, which cost models see: one for each store (docs/cost-models.md).

The first 164 columns are those of Ansor under TVM's names; Kiln's own follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from kiln.auto_scheduler.loop_state import steps_of
from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult, TaskId, id_of, tasks_of
from kiln.auto_scheduler.records import RecordReader
from kiln.auto_scheduler.refuse import refuse
from kiln.farm.engine import engine

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask

# The most states of one question, whose answer has some kilobytes for each row.
_STATES_AT_ONCE = 256
# A computation of which nothing but the names of columns is asked.
_ANY = "input x: float32[1]\ny[i: 1] = x[i] + 1.0\n"


def _check_buffers(max_n_bufs: int | None) -> None:
    given = None if max_n_bufs in (None, 5) else max_n_bufs
    refuse("features", {"max_n_bufs": "rows have five buffers"}, {"max_n_bufs": given})


def get_per_store_feature_names(max_n_bufs: int | None = None) -> list[str]:
    """The names of the columns, in order."""
    _check_buffers(max_n_bufs)
    return engine().ask("features", _ANY, "llvm")["names"]


def get_per_store_features_from_states(
    states: Sequence[Any], task: SearchTask, max_n_bufs: int | None = None
) -> list[numpy.ndarray]:
    """A matrix for each state, with a row for each store; no row if it has no program."""
    _check_buffers(max_n_bufs)
    steps = [steps_of(each) for each in states]
    told = task.compute_dag.ask("features", target=task.target, states=steps)
    columns = len(told["names"])
    return [numpy.array(each, numpy.float32).reshape(-1, columns) for each in told["rows"]]


def get_per_store_features_from_measure_pairs(
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
    skip_first_n_feature_extraction: int = 0,
    max_n_bufs: int | None = None,
) -> tuple[list[numpy.ndarray], numpy.ndarray, numpy.ndarray]:
    """Features, throughputs from 0 to 1 within each task, and numbers of the tasks."""
    pairs = list(zip(inputs, results))
    wholes = tasks_of([given for given, _ in pairs])
    numbers: dict[TaskId, int] = {}
    tasks = [numbers.setdefault(id_of(each), len(numbers)) for each in wholes]
    costs = [result.mean_s for _, result in pairs]
    features = [numpy.zeros((0, 0), numpy.float32) for _ in pairs]
    asked = range(skip_first_n_feature_extraction, len(pairs))
    for number in numbers.values():
        at_once = [at for at in asked if tasks[at] == number]
        for first in range(0, len(at_once), _STATES_AT_ONCE):
            part = at_once[first : first + _STATES_AT_ONCE]
            states = [pairs[at][0].state for at in part]
            found = get_per_store_features_from_states(states, wholes[part[0]], max_n_bufs)
            for at, rows in zip(part, found):
                features[at] = rows
    ids = numpy.array(tasks, numpy.int32)
    best = {number: min(c for c, t in zip(costs, tasks) if t == number) for number in set(tasks)}
    throughputs = numpy.array([best[t] / c for c, t in zip(costs, tasks)], numpy.float32)
    return features, throughputs, ids


def get_per_store_features_from_file(
    filename: str, max_lines: int, max_n_bufs: int | None = None
) -> tuple[list[numpy.ndarray], numpy.ndarray, numpy.ndarray]:
    """The same of the first lines of a log, whose keys registered functions have."""
    inputs, results = RecordReader(filename).read_lines(max_lines)
    return get_per_store_features_from_measure_pairs(inputs, results, 0, max_n_bufs)
