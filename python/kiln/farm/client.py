"""The client: what one asks of a farm. kiln.connect and kiln.local make one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Union

from kiln.farm import program
from kiln.errors import InvalidArgumentError, KilnError, NotFoundError
from kiln.farm import values
from kiln.farm.computation import Computation, words_of
from kiln.farm.connection import Connection, Stop
from kiln.farm.job import Job, compiled
from kiln.farm.options import TuneOptions
from kiln.farm.progress import Progress
from kiln.farm.serving import Served, Serving
from kiln.farm.values import (
    Event,
    Imported,
    JobStatus,
    Model,
    Reason,
    Record,
    Records,
    Schedule,
    Worker,
)
from kiln.network import Network
from kiln.proto import scheduler_pb2, tracker_pb2

# A computation, several of them, or a network: "network:resnet-18", "model.onnx".
Workload = Union[Computation, Sequence[Computation], str]

_NETWORKS = (".onnx", ".graph")
# While records are imported or a list of all jobs is made, the farm may be busy for so long.
_LONG_S = 600.0
# A job that refuses an answer of served code fails within so long, with a sentence of its own.
_FAILING_S = 2.0
_LARGEST_LINE = 16 << 20


class Client:
    """A farm, here or elsewhere. Any thread may call its methods."""

    def __init__(self, connect: Callable[[], Connection], close: Callable[[], None], name: str):
        self._connect = connect
        self._close = close
        self._name = name
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        return f"<kiln.Client of {self._name}>"

    def __str__(self) -> str:
        return self._name

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, and the processes of a local farm. Jobs elsewhere go on."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._close()

    @property
    def connection(self) -> Connection:
        """The connection, which the first use makes."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def environment(self) -> dict[str, str]:
        """Variables that name the farm for the program `kiln`."""
        return self.connection.environment()

    # ---- jobs -------------------------------------------------------------------------------

    def submit(
        self,
        workload: Workload,
        options: TuneOptions | None = None,
        *,
        served: Served | None = None,
        **named: Any,
    ) -> Job:
        """Hands in a job: submit(kiln.op("matmul", 64, 64, 64), trials=64).

        `named` are fields of TuneOptions. `served` are the parts of the search that are code of
        this process: the job waits until serve() is called for it. InvalidArgumentError: the
        workload or an option does not fit. FailedPreconditionError or KilnError: the farm has no
        device for it.

        Examples:
            >>> job = client.submit(kiln.op("matmul", 64, 64, 64), trials=4, finalists=0)
            >>> job.wait().state
            'SUCCEEDED'
        """
        chosen = _options(options, named)
        with words_for(workload) as words:
            command = ["submit", *words, *chosen.words(), *(served.words() if served else [])]
            try:
                started = program.run_json(command, self.environment())
            except KilnError as error:
                raise type(error)(chosen.in_python(str(error))) from error
        return Job(self, started[0]["job"])

    def serve(self, job: Job | str, served: Served, user: str = "") -> Serving:
        """Serves the parts of a job that are code of this process, in a thread, until it has ended.

        The job goes on with it, also one whose process has died. `user` is the job's, "" = this
        process's. FailedPreconditionError: the job has ended, or was not submitted with `served`.
        KilnError: another process serves it.

            with client.serve(job, kiln.Served(cost_model=MyModel())):
                job.wait()
        """
        return Serving(self.connection, _id(job), served, user)

    def tune(
        self,
        workload: Workload,
        options: TuneOptions | None = None,
        *,
        callbacks: Sequence[Callable[[Event], None]] = (),
        verbose: int = 1,
        served: Served | None = None,
        **named: Any,
    ) -> Job:
        """Submits, and returns the job when it has ended.

        `served` are parts of the search that are code of this process: kiln.Served.

        `verbose` = 1 shows the newest round, in a line that is redrawn on a terminal and in a table
        in notebooks; 2 prints a line for each trial as well, 0 nothing.

        Ctrl-C, and any error of a callback, cancels the job and goes on upwards; the records are
        kept. KilnError: the job failed, or `served` is no longer served, which cancels it.
        """
        job = self.submit(workload, options, served=served, **named)
        with Progress(verbose) as progress:
            try:
                with self._serving(job, served) as serving:
                    for event in job.watch(_stop_of(serving)):
                        progress(event)
                        for callback in callbacks:
                            callback(event)
                    self._raise_for_serving(job, serving)
            except BaseException:
                progress.say(f"job {job.id} is cancelled; client.job('{job.id}') has its records")
                raise
        _raise_for(job.status(), serving)
        return job

    @contextmanager
    def _serving(self, job: Job, served: Served | None) -> Iterator[Serving | None]:
        """Serves the job, if parts of it are served. Any error within cancels the job."""
        serving = None
        try:
            serving = self.serve(job, served) if served else None
            yield serving
        except BaseException:
            self._cancel_quietly(job)
            raise
        finally:
            if serving is not None:
                serving.close()

    def _raise_for_serving(self, job: Job, serving: Serving | None) -> None:
        """Raises why serving has ended, unless the job has ended as well."""
        if serving is not None and serving.error is not None and not job.status().is_final:
            raise serving.error

    async def tune_async(
        self,
        workload: Workload,
        options: TuneOptions | None = None,
        *,
        served: Served | None = None,
        **named: Any,
    ) -> Job:
        """As tune, for asyncio. A task that is cancelled cancels the job; its records are kept."""
        job = await asyncio.to_thread(self.submit, workload, options, served=served, **named)
        with self._serving(job, served) as serving:
            async for _ in job.watch_async(_stop_of(serving)):
                pass
            await asyncio.to_thread(self._raise_for_serving, job, serving)
        _raise_for(await asyncio.to_thread(job.status), serving)
        return job

    def _cancel_quietly(self, job: Job) -> None:
        """Cancels, when an error is on its way already that must not be hidden by another."""
        try:
            job.cancel()
        except KilnError:
            pass

    def job(self, id: str) -> Job:
        """The job of this id. NotFoundError: there is none."""
        self.status(id)
        return Job(self, id)

    def jobs(self, limit: int = 20) -> list[JobStatus]:
        """The newest jobs, the newest first; 0 = all."""
        request = scheduler_pb2.ListJobsRequest(limit=_natural("limit", limit))
        reply = self.connection.call(self.connection.scheduler.ListJobs, request, _LONG_S)
        return [values.status_of(each) for each in reply.jobs]

    def status(self, id: str) -> JobStatus:
        """The job now. NotFoundError: there is none of this id."""
        request = scheduler_pb2.GetJobRequest(job_id=_text("id", id))
        reply = self.connection.call(self.connection.scheduler.GetJob, request)
        return values.status_of(reply)

    def why(self, job: Job | str) -> list[Reason]:
        """Why a job waits or is slow, and what would help; the most important reason first.

        NotFoundError: there is none of this id.

        Examples:
            >>> job = client.tune(kiln.op("matmul", 64, 64, 64), target="null", trials=4, verbose=0)
            >>> client.why(job)[0].kind
            'succeeded'
        """
        self.status(_id(job))
        (told,) = program.run_json(["why", _id(job)], self.environment())
        return [values.reason_of(each) for each in told["reasons"]]

    def watch(self, job: Job | str) -> Iterator[Event]:
        """The events of a job, as Job.watch."""
        return Job(self, _id(job)).watch()

    def cancel(self, job: Job | str) -> None:
        """Ends a job; its records are kept."""
        request = scheduler_pb2.CancelJobRequest(job_id=_id(job))
        self.connection.call(self.connection.scheduler.CancelJob, request)

    def pause(self, job: Job | str) -> None:
        """Lets a job rest: it gives its devices back after the trials in hand.

        It rests until `resume`, whatever becomes of the scheduler, and goes on with all its results.
        Its time budget stands still meanwhile.
        """
        request = scheduler_pb2.PauseJobRequest(job_id=_id(job))
        self.connection.call(self.connection.scheduler.PauseJob, request)

    def resume(self, job: Job | str) -> None:
        """Goes on with a job that was paused, cancelled, failed or was left unfinished."""
        request = scheduler_pb2.ResumeJobRequest(job_id=_id(job))
        self.connection.call(self.connection.scheduler.ResumeJob, request)
        self.connection.go_on_with(request.job_id)

    # ---- records ----------------------------------------------------------------------------

    def best(
        self, what: Computation | Job | str, target: str = "", *, as_deployed: str = ""
    ) -> Record | None:
        """The best record of a computation (of any target, or this one), a job or a workload key.

        None: there is no record. Of a job with several tasks it is the first task's. Costs that were
        measured in different ways are not compared: of several ways single launches go first, then
        graphs. `as_deployed`: only records measured within a CUDA "graph", or by single launches
        on a "stream".

        Examples:
            >>> client.best(kiln.op("matmul", 64, 64, 64)).error
            'NO_ERROR'
            >>> client.best(kiln.op("matmul", 7, 7, 7)) is None
            True
        """
        if isinstance(what, Job):
            request = scheduler_pb2.BestRequest(job_id=what.id, as_deployed=as_deployed)
            return min(self._best(request), key=lambda each: each.task, default=None)
        found = self.best_of_targets(what, target, as_deployed=as_deployed)
        way = max((each.measured_as for each in found), default="")
        of_way = [each for each in found if each.measured_as == way]
        return min(of_way, key=lambda each: (each.cost_s or 0.0, each.id), default=None)

    def best_of_targets(
        self, what: Computation | str, target: str = "", *, as_deployed: str = ""
    ) -> list[Record]:
        """The best record of a computation, or of a workload key.

        One for each text of a target and way of measuring; with a `target` those of the same
        meaning.
        """
        key = what.workload_key if isinstance(what, Computation) else _text("what", what)
        return self._best(
            scheduler_pb2.BestRequest(workload_keys=[key], target=target, as_deployed=as_deployed)
        )

    def best_of_job(self, id: str) -> list[Record]:
        """The best record of each task that has one, in the order of the tasks."""
        found = self._best(scheduler_pb2.BestRequest(job_id=id))
        return sorted(found, key=lambda each: each.task)

    def _best(self, request: Any) -> list[Record]:
        try:
            reply = self.connection.call(self.connection.scheduler.Best, request)
        except NotFoundError:
            if request.job_id:
                raise
            return []
        return [values.record_of(each) for each in reply.records]

    def record(self, id: int) -> Record:
        """The record of this number. NotFoundError: there is none."""
        request = scheduler_pb2.GetRecordRequest(id=_natural("id", id))
        reply = self.connection.call(self.connection.scheduler.GetRecord, request)
        return values.record_of(reply)

    def records(
        self,
        computation: Computation | None = None,
        *,
        job: str = "",
        target: str = "",
        device: str = "",
        errors: bool = False,
        since_s: int = 0,
        until_s: int = 0,
        top: int = 0,
        key_prefix: str = "",
    ) -> Records:
        """Records, in the order of their ids; with `top` only so many, the best first.

        `target` is the beginning of a target; `errors` adds failed trials; `since_s` and `until_s`
        are Unix time.

        Examples:
            >>> len(list(client.records(kiln.op("matmul", 64, 64, 64), top=2)))
            2
        """
        request = scheduler_pb2.ListRecordsRequest(
            job_id=job,
            workload_keys=[computation.workload_key] if computation else [],
            include_errors=errors,
            target=target,
            device=device,
            since_s=since_s,
            until_s=until_s,
            top=_natural("top", top),
            key_prefix=key_prefix,
        )
        stream = self.connection.stream(self.connection.scheduler.ListRecords, request)
        return Records(values.record_of(each) for each in stream)

    def delete_records(self, ids: Sequence[int]) -> int:
        """Deletes records of jobs that have ended, all of them or none; returns how many."""
        request = scheduler_pb2.DeleteRecordsRequest(ids=ids)
        return self.connection.call(self.connection.scheduler.DeleteRecords, request).deleted

    def import_records(self, path: str | os.PathLike[str]) -> Imported:
        """Adds the lines of a log of TVM's auto_scheduler or autotvm."""
        try:
            file = open(path, "rb")
        except OSError as error:
            raise InvalidArgumentError(f"cannot read {os.fspath(path)}: {error}") from error
        with file:
            lines = iter(lambda: file.readline(_LARGEST_LINE), b"")
            requests = (
                scheduler_pb2.ImportRecordsRequest(line=line.rstrip(b"\n")) for line in lines
            )
            reply = self.connection.send(self.connection.scheduler.ImportRecords, requests)
        return Imported(reply.imported, reply.duplicates, reply.refused, tuple(reply.errors))

    def export_records(
        self,
        path: str | os.PathLike[str],
        *,
        job: str = "",
        computation: Computation | None = None,
        errors: bool = False,
        extended: bool = False,
    ) -> None:
        """Writes a log of TVM's auto_scheduler; `extended` adds records with steps TVM lacks."""
        words = ["records", "export", *program.flag("output", os.fspath(path))]
        words += program.flag("job", job or None)
        words += program.flag("workload", computation.workload_key if computation else None)
        words += program.flag("errors", errors) + program.flag("extended", extended)
        program.run(words, self.environment())

    # ---- programs ---------------------------------------------------------------------------

    def compile(
        self,
        workload: Workload | Record,
        output: str | os.PathLike[str] | None = None,
        *,
        target: str | None = None,
        strict: bool = False,
        gpu: int = 0,
        **named: Any,
    ) -> Network:
        """A computation or a network, with the best records of its tasks, as a callable.

        A task without a record gets a schedule that is chosen without measuring, unless `strict`.
        `output` keeps the file that kiln.load reads. `gpu`: which, as CUDA counts them. `named` are
        flags of `kiln compile`.
        """
        named = {"target": target, "strict": strict, **named}
        return compile_workload(workload, self.environment(), output, named, gpu)

    def show(self, record: Record | int, form: str = "schedule") -> str:
        """A record as text: schedule, steps, tvm, loops, passes, program, llvm, asm, cuda, c."""
        number = record.id if isinstance(record, Record) else _natural("record", record)
        return program.run(["show", f"--record={number}", f"--as={form}"], self.environment())

    def schedule(
        self,
        computation: Computation,
        target: str,
        *,
        include_compatible: bool = False,
        or_sample: bool = True,
        seed: int = 1,
        as_deployed: str = "",
    ) -> Schedule:
        """The schedule that the computation gets where nothing is searched, on a full target.

        `as_deployed`: only by records measured within a CUDA "graph", or by single launches on a
        "stream"; an error if there are none.
        """
        request = scheduler_pb2.QueryScheduleRequest(
            dag=computation.text,
            target=target,
            include_compatible=include_compatible,
            or_sample=or_sample,
            seed=_natural("seed", seed),
            as_deployed=as_deployed,
        )
        reply = self.connection.call(self.connection.scheduler.QuerySchedule, request)
        return values.schedule_of(reply)

    # ---- cost models ------------------------------------------------------------------------

    def models(self) -> list[Model]:
        """The cost models that the farm keeps, by name."""
        request = scheduler_pb2.ListModelsRequest()
        reply = self.connection.call(self.connection.scheduler.ListModels, request)
        return [values.model_of(each) for each in reply.models]

    def train_model(
        self,
        name: str,
        *,
        target: str,
        computation: Computation | None = None,
        replace: bool = False,
        seed: int = 1,
        parameters: Mapping[str, float] | None = None,
    ) -> Model:
        """Trains a model on the farm's records of a kind of target, and keeps it under a name.

        Jobs begin with it by TuneOptions(model=name). FailedPreconditionError or
        InvalidArgumentError: there are too few records, or another model has the name.
        """
        records = scheduler_pb2.ListRecordsRequest(
            target=_text("target", target),
            workload_keys=[computation.workload_key] if computation else [],
        )
        request = scheduler_pb2.TrainModelRequest(
            name=_text("name", name),
            replace=replace,
            records=records,
            seed=_natural("seed", seed),
            parameters=parameters,
        )
        reply = self.connection.call(self.connection.scheduler.TrainModel, request, _LONG_S)
        return values.model_of(reply.model)

    def delete_model(self, name: str) -> None:
        """Forgets a model. NotFoundError: there is none of this name."""
        request = scheduler_pb2.DeleteModelRequest(name=_text("name", name))
        self.connection.call(self.connection.scheduler.DeleteModel, request)

    # ---- the farm ---------------------------------------------------------------------------

    def workers(self) -> list[Worker]:
        """The builders and runners that are there now."""
        reply = self.connection.call(self.connection.tracker.List, tracker_pb2.ListRequest())
        return values.workers_of(reply)


