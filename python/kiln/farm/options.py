"""How a job tunes: the options of `kiln tune`, under the same names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from kiln.farm import program


@dataclass
class TuneOptions:
    """Options of a job; None leaves the choice to the program. `kiln tune --help` says more."""

    # Candidates to measure (64), and the time after which the job ends.
    trials: int | None = None
    minutes: float | None = None
    # "llvm", "llvm -mcpu=...", "cuda" or "null"; otherwise what the devices of the farm are.
    target: str | None = None
    # Which of several devices: a part of its name, a UUID or another key.
    device: str | None = None
    # Name of the job, and its priority over others.
    name: str | None = None
    priority: int | None = None
    seed: int | None = None

    # Search: "sketch.xgb" and its like, with parameters; a template or "direct", "winograd", "all".
    policy: str | None = None
    parameter: Mapping[str, float] | None = None
    template: str | None = None
    variants: str | None = None
    model: str | None = None
    model_parameter: Mapping[str, float] | None = None
    no_warm_start: bool = False
    lock_step: bool = False
    trials_per_round: int | None = None

    # Several tasks: uses of each, what is to be small, which is next.
    weights: Sequence[float] | None = None
    objective: str | None = None
    task_strategy: str | None = None
    # Numbers of the strategy "gradient": the weight of what a task has gained (0.2), how many times
    # slower than tasks like it a task is expected to become at most (2), and the number of rounds
    # over which a task has gained (3).
    task_alpha: float | None = None
    task_beta: float | None = None
    task_window: int | None = None

    # When to stop: trials without improvement of a task, of any task; a latency that suffices.
    early_stopping: int | None = None
    total_early_stopping: int | None = None
    latency_target_ms: float | None = None

    # Measuring.
    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: int | None = None
    finalists: int | None = None
    idle_ms: int | None = None
    tolerance: str | None = None
    cooldown_ms: int | None = None
    timeout_ms: int | None = None
    build_timeout_ms: int | None = None
    flush_cache: bool = False
    # On a GPU: "graph", or "stream" for launches one by one.
    as_deployed: str | None = None
    # Values of inputs in checks: {"x": "0.5:2"}.
    input_range: Mapping[str, str] | None = None
    reference_limit: float | None = None

    # Networks.
    batch: int | None = None
    sequence: int | None = None
    layout: str | None = None
    dtype: str | None = None
    # Extents of inputs that a model's file leaves open: {"x": (1, 3, 224, 224)}.
    input: Mapping[str, Sequence[int]] | None = None
    layout_rewrite: str | None = None
    include_simple_tasks: bool = False

    def in_python(self, sentence: str) -> str:
        """A sentence of the program, in which the flags of these options are their fields.

        `--trials-per-round` is trials_per_round. A flag that is not of these options stays: it
        may be a part of a command.
        """
        flags = {word.partition("=")[0] for word in self.words()}

        def field_of(found: re.Match[str]) -> str:
            flag = found.group()
            return flag[2:].replace("-", "_") if flag in flags else flag

        return re.sub(r"(?<![\w`-])--[a-z][a-z-]*(?!\w)", field_of, sentence)

    def words(self) -> list[str]:
        """The flags for the program."""
        return [
            word
            for each in fields(self)
            for word in program.flag(each.name, getattr(self, each.name))
        ]
