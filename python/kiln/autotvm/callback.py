"""Callbacks of tuners."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from kiln.autotvm.measure import MeasureInput, MeasureResult
from kiln.autotvm.record import encode
from kiln.errors import InvalidArgumentError

if TYPE_CHECKING:
    from kiln.autotvm.tuner import Callback, Tuner

_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def format_si_prefix(x: float, si_prefix: str) -> float:
    """The number in units of a prefix: 2e9 is 2 of "G"."""
    if si_prefix not in _PREFIXES:
        raise InvalidArgumentError(
            f"si_prefix is {si_prefix!r}, expected one of {', '.join(filter(None, _PREFIXES))}"
        )
    return x / _PREFIXES[si_prefix]


def flops_of(given: MeasureInput, result: MeasureResult) -> float:
    """Operations a second; 0 for a configuration that failed."""
    if result.error_no != 0:
        return 0.0
    return given.task.flop / result.mean_s


def log_to_file(file_out: Any, protocol: str = "json") -> Callback:
    """Appends what is measured to a log that autotvm reads: a path, or an open file."""

    def callback(tuner: Tuner, inputs: list[MeasureInput], results: list[MeasureResult]) -> None:
        lines = [encode(*pair, protocol) + "\n" for pair in zip(inputs, results)]
        if hasattr(file_out, "write"):
            file_out.writelines(lines)
            return
        with open(os.fspath(file_out), "a", encoding="utf-8") as file:
            file.writelines(lines)

    return callback


def log_to_database(db: Any) -> Callback:
    """Gives each pair to db.save(input, result)."""

    def callback(tuner: Tuner, inputs: list[MeasureInput], results: list[MeasureResult]) -> None:
        for pair in zip(inputs, results):
            db.save(*pair)

    return callback


class Monitor:
    """Keeps the speeds and the times of trials."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(
        self, tuner: Tuner, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        self.scores += [flops_of(*pair) for pair in zip(inputs, results)]
        self.timestamps += [result.timestamp for result in results]

    def reset(self) -> None:
        """Forgets all."""
        self.scores, self.timestamps = [], []

    def trial_scores(self) -> Any:
        """Operations a second of all trials."""
        import numpy

        return numpy.array(self.scores)

    def trial_timestamps(self) -> Any:
        """Unix times of all trials."""
        import numpy

        return numpy.array(self.timestamps)


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Prints a line for each trial: FLOPS now and the best, progress, time, knobs."""
    best, done, begun = 0.0, 0, time.monotonic()
    format_si_prefix(0, si_prefix)

    def callback(tuner: Tuner, inputs: list[MeasureInput], results: list[MeasureResult]) -> None:
        nonlocal best, done
        for given, result in zip(inputs, results):
            done += 1
            speed = format_si_prefix(flops_of(given, result), si_prefix)
            best = max(best, speed)
            print(
                f"{prefix} Current/Best: {speed:7.2f}/{best:7.2f} {si_prefix}FLOPS | Progress: "
                f"({done}/{total}) | {time.monotonic() - begun:.2f} s | {given.config}",
                file=sys.stderr,
            )

    return callback