def compile_workload(
    workload: Workload | Record,
    environment: Mapping[str, str],
    output: str | os.PathLike[str] | None,
    named: Mapping[str, Any],
    gpu: int,
) -> Network:
    """Compiles with the records of the place that `environment` names; `named` are flags."""
    if "form" in named:
        raise InvalidArgumentError("compile gives a callable; kiln.export writes other forms")
    flags = [word for key, value in named.items() for word in program.flag(key, value)]
    if isinstance(workload, Record):
        return compiled([str(workload.id), *flags], environment, output, gpu)
    with words_for(workload) as words:
        return compiled([*words, *flags], environment, output, gpu)


def _options(options: TuneOptions | None, named: dict[str, Any]) -> TuneOptions:
    base = {} if options is None else dict(vars(options))
    try:
        return TuneOptions(**{**base, **named})
    except TypeError as error:
        unknown = ", ".join(key for key in named if key not in TuneOptions.__dataclass_fields__)
        raise InvalidArgumentError(
            f"no option is called {unknown}; kiln.farm.options.TuneOptions has those there are"
        ) from error


def words_for(workload: Workload) -> Any:
    """A block with the words that name the workload for the program."""
    if isinstance(workload, Computation):
        return words_of([workload])
    if isinstance(workload, str):
        if workload.startswith("network:") or workload.endswith(_NETWORKS):
            return _Words([workload])
        raise InvalidArgumentError(
            f"'{workload}' is no network, expected network:NAME, *.onnx or *.graph; an operator is "
            "kiln.op(name, ...), a text kiln.computation(text)"
        )
    if isinstance(workload, Sequence) and all(isinstance(each, Computation) for each in workload):
        return words_of(workload)
    raise InvalidArgumentError(
        f"found a workload of type {type(workload).__name__}, expected a kiln.Computation "
        "(kiln.op, kiln.computation, kiln.te.create), a list of them, or the name of a network"
    )


class _Words:
    def __init__(self, words: list[str]) -> None:
        self._words = words

    def __enter__(self) -> list[str]:
        return self._words

    def __exit__(self, *_: object) -> None:
        pass


def _stop_of(serving: Serving | None) -> Stop | None:
    """What ends the watch of a job whose serving fails: the job would wait for ever."""
    if serving is None:
        return None
    stop = Stop()

    def stop_soon() -> None:
        timer = threading.Timer(_FAILING_S, stop.request)
        timer.daemon = True
        timer.start()

    serving.when_failed(stop_soon)
    return stop


def _raise_for(status: JobStatus, serving: Serving | None) -> None:
    """Raises if the job has failed: KilnError, from the exception of the user's code if that was
    the reason.
    """
    if status.state != "FAILED":
        return
    cause = serving.exception if serving is not None else None
    raise KilnError(status.message or f"job {status.id} failed") from cause


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else _text("job", job)


def _text(name: str, value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise InvalidArgumentError(f"{name} is {value!r}, expected a text that is not empty")


def _natural(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    raise InvalidArgumentError(f"{name} is {value!r}, expected a whole number from 0 on")
