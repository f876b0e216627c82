"""Plots of a job with matplotlib: how it got faster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kiln.errors import InvalidArgumentError, KilnError
from kiln.farm.curve import Point
from kiln.farm.values import Record


def figure(kinds: Sequence[str], given: Any) -> list[Any]:
    """Axes for each plot: new ones side by side, or those that are given.

    KilnError: matplotlib is not installed. InvalidArgumentError: there are not as many.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise KilnError(
            "plot needs matplotlib, which is not installed: pip install kiln[matplotlib]"
        ) from error
    if given is None:
        _, made = pyplot.subplots(
            1, len(kinds), figsize=(5.0 * len(kinds), 3.6), layout="constrained", squeeze=False
        )
        return list(made[0])
    axes = list(given) if hasattr(given, "__len__") else [given]
    if len(axes) != len(kinds):
        raise InvalidArgumentError(
            f"{len(axes)} axes are given, expected {len(kinds)}: {', '.join(kinds)}"
        )
    return axes


def convergence(axes: Any, records: Iterable[Record], names: Sequence[str]) -> Any:
    """The speed of each trial, and of the best one so far, of each task."""
    trials: dict[int, list[tuple[int, float]]] = {}
    for record in records:
        if record.gflops is not None:
            trials.setdefault(record.task, []).append((record.trial, record.gflops))
    for task, found in sorted(trials.items()):
        found.sort()
        numbers = [trial for trial, _ in found]
        best: list[float] = []
        for _, speed in found:
            best.append(max(speed, best[-1] if best else speed))
        (line,) = axes.plot(numbers, best, drawstyle="steps-post", label=names[task])
        axes.scatter(numbers, [speed for _, speed in found], s=6, color=line.get_color(), alpha=0.4)
    axes.set(title="convergence", xlabel="trial", ylabel="GFLOP/s", ylim=(0, None))
    return _named(axes, len(trials))


def latency(axes: Any, points: Sequence[Point], names: Sequence[str]) -> Any:
    """The objective, and the best cost of each task, after each round."""
    trials = [point.trials for point in points]
    totals = [point.total_latency_s and point.total_latency_s * 1e3 for point in points]
    axes.plot(trials, totals, drawstyle="steps-post", label="objective", linewidth=2)
    for index, name in enumerate(names if len(names) > 1 else ()):
        costs = [point.best_s[index] for point in points if index < len(point.best_s)]
        shown = [cost and cost * 1e3 for cost in costs]
        axes.plot(trials[: len(shown)], shown, drawstyle="steps-post", label=name, linewidth=1)
    axes.set(title="total latency", xlabel="trials", ylabel="ms", yscale="log")
    return _named(axes, 1 + len(names))


def _named(axes: Any, lines: int) -> Any:
    """The axes with a legend, where it is not larger than the plot."""
    if 0 < lines <= 12:
        axes.legend(fontsize="x-small")
    return axes
