"""Code of the user in a search: a cost model, sketch rules, an objective, a build function.

The search stays in the scheduler and calls this process over a stream, once a batch. A thread of
the process answers, and each build has a thread of its own (builds.py). The job goes on only while
the process is connected.
"""

from __future__ import annotations

import math
import os
import pwd
import queue
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Union

import grpc
from kiln import errors
from kiln.errors import InvalidArgumentError
from kiln.farm import program
from kiln.farm.builds import Builds, is_ending
from kiln.farm.connection import PATIENCE_S, Connection, error_of
from kiln.proto import scheduler_pb2, trial_pb2

if TYPE_CHECKING:
    import numpy

_PAUSE_S = 0.2
# A process that ends is noticed by the scheduler within so long.
_NOTICED_S = 2.0
# Most bytes of the text of an exception.
_LONGEST_TEXT = 8 << 10
# Limits of the scheduler: builds at once, and bytes of a binary.
_MOST_BUILDS = 256
_LARGEST_BINARY = 64 << 20
# The time of a build whose job says none, and the part of it within which a build has to begin: the
# scheduler must hear in time that none did.
_BUILD_S = 15.0
_BEGINS_WITHIN = 0.9


@dataclass(frozen=True)
class Programs:
    """Programs of one task, as a cost model gets them."""

    # Index of the task in the job.
    task: int
    # float32 [rows, columns], a view of the message that must not be written; row offsets[i] is the
    # first of program i. None unless the model reads rows.
    rows: numpy.ndarray | None
    offsets: numpy.ndarray | None
    # float32 [rows], a view as well: the seconds of each row by Kiln's analytic model of the
    # device. The estimate of a program is the sum over its rows. None unless the model reads rows.
    estimates_s: numpy.ndarray | None
    # JSON of the steps of each program; empty unless the model reads steps.
    steps: list[str]
    count: int

    def __len__(self) -> int:
        return self.count

    def rows_of(self, index: int) -> numpy.ndarray:
        """The feature rows of one program."""
        assert self.rows is not None and self.offsets is not None
        return self.rows[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True)
class Results:
    """Measured programs of one task."""

    programs: Programs
    # Number of each result. A number that came before corrects that result by further readings.
    numbers: list[int]
    # Seconds of one run; NaN = the program failed.
    costs_s: list[float]
    # Speed relative to the best of the task so far: 1 = the best, 0 = the program failed.
    throughputs: list[float]


class CostModel(Protocol):
    """A cost model. It says what it reads of each program."""

    reads_rows: bool
    reads_steps: bool

    def predict(self, programs: Programs) -> Sequence[float]:
        """A score for each program, the higher the faster; -inf = should not be measured."""

    def update(self, results: Results) -> None:
        """Learns."""


class SketchRule(Protocol):
    """A sketch rule. Steps are those of a log, JSON."""

    name: str

    def apply(self, task: int, steps: str, stage: int) -> Applied | None:
        """The states that follow from a state, whose next stage is `stage`; None = it passes."""


@dataclass(frozen=True)
class Applied:
    """What a rule makes of a state."""

    # The steps of each state, and its next stage; -1 = all stages are decided.
    made: list[tuple[str, int]]
    # No other rule is tried on the state.
    skip_rest: bool = False


@dataclass(frozen=True)
class Argument:
    """An array that a compiled program takes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    # "input", "output" or "workspace".
    role: str
    # The program may rely on the array's address being a multiple of it.
    alignment_bytes: int
    # Dimensions of an array whose elements the program takes in another order: axis, extent, step
    # (proto/trial.proto, PackedDim). Empty = the array is as it is.
    packing: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Launch:
    """A function of a compiled program. Launches run in order."""

    # Name that the binary exports.
    symbol: str
    # Extents along x, y, z; empty on a CPU.
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_shared_bytes: int
    # Indices of its arguments.
    args: tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """A program that a build function compiles."""

    # Index of the task in the job.
    task: int
    # The target's full text, with the options that the device has set.
    target: str
    # JSON of the steps, as in a log.
    steps: str
    # The program: CUDA C, or LLVM IR as text, before any optimizer.
    source: str
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]

    @property
    def is_cuda(self) -> bool:
        """Whether the source is CUDA C, to be made a cubin; otherwise a shared object is made."""
        return self.target.split()[0] == "cuda"

    @property
    def architecture(self) -> str:
        """What CUDA C has to be compiled for: "sm_90a"; "" for LLVM IR, which names its CPU."""
        found = re.match(r"// For --gpu-architecture=(\S+)", self.source)
        return found.group(1) if found else ""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the functions that the binary has to export."""
        return tuple(dict.fromkeys(each.symbol for each in self.launches))


