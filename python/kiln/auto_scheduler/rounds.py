"""What jobs tell callbacks of TVM's kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler.measuring import measured
from kiln.errors import InvalidArgumentError
from kiln.farm.values import Event, Record

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask


class Rounds:
    """Hands what was measured to callbacks of TVM's kind, a round at a time.

    RecordToFile, which has `record`, gets each trial at once.
    """

    def __init__(self, tasks: Sequence[SearchTask], callbacks: Sequence[Any], policy: Any) -> None:
        for each in callbacks:
            if not hasattr(each, "callback"):
                raise InvalidArgumentError(
                    f"measure_callbacks has a {type(each).__name__}, expected RecordToFile or a "
                    "PythonBasedMeasureCallback"
                )
        self._tasks = tasks
        self._at_once = [each for each in callbacks if hasattr(each, "record")]
        self._by_round = [each for each in callbacks if not hasattr(each, "record")]
        self._policy = policy
        self._records: list[Record] = []

    def __enter__(self) -> Rounds:
        return self

    def __exit__(self, *_: Any) -> None:
        self._tell()

    def __call__(self, event: Event) -> None:
        if event.record is not None:
            self._records.append(event.record)
            for each in self._at_once:
                each.record(*measured(self._tasks[event.record.task], event.record))
        if event.round is not None:
            self._tell()

    def _tell(self) -> None:
        records, self._records = self._records, []
        if not records or not self._by_round:
            return
        pairs = [measured(self._tasks[record.task], record) for record in records]
        for each in self._by_round:
            each.callback(self._policy, [given for given, _ in pairs], [one for _, one in pairs])
