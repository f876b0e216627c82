"""Contexts that say which configuration a template gets where it is called."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, ClassVar

from kiln.auto_scheduler.nested import NestedContext
from kiln.auto_scheduler.target_kind import kind_of
from kiln.autotvm.measure import MeasureInput, MeasureResult
from kiln.autotvm.space import ConfigEntity, FallbackConfigEntity
from kiln.errors import InvalidArgumentError

Pair = tuple[MeasureInput, MeasureResult]


def _kind(target: Any) -> str | None:
    return kind_of(target) if target is not None else None


def key_of(workload: Any) -> str:
    """A workload as a text, equal for equal ones of a call and of a log."""
    from kiln.autotvm.task import serialize_args

    return json.dumps([workload[0], *serialize_args(workload[1:])])


class DispatchContext(NestedContext):
    """Says which configuration a workload gets, while a `with` block runs; the innermost first."""

    current: ClassVar[DispatchContext]
    _outer: DispatchContext | None = None

    def query(self, target: Any, workload: Any) -> Any:
        """The configuration of a workload: this context's, or else that of the one around it."""
        found = self._query_inside(target, workload)
        if found is None and self._outer is not None:
            return self._outer.query(target, workload)
        return found

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        """Sets the configuration of a workload."""
        raise NotImplementedError

    def _query_inside(self, target: Any, workload: Any) -> Any:
        raise NotImplementedError

    def target_of(self, workload: Any) -> str | None:
        """The target of the records of a workload, where the caller names none."""
        return self._outer.target_of(workload) if self._outer else None


class FallbackContext(DispatchContext):
    """The outermost context: a template gets what it says itself, by fallback_split."""

    def __init__(self) -> None:
        self._set: dict[tuple[str | None, str], Any] = {}

    def _query_inside(self, target: Any, workload: Any) -> Any:
        found = self._set.get((_kind(target), key_of(workload))) if workload is not None else None
        return FallbackConfigEntity() if found is None else found

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self._set[_kind(target), key_of(workload)] = cfg

    def clear_cache(self, target: Any, workload: Any) -> None:
        """Forgets what was set for a workload."""
        self._set.pop((_kind(target), key_of(workload)), None)


DispatchContext.current = FallbackContext()


class ApplyConfig(DispatchContext):
    """One configuration for whatever is called."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return self._config

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self._config = cfg


class ApplyFixedConfig(DispatchContext):
    """A configuration for each task of a list, or one for each by its name."""

    def __init__(self, tasks: Any, schedule_names: Any) -> None:
        """`schedule_names` are ConfigEntities, one for each task, or one for all of them.

        InvalidArgumentError: names of TVM's schedules are given, which Kiln does not have.
        """
        listed = schedule_names if isinstance(schedule_names, (list, tuple)) else [schedule_names]
        listed = list(listed) * (len(tasks) if len(listed) == 1 else 1)
        if len(listed) != len(tasks) or not all(isinstance(e, ConfigEntity) for e in listed):
            raise InvalidArgumentError(
                "schedule_names: expected a ConfigEntity for each task: Kiln has no schedules by "
                "name"
            )
        self._configs = {key_of(task.workload): each for task, each in zip(tasks, listed)}

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return self._configs.get(key_of(workload)) if workload is not None else None

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self._configs[key_of(workload)] = cfg


class ApplyHistoryBest(DispatchContext):
    """The best configurations of logs."""

    def __init__(self, records: str | os.PathLike[str] | Iterable[Any] | None) -> None:
        """Of a log, several logs, or pairs of record.load_from_file."""
        self._best: dict[tuple[str, str], tuple[float, ConfigEntity, str]] = {}
        self._set: dict[tuple[str | None, str], Any] = {}
        if records is not None:
            self.load(records)

    def load(self, records: str | os.PathLike[str] | Iterable[Any]) -> None:
        """Adds records."""
        from kiln.autotvm.record import load_from_file

        if isinstance(records, (str, os.PathLike)):
            pairs: Iterable[Any] = load_from_file(records)
        else:
            pairs = records
        for each in pairs:
            if isinstance(each, (str, os.PathLike)):
                self.load(each)
            else:
                self._add(*each)

    def _add(self, given: MeasureInput, result: MeasureResult) -> None:
        if result.error_no != 0:
            return
        target = str(given.target)
        key = (target.split()[0], key_of(given.task.workload))
        cost = result.mean_s
        if key not in self._best or cost < self._best[key][0]:
            self._best[key] = (cost, given.config, target)

    def _query_inside(self, target: Any, workload: Any) -> Any:
        if workload is None:
            return None
        key = key_of(workload)
        if (_kind(target), key) in self._set:
            return self._set[_kind(target), key]
        found = self._best.get((str(_kind(target)), key))
        return found[1] if found else None

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self._set[_kind(target), key_of(workload)] = cfg

    def target_of(self, workload: Any) -> str | None:
        found = {each[2] for (_, key), each in self._best.items() if key == key_of(workload)}
        return found.pop() if len(found) == 1 else super().target_of(workload)


# TVM has both names.
apply_history_best = ApplyHistoryBest
apply_fixed_config = ApplyFixedConfig
