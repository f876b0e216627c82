"""Callbacks of tuners."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kiln.autotvm.record import line_of
from kiln.autotvm.task import ConfigEntity
from kiln.farm.values import Record

if TYPE_CHECKING:
    from kiln.autotvm.tuner import Callback, Tuner


def log_to_file(file_out: str | os.PathLike[str]) -> Callback:
    """Appends what is measured to a log that autotvm reads."""

    def callback(tuner: Tuner, configs: list[ConfigEntity], records: list[Record]) -> None:
        with open(file_out, "a", encoding="utf-8") as file:
            for config, record in zip(configs, records):
                file.write(line_of(tuner.task, config, record) + "\n")

    return callback


def progress_bar(total: int, prefix: str = "") -> Callback:
    """Prints a line for each trial: GFLOPS now and the best, progress, knobs."""
    best, done = 0.0, 0

    def callback(tuner: Tuner, configs: list[ConfigEntity], records: list[Record]) -> None:
        nonlocal best, done
        for config, record in zip(configs, records):
            done += 1
            speed = record.gflops or 0.0
            best = max(best, speed)
            print(
                f"{prefix} Current/Best: {speed:7.2f}/{best:7.2f} GFLOPS | Progress: "
                f"({done}/{total}) | {config}",
                file=sys.stderr,
            )

    return callback
