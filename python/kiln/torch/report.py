"""Reports: the operators of a model that Kiln computes, those it does not, and why."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from kiln.tables import duration

_LOG = logging.getLogger("kiln.torch")
# Reports that reports() returns.
_KEPT = 64


@dataclass(frozen=True)
class Left:
    """Operators that are left to torch."""

    # "aten.convolution", or what stands for all of a graph: "the graph".
    operator: str
    count: int
    why: str

    def __str__(self) -> str:
        times = "" if self.count == 1 else f"{self.count} times "
        return f"{times}{self.operator} is left to PyTorch: {self.why}"


@dataclass
class PartReport:
    """A part of a model that Kiln has programs for."""

    operators: int
    # Names of the tasks, with their uses; empty while it is not known.
    tasks: list[tuple[str, float]] = field(default_factory=list)
    # True if the database had a program for each task.
    is_known: bool = False
    # The job that tuned it, if there was one.
    job: str | None = None
    # Seconds of a call, on the example inputs. None: it was not measured, or cannot run.
    kiln_s: float | None = None
    eager_s: float | None = None
    inductor_s: float | None = None
    # Largest difference to eager, as a part of the largest value.
    error: float | None = None
    is_used: bool = False
    # Why it is not used, or "".
    why_not: str = ""

    def __str__(self) -> str:
        times = [("Kiln", self.kiln_s), ("eager", self.eager_s), ("Inductor", self.inductor_s)]
        shown = ", ".join(f"{name} {duration(each)}" for name, each in times if each is not None)
        source = "with programs from the database" if self.is_known else "with untuned programs"
        source = f"tuned by job {self.job}" if self.job else source
        head = f"{_count(self.operators, 'operator')}, {_count(len(self.tasks), 'task')}, {source}"
        said = "are computed by Kiln" if self.is_used else f"are left to PyTorch: {self.why_not}"
        return f"{head}, {said}" + (f" ({shown})" if shown else "")


@dataclass
class Report:
    """The parts of one graph, and the operators that are left out."""

    # "torch.compile", "kiln.tune".
    origin: str
    parts: list[PartReport] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    # Sentences about the machine: a compiler of torch's does not run here.
    notes: list[str] = field(default_factory=list)
    # Seconds of a call of the whole, where there is more than one part of it.
    whole_s: float | None = None
    whole_inductor_s: float | None = None
    # From the start to the first program that may be called.
    seconds: float | None = None

    @property
    def is_used(self) -> bool:
        """True if Kiln computes a part."""
        return any(part.is_used for part in self.parts)

    def sentences(self) -> list[str]:
        """One for each part, each kind of operator that is left out, and each note."""
        return [str(each) for each in (*self.parts, *self.left, *self.notes)]

    def __str__(self) -> str:
        return "\n".join(f"{self.origin}: {each}" for each in self.sentences())


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_reports: list[Report] = []


def keep(report: Report) -> None:
    """Adds a report to those of reports(), and logs its sentences."""
    _reports.append(report)
    del _reports[:-_KEPT]
    for part in report.parts:
        _LOG.log(logging.INFO if part.is_used else logging.WARNING, "%s: %s", report.origin, part)
    for each in (*report.left, *report.notes):
        _LOG.warning("%s: %s", report.origin, each)


def say(sentence: str) -> None:
    """Logs a sentence."""
    _LOG.warning("%s", sentence)


def reports() -> list[Report]:
    """The reports of this process, the newest last, 64 at most."""
    return list(_reports)
