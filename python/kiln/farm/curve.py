"""How a job got faster, as numbers and as a plot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kiln.errors import KilnError
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


def plot(points: list[Point], descriptions: list[str], axes: Any = None) -> Any:
    """Latencies over trials on axes of matplotlib, which are returned.

    KilnError: matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise KilnError("plot needs matplotlib, which is not installed") from error
    axes = axes or pyplot.subplots()[1]
    trials = [point.trials for point in points]
    totals = [point.total_latency_s and point.total_latency_s * 1e3 for point in points]
    axes.plot(trials, totals, drawstyle="steps-post", label="objective", linewidth=2)
    if len(descriptions) > 1:
        for index, name in enumerate(descriptions):
            costs = [point.best_s[index] for point in points if index < len(point.best_s)]
            shown = [cost and cost * 1e3 for cost in costs]
            axes.plot(trials[: len(shown)], shown, drawstyle="steps-post", label=name, linewidth=1)
    axes.set(xlabel="trials", ylabel="ms", yscale="log")
    axes.legend(fontsize="small")
    return axes