# Makes the binary of a candidate: its bytes, or the path of its file. What it raises fails the
# candidate and not the job.
BuildFunction = Callable[[Candidate], Union[bytes, bytearray, memoryview, str, "os.PathLike[str]"]]


@dataclass
class Cost:
    """What the calls of one kind cost this process."""

    calls: int = 0
    # Seconds in the user's code, with the reading of the message and the making of the reply.
    seconds: float = 0.0
    # Size of the messages that came, and number of programs, states or points in them.
    bytes: int = 0
    items: int = 0


@dataclass
class Served:
    """The parts of a job's search that this process serves."""

    cost_model: CostModel | None = None
    sketch_rules: Sequence[SketchRule] = ()
    # The figure that the job makes small, of a latency in seconds for each task; 1e10 = none yet.
    objective: Callable[[Sequence[float]], float] | None = None
    # Seconds that an answer may take; None = 300. A build may take the time of the job's builds.
    timeout_s: float | None = None
    # Makes the binary of each candidate. Several threads call it at once.
    build: BuildFunction | None = None
    # Most calls of it at once, over all jobs and with those that were given up; 0 = the number of
    # cores here.
    build_jobs: int = 0
    # Costs of the calls of all jobs by kind: "predict", "update", "objective", "rules", "build".
    costs: dict[str, Cost] = field(default_factory=dict, repr=False)
    # The calls of `build`.
    builds: Builds | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        model = self.cost_model
        others = (model, self.objective, self.build)
        if not self.sketch_rules and all(each is None for each in others):
            raise InvalidArgumentError(
                "nothing is served, expected a cost_model, sketch_rules, an objective or a build "
                "function"
            )
        if self.build is not None and not callable(self.build):
            raise InvalidArgumentError(
                f"build is {self.build!r}, expected a function of a Candidate"
            )
        if isinstance(self.build_jobs, bool) or not isinstance(self.build_jobs, int):
            raise InvalidArgumentError(f"build_jobs is {self.build_jobs!r}, expected a number")
        if not 0 <= self.build_jobs <= _MOST_BUILDS:
            raise InvalidArgumentError(
                f"build_jobs is {self.build_jobs}, expected 0 to {_MOST_BUILDS}"
            )
        if model is not None and not (model.reads_rows or model.reads_steps):
            raise InvalidArgumentError(
                f"the cost model {type(model).__name__} reads neither rows nor steps, expected one"
            )
        if self.objective is not None and not callable(self.objective):
            raise InvalidArgumentError(
                f"objective is {self.objective!r}, expected a function of latencies"
            )
        if self.build is not None:
            self.builds = Builds(self.builds_at_once())

    def words(self) -> list[str]:
        """The flags for `kiln submit`."""
        model = self.cost_model
        reads = []
        if model is not None:
            reads = ["rows"] * bool(model.reads_rows) + ["steps"] * bool(model.reads_steps)
        return [
            *program.flag("served-model", ",".join(reads) or None),
            *program.flag("served-rule", [rule.name for rule in self.sketch_rules]),
            *program.flag("served-objective", self.objective is not None),
            *program.flag("served-builds", self.builds_at_once() or None),
            *program.flag("served-timeout", self.timeout_s),
        ]

    def builds_at_once(self) -> int:
        """Most calls of `build` at once; 0 = there is no such function."""
        if self.build is None:
            return 0
        return self.build_jobs or min(os.cpu_count() or 1, _MOST_BUILDS)


