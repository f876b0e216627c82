"""What a job does, as lines, or as one line that is redrawn on a terminal and in a notebook."""

from __future__ import annotations

import html
import shutil
import sys
from typing import Any, TextIO

from kiln.tables import duration
from kiln.farm.values import Event, JobStatus


def trial_line(event: Event) -> str:
    """A line about a trial: its speed and the best one of its task, or why it failed."""
    record = event.record
    assert record is not None
    head = f"trial {record.trial:5}  task {record.task}"
    if record.cost_s is None:
        return f"{head}  {record.error}: {record.message}"
    best = event.status.tasks[record.task].best_cost_s or record.cost_s
    speed = record.flop_count / 1e9
    return (
        f"{head}  {duration(record.cost_s)}  {speed / record.cost_s:.2f} GFLOP/s, "
        f"best {speed / min(best, record.cost_s):.2f}  {record.origin}"
    )


def phase_line(status: JobStatus) -> str:
    """A line about what a job does that is not searching."""
    return f"{status.trials_done} trials done: {status.phase}"


def round_line(event: Event) -> str:
    """A line about a round: trials, time, objective, failures."""
    assert event.round is not None
    latency = duration(event.round.total_latency_s) or "no program yet"
    failed = sum(event.status.errors.values())
    return (
        f"round {event.round.number + 1}  trials {event.round.trials}/{event.status.trials}  "
        f"{event.round.elapsed_s:.1f} s  {latency}" + (f"  failed {failed}" if failed else "")
    )


class Progress:
    """Shows a job on standard error. Belongs to one thread; close() ends the line."""

    def __init__(self, verbose: int, stream: TextIO | None = None) -> None:
        """`verbose` = 0 shows nothing, 1 rounds, 2 trials as well, each in a line of its own."""
        self._verbose = verbose
        self._stream = stream or sys.stderr
        self._notebook = _Notebook() if verbose == 1 and stream is None and _in_notebook() else None
        self._is_redrawn = verbose == 1 and self._notebook is None and self._stream.isatty()
        self._shown = 0
        self._phase = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, event: Event) -> None:
        """Shows what happened."""
        status = event.status
        if self._verbose > 1 and event.record is not None:
            self._line(trial_line(event))
        if self._verbose < 1:
            return
        if event.round is not None:
            self._show(status, round_line(event))
        elif status.is_final and self._notebook is not None:
            self._show(status, "")
        elif status.phase and status.phase != self._phase:
            self._show(status, phase_line(status))
        self._phase = status.phase

    def say(self, text: str) -> None:
        """Shows a sentence in a line of its own, unless nothing is shown."""
        if self._verbose > 0:
            self.close()
            self._line(text)

    def _show(self, status: JobStatus, line: str) -> None:
        """Draws the line in place of the one before, or below it."""
        if self._notebook is not None:
            self._notebook.show(status, line)
        elif self._is_redrawn:
            line = line[: shutil.get_terminal_size().columns - 1]
            self._stream.write("\r" + line.ljust(self._shown))
            self._stream.flush()
            self._shown = len(line)
        else:
            self._line(line)

    def _line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Ends a line that was redrawn."""
        if self._shown:
            self._line("")
        self._shown = 0


def _in_notebook() -> bool:
    """True in a kernel, of Jupyter and of those that speak its protocol."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _Notebook:
    """The table of a job's tasks, which is drawn again in its place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, status: JobStatus, line: str) -> None:
        """Draws the table."""
        from IPython.display import HTML, display

        shown = HTML(status._repr_html_() + f"<p>{html.escape(line)}</p>")
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
