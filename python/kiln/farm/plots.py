"""Plots of a job: how it got faster, and how far from its device's limits it is.

With matplotlib where it is installed, else as SVG (svg_axes.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.farm.curve import Point
from kiln.farm.svg_axes import SvgAxes, SvgPanels
from kiln.farm.values import Record, Worker


@dataclass(frozen=True)
class RooflinePoint:
    """A task's best program beside the limits of its device."""

    description: str
    # Operations for each byte of inputs and outputs, each of which moves once at least.
    intensity: float
    gflops: float


def figure(kinds: Sequence[str], given: Any) -> list[Any]:
    """Axes for each plot: new ones side by side, or those that are given.

    InvalidArgumentError: there are not as many.
    """
    if given is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            return SvgPanels(SvgAxes() for _ in kinds)
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


def roofline(axes: Any, points: Sequence[RooflinePoint], device: Worker | None) -> Any:
    """The tasks' speeds over their intensities, below what the device can do."""
    for point in points:
        axes.scatter([point.intensity], [point.gflops], label=point.description, zorder=3)
    if device is not None and device.peak_gflops is not None:
        _roof(axes, points, device)
    axes.set(
        title="roofline",
        xlabel="operations a byte of inputs and outputs",
        ylabel="GFLOP/s",
        xscale="log",
        yscale="log",
    )
    return _named(axes, len(points))


def _roof(axes: Any, points: Sequence[RooflinePoint], device: Worker) -> None:
    """The line of float32 operations without matrix units, and that of memory if it is known."""
    peak, bandwidth = device.peak_gflops, device.memory_gb_s
    assert peak is not None
    ridge = peak / bandwidth if bandwidth else 0.0
    at = sorted(point.intensity for point in points) or [1.0]
    left, right = min(at[0], ridge or at[0]) / 4, max(at[-1], ridge) * 4
    if bandwidth:
        heights = [bandwidth * left, peak, peak]
        axes.plot([left, ridge, right], heights, color="gray", label=device.device)
    else:
        axes.plot([left, right], [peak, peak], color="gray", label=device.device)


def _named(axes: Any, lines: int) -> Any:
    """The axes with a legend, where it is not larger than the plot."""
    if 0 < lines <= 12:
        axes.legend(fontsize="x-small")
    return axes