class _Answers:
    """What a Served answers to the calls of one job."""

    def __init__(self, served: Served) -> None:
        self._served = served
        # The least cost of each task so far, in seconds.
        self._best_s: dict[int, float] = {}

    def answer(self, request: Any) -> Any:
        """The reply to a call (CallbackRequest). Raises what the user's code raises."""
        reply = scheduler_pb2.CallbackReply(number=request.number)
        call = request.WhichOneof("call")
        if call == "predict":
            reply.values.extend(self._scores(request.predict))
        elif call == "update":
            self._learn(request.update)
        elif call == "objective":
            reply.values.extend(self._objective(request.objective))
        elif call == "rules":
            reply.applied.extend(self._applied(request.rules))
        elif call == "build":
            reply.binary = self._built(request.build)
        else:
            raise errors.KilnError("the scheduler made a call that this version does not know")
        return reply

    def _scores(self, call: Any) -> list[float]:
        assert self._served.cost_model is not None
        scores = self._served.cost_model.predict(_programs(call, call.programs))
        return [float(score) for score in scores]

    def _learn(self, call: Any) -> None:
        assert self._served.cost_model is not None
        costs = list(call.costs_s)
        best = min(
            [cost for cost in costs if not math.isnan(cost)],
            default=math.inf,
        )
        best = self._best_s[call.task_index] = min(best, self._best_s.get(call.task_index, best))
        throughputs = [0.0 if math.isnan(cost) else best / cost for cost in costs]
        programs = _programs(call, len(costs))
        self._served.cost_model.update(Results(programs, list(call.numbers), costs, throughputs))

    def _objective(self, call: Any) -> Iterator[float]:
        assert self._served.objective is not None
        latencies = list(call.latencies_s)
        tasks = len(latencies) // max(1, call.points)
        for first in range(0, len(latencies), tasks):
            yield float(self._served.objective(latencies[first : first + tasks]))

    def _built(self, call: Any) -> bytes:
        assert self._served.build is not None
        made: Any = self._served.build(_candidate(call))
        if isinstance(made, (str, os.PathLike)):
            with open(made, "rb") as file:
                made = file.read()
        if not isinstance(made, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"it returned {type(made).__name__}, expected bytes or the path of a file"
            )
        binary = bytes(made)
        if len(binary) > _LARGEST_BINARY:
            raise ValueError(
                f"it returned {len(binary)} bytes, expected at most {_LARGEST_BINARY}"
            )
        return binary

    def _applied(self, call: Any) -> Iterator[Any]:
        for index, state in enumerate(call.states):
            for number, rule in enumerate(self._served.sketch_rules):
                applied = rule.apply(call.task_index, state.steps, state.stage)
                if applied is None:
                    continue
                made = [
                    scheduler_pb2.RuleState(steps=steps, stage=stage)
                    for steps, stage in applied.made
                ]
                yield scheduler_pb2.AppliedRule(
                    state=index, rule=number, skip_rest=applied.skip_rest, made=made
                )
                if applied.skip_rest:
                    break


def _programs(call: Any, count: int) -> Programs:
    """The programs of a PredictCall or an UpdateCall; their rows stay in the message's bytes."""
    rows = offsets = estimates_s = None
    if call.HasField("rows"):
        import numpy

        rows = numpy.frombuffer(call.rows.values, numpy.dtype("<f4"))
        rows = rows.reshape(-1, call.rows.columns)
        offsets = numpy.array(call.rows.offsets, numpy.int64)
        estimates_s = numpy.frombuffer(call.rows.estimates_s, numpy.dtype("<f4"))
    return Programs(call.task_index, rows, offsets, estimates_s, list(call.steps), count)


def _candidate(call: Any) -> Candidate:
    """The program of a BuildCall."""
    roles = trial_pb2.ArgSpec.Role
    arguments = [
        Argument(
            each.name,
            each.dtype,
            tuple(each.shape),
            roles.Name(each.role).lower(),
            each.alignment_bytes,
            tuple((dim.axis, dim.extent, dim.step) for dim in each.packing),
        )
        for each in call.plan.args
    ]
    launches = [
        Launch(
            each.symbol,
            tuple(each.grid),
            tuple(each.block),
            each.dynamic_shared_bytes,
            tuple(each.args),
        )
        for each in call.plan.launches
    ]
    return Candidate(
        call.task_index, call.target, call.steps, call.source, tuple(arguments), tuple(launches)
    )


def _items(request: Any) -> int:
    """Number of programs, states or points that a call is about."""
    kind = request.WhichOneof("call")
    if kind == "build":
        return 1
    call = getattr(request, kind)
    for name in ("programs", "points"):
        if name in call.DESCRIPTOR.fields_by_name:
            return getattr(call, name)
    return len(call.costs_s) if hasattr(call, "costs_s") else len(call.states)


def user_name() -> str:
    """The user's name, as `kiln submit` takes it for a job's."""
    if os.environ.get("USER"):
        return os.environ["USER"]
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"


