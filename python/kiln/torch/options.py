"""How a model is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.farm.client import Client

# Minutes where neither minutes nor trials are given.
_MINUTES = 3.0
# Trials where only time ends a job.
_ENDLESS = 1_000_000


@dataclass(frozen=True)
class Options:
    """Options of kiln.tune, and of torch.compile(backend="kiln", options={...})."""

    # The budget of a graph: time, candidates, or whichever ends first. All its parts share it. The
    # default is three minutes. 0 trials: programs of the database, and schedules without measuring.
    minutes: float | None = None
    trials: int | None = None
    # The farm; that of kiln.auto_scheduler.use, or this machine with its records in kiln.db.
    client: Client | None = None
    # "llvm", "cuda -arch=sm_90"; by the device of the tensors.
    target: str | None = None
    # True tunes also what the database has programs for.
    again: bool = False
    # The difference to eager that is right, as a part of the largest value. None goes by the types:
    # 1e-4 for float32.
    tolerance: float | None = None
    # True uses right programs without measuring whether torch's own are faster.
    always: bool = False
    # 1 shows the rounds of jobs, 0 nothing.
    verbose: int = 0
    # Further options of the job: kiln.farm.options.TuneOptions.
    job: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Options:
        """The options by name. InvalidArgumentError: there is none of a name."""
        names = [each.name for each in fields(cls)]
        for key in given or {}:
            if key not in names:
                raise InvalidArgumentError(
                    f"no option is called {key}, expected {', '.join(names)}"
                )
        options = cls(**(given or {}))
        if options.trials is not None and options.trials < 0:
            raise InvalidArgumentError(f"trials is {options.trials}, expected 0 or more")
        if options.minutes is not None and not options.minutes > 0:
            raise InvalidArgumentError(f"minutes is {options.minutes}, expected more than 0")
        return options

    def budget(self, share: float) -> dict[str, Any]:
        """Fields of TuneOptions for a part of a graph with this share of its work."""
        minutes, trials = self.minutes, self.trials
        if minutes is None and trials is None:
            minutes = _MINUTES
        found: dict[str, Any] = {
            "trials": _ENDLESS if trials is None else max(1, round(trials * share))
        }
        if minutes is not None:
            found["minutes"] = minutes * share
        return found
