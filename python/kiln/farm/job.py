"""A job of a farm: watched, ended, and what came of it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kiln.farm import program
from kiln.errors import InvalidArgumentError, KilnError, NotFoundError
from kiln.farm import connection, plots
from kiln.farm.computation import computation
from kiln.farm.curve import Point, curve_of
from kiln.farm.values import Event, JobStatus, Reason, Record, Records, Worker, event_of
from kiln.network import Network, load

if TYPE_CHECKING:
    from kiln.farm.client import Client

_PLOTS = ("convergence", "latency", "roofline")


class Job:
    """A job by its id. Its methods ask the farm, which keeps the job whatever becomes of Python."""

    def __init__(self, client: Client, id: str) -> None:
        self.client = client
        self.id = id

    def __repr__(self) -> str:
        return f"<kiln.Job {self.id} of {self.client}>"

    def status(self) -> JobStatus:
        """The job now. NotFoundError: the farm has no such job."""
        return self.client.status(self.id)

    def watch(self, stop: connection.Stop | None = None) -> Iterator[Event]:
        """An event for each record and round, those that are there first, until the job has ended.

        `stop` ends it from another thread. UnavailableError: the farm is gone for 30 s; the job goes on when it is back.
        """
        for event in connection.watch(self.client.connection, self.id, stop):
            yield event_of(event)

    def wait(self) -> JobStatus:
        """The status once the job has ended. KilnError: it failed, with its sentence."""
        last = None
        for event in self.watch():
            last = event.status
        assert last is not None
        if last.state == "FAILED":
            raise KilnError(last.message or f"job {self.id} failed")
        return last

    def curve(self) -> list[Point]:
        """The latencies after each round, of a job that has ended; else those until it ends."""
        return curve_of(self.watch())

    def plot(self, *kinds: str, axes: Any = None) -> Any:
        """Draws plots, all three if none is named, and returns their axes.

        "convergence" is the speed of each trial and of the best one so far, "latency" the objective
        after each round, and "roofline" the tasks' speeds beside what the device can do: its float32
        operations without matrix units, and its memory where the driver tells its speed. `axes` are
        those to draw on, one for each kind; without them new ones of matplotlib, or, where that is
        not installed, pictures in SVG, which notebooks show and which have `save(path)`.
        """
        unknown = [kind for kind in kinds if kind not in _PLOTS]
        if unknown:
            raise InvalidArgumentError(
                f"found plot {unknown[0]!r}, expected some of {', '.join(_PLOTS)}"
            )
        kinds = kinds or _PLOTS
        drawn = plots.figure(kinds, axes)
        tasks = self.status().tasks
        names = [task.description for task in tasks]
        for kind, each in zip(kinds, drawn):
            if kind == "convergence":
                plots.convergence(each, self.records(), names)
            elif kind == "latency":
                plots.latency(each, self.curve(), names)
            else:
                plots.roofline(each, self.roofline(), self._device())
        return drawn if len(drawn) > 1 else drawn[0]

    def roofline(self) -> list[plots.RooflinePoint]:
        """The tasks that have a program and a count of operations, beside a roofline."""
        points = []
        for task in self.status().tasks:
            if task.best_cost_s and task.flop_count > 0:
                moved = computation(task.dag, "task").bytes
                speed = task.flop_count / task.best_cost_s / 1e9
                points.append(plots.RooflinePoint(task.description, task.flop_count / moved, speed))
        return points

    def _device(self) -> Worker | None:
        """A runner of the device that the job measured on; None if it is gone."""
        device = self.status().device
        runners = [each for each in self.client.workers() if each.kind == "RUNNER"]
        fit = [each for each in runners if device in (each.device, *each.keys)]
        return fit[0] if fit else None

    def _repr_html_(self) -> str:
        """The job's tasks, for notebooks."""
        return self.status()._repr_html_()  # pylint: disable=protected-access

    def why(self) -> list[Reason]:
        """Why the job waits or is slow, and what would help; the most important reason first."""
        return self.client.why(self.id)

    def cancel(self) -> None:
        """Ends the job; its records are kept."""
        self.client.cancel(self.id)

    def pause(self) -> None:
        """Lets the job rest until it is resumed; see Client.pause."""
        self.client.pause(self.id)

    def resume(self) -> None:
        """Goes on with a job that was paused, cancelled, failed or was left unfinished."""
        self.client.resume(self.id)

    def best(self, task: int = 0) -> Record:
        """The best record of a task. NotFoundError: it has no program yet."""
        for record in self.client.best_of_job(self.id):
            if record.task == task:
                return record
        raise NotFoundError(f"task {task} of job {self.id} has no program")

    def records(self, errors: bool = False) -> Records:
        """The records in the order of their ids; with `errors` failed trials, too."""
        return self.client.records(job=self.id, errors=errors)

    def export(self, path: str | os.PathLike[str], errors: bool = False) -> None:
        """Writes the records as a log that TVM's auto_scheduler reads."""
        self.client.export_records(path, job=self.id, errors=errors)

    def show(self, form: str = "schedule", task: int = 0) -> str:
        """The best program as text: schedule, steps, tvm, loops, llvm, asm, cuda, c, ..."""
        return self.client.show(self.best(task), form)

    def compile(
        self, output: str | os.PathLike[str] | None = None, task: int = 0, *, gpu: int = 0
    ) -> Network:
        """The best program of a task as a callable. `output` keeps its file, for kiln.load.

        `gpu`: which, as CUDA counts them.
        """
        return compiled([self.id, f"--task={task}"], self.client.environment(), output, gpu)

    async def watch_async(self, stop: connection.Stop | None = None) -> AsyncIterator[Event]:
        """As watch, for asyncio."""
        stop = stop or connection.Stop()
        events = connection.watch(self.client.connection, self.id, stop)
        try:
            while (event := await asyncio.to_thread(next, events, None)) is not None:
                yield event_of(event)
        finally:
            # A thread may still wait for the next event.
            stop.request()

    async def wait_async(self) -> JobStatus:
        """As wait, for asyncio."""
        return await asyncio.to_thread(self.wait)


def compiled(
    words: list[str],
    environment: Mapping[str, str],
    output: str | os.PathLike[str] | None,
    gpu: int = 0,
) -> Network:
    """What `kiln compile` makes of the words, loaded. `gpu`: which, as CUDA counts them."""
    if output is not None:
        _compile(words, environment, os.fspath(output))
        return load(os.fspath(output), gpu=gpu)
    # The library has what it needs of the file once it is loaded.
    with tempfile.TemporaryDirectory(prefix="kiln-compile.") as folder:
        path = os.path.join(folder, "net.kiln")
        _compile(words, environment, path)
        return load(path, gpu=gpu)


def _compile(words: list[str], environment: Mapping[str, str], path: str) -> Any:
    return program.run(["compile", *words, f"--output={path}"], environment)
