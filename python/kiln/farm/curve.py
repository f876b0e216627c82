"""How a job got faster, as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kiln.farm.values import Event


@dataclass(frozen=True)
class Point:
    """The state of a job after a round."""

    # Since the job began.
    elapsed_s: float
    trials: int
    # The objective; None while a task has no program.
    total_latency_s: float | None
    # Best cost of each task.
    best_s: tuple[float | None, ...]


def curve_of(events: Iterable[Event]) -> list[Point]:
    """A point for each round."""
    rounds = [event.round for event in events if event.round is not None]
    return [
        Point(each.elapsed_s, each.trials, each.total_latency_s, each.best_s) for each in rounds
    ]