def _text_of(error: BaseException) -> str:
    """The exception and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = f"{type(error).__name__}: {error}{place}".encode("utf-8", "replace")
    return text[:_LONGEST_TEXT].decode("utf-8", "ignore") or type(error).__name__


class Serving:
    """Serves a job in a thread of its own until the job has ended, or until close().

    A connection that is lost is made again. A context manager.
    """

    def __init__(self, connection: Connection, job_id: str, served: Served, user: str = "") -> None:
        """Returns once the scheduler has accepted this process.

        NotFoundError: there is no such job. FailedPreconditionError: it has ended, or was not
        submitted with served code. KilnError: another process serves it, or it is another user's.
        """
        self._connection = connection
        self.job_id = job_id
        self._served = served
        self._answers = _Answers(served)
        # With keys the certificate says it.
        self._user = user or ("" if connection.access.has_keys else user_name())
        self._call: Any = None
        self._closed = False
        self._accepted = threading.Event()
        self._lock = threading.Lock()
        self._tell_failure: Callable[[], None] = lambda: None
        # Seconds within which a build of the job has to begin; asked for at the first one.
        self._begins_within_s: float | None = None
        # The exception that the user's code has raised, and why serving has ended, if it failed.
        self.exception: BaseException | None = None
        self.error: errors.KilnError | None = None
        self._thread = threading.Thread(target=self._run, name=f"kiln job {job_id}", daemon=True)
        self._thread.start()
        self._accepted.wait()
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends serving. A job that has not ended waits for a process that serves it.

        Calls of the build function go on until they return.
        """
        self._closed = True
        if self._call is not None:
            self._call.cancel()
        if threading.current_thread() is not self._thread:
            # Other code of the user that is at work ends with the process.
            self._thread.join(timeout=1.0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of serving; returns whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def when_failed(self, tell: Callable[[], None]) -> None:
        """Calls `tell` once serving has ended with an error; at once, if it has already."""
        with self._lock:
            self._tell_failure = tell
            failed = self.error is not None
        if failed:
            tell()

    # ---- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._serve()
        except errors.KilnError as error:
            self._fail(error)
        except Exception as error:  # pylint: disable=broad-exception-caught
            failure = errors.KilnError(f"serving job {self.job_id} ended: {_text_of(error)}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self._accepted.set()

    def _fail(self, error: errors.KilnError) -> None:
        with self._lock:
            self.error = error
            tell = self._tell_failure
        tell()

    def _serve(self) -> None:
        """Answers until the job has ended, or until close(). Raises why it cannot go on."""
        contact = time.monotonic()
        while not self._closed:
            try:
                for number, request in enumerate(self._requests()):
                    contact = time.monotonic()
                    self._accepted.set()
                    self._take(request, number == 0)
                    contact = time.monotonic()
                return
            except errors.KilnError as error:
                if self._closed:
                    return
                if not self._may_come_back(error, contact):
                    raise
            time.sleep(_PAUSE_S)

    def _may_come_back(self, error: errors.KilnError, contact: float) -> bool:
        since_s = time.monotonic() - contact
        # A scheduler that has not noticed the end of a connection takes it for another process.
        is_taken = "another process" in str(error)
        if not self._accepted.is_set():
            return is_taken and since_s < _NOTICED_S
        return (is_taken or isinstance(error, errors.UnavailableError)) and since_s < PATIENCE_S

    def _requests(self) -> Iterator[Any]:
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._replies.put(scheduler_pb2.CallbackReply(job_id=self.job_id, user=self._user))
        call = self._call = self._connection.open(
            self._connection.scheduler.ServeCallbacks, iter(self._replies.get, None)
        )
        if self._closed:
            # close() may have looked for the call before it was there.
            call.cancel()
        try:
            yield from call
        except grpc.RpcError as error:
            raise error_of(error) from error
        finally:
            self._replies.put(None)
            call.cancel()

    def _take(self, request: Any, is_first: bool) -> None:
        """Answers a call; a build in a thread of its own, so that others need not wait for it."""
        kind, replies = request.WhichOneof("call"), self._replies
        if kind == "build":
            self._build(request, replies)
        elif kind is not None:
            replies.put(self._reply_to(request))
        elif not is_first:
            # The job has ended: the scheduler waits until this side of the stream has as well.
            replies.put(None)

    def _build(self, request: Any, replies: queue.SimpleQueue[Any]) -> None:
        if is_ending():
            raise errors.FailedPreconditionError(
                "the main thread of Python has ended, and no build begins after it; let it wait for "
                f"the end of job {self.job_id}, or serve the job again"
            )
        assert self._served.builds is not None
        self._served.builds.start(
            call=lambda: self._reply_to(request),
            send=replies.put,
            refuse=lambda why: replies.put(_refusal(request, why)),
            within_s=self._begins_within(),
        )

    def _begins_within(self) -> float:
        if self._begins_within_s is None:
            asked = scheduler_pb2.GetJobRequest(job_id=self.job_id)
            job = self._connection.call(self._connection.scheduler.GetJob, asked)
            limit_s = 1e-3 * job.spec.options.build_timeout_ms or _BUILD_S
            self._begins_within_s = _BEGINS_WITHIN * limit_s
        return self._begins_within_s

    def _reply_to(self, request: Any) -> Any:
        """The answer to a call, or the text of what the user's code raised."""
        kind = request.WhichOneof("call")
        start = time.perf_counter()
        try:
            reply = self._answers.answer(request)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            if kind != "build":
                self.exception = error
            reply = _refusal(request, _text_of(error))
        with self._lock:
            cost = self._served.costs.setdefault(kind, Cost())
            cost.calls += 1
            cost.seconds += time.perf_counter() - start
            cost.bytes += request.ByteSize()
            cost.items += _items(request)
        return reply


def _refusal(request: Any, why: str) -> Any:
    return scheduler_pb2.CallbackReply(number=request.number, error=why)
