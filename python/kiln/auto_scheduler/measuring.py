"""How candidates are built and timed, and what is told of them."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler import place
from kiln.auto_scheduler.loop_state import State, StateObject, steps_of
from kiln.auto_scheduler.refuse import refuse
from kiln.errors import InvalidArgumentError, KilnError
from kiln.farm.client import Client
from kiln.farm.places import connect
from kiln.farm.serving import BuildFunction, Served
from kiln.farm.values import Record

if TYPE_CHECKING:
    from kiln.auto_scheduler.search_task import SearchTask

_ERRORS = (
    "NO_ERROR",
    "INSTANTIATION_ERROR",
    "COMPILE_HOST_ERROR",
    "COMPILE_DEVICE_ERROR",
    "RUNTIME_DEVICE_ERROR",
    "WRONG_ANSWER_ERROR",
    "BUILD_TIMEOUT_ERROR",
    "RUN_TIMEOUT_ERROR",
    "UNKNOWN_ERROR",
)
# Cost of a candidate that failed.
_FAILED_S = 1e10
# The most bytes of the schedules of one job: the text of a template has 1 MiB at most.
_BYTES_AT_ONCE = 900_000


class MeasureErrorNo:
    """Why a candidate has no cost."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class ProgramBuilder:
    """Base of builders."""

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """Says of each candidate whether it has a program; the farm compiles it when it runs."""
        del verbose
        tasks = tasks_of(measure_inputs)
        return [_built(self, *pair) for pair in zip(tasks, measure_inputs)]


class ProgramRunner:
    """Base of runners."""

    def run(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        """Builds, checks and times the candidates that have a program, on the farm."""
        del verbose
        results: list[MeasureResult] = [
            MeasureResult([_FAILED_S], built.error_no, built.error_msg, built.time_cost, _now())
            for built in build_results
        ]
        good = [at for at, built in enumerate(build_results) if built.error_no == 0]
        by_task: dict[Any, list[int]] = {}
        for at in good:
            same = id_of(measure_inputs[at].task), id(build_results[at].builder)
            by_task.setdefault(same, []).append(at)
        for numbers in by_task.values():
            inputs = [measure_inputs[at] for at in numbers]
            states = [each.state for each in inputs]
            builder = build_results[numbers[0]].builder or "local"
            _, measured_now = measure(tasks_of(inputs)[0], states, builder, runner=self)
            for at, result in zip(numbers, measured_now):
                results[at] = result
        return results


class LocalBuilder(ProgramBuilder):
    """Builds on the farm, or has a function of this process make the binaries."""

    def __init__(
        self,
        timeout: float = 15,
        n_parallel: int = multiprocessing.cpu_count(),
        build_func: Any = "default",
    ):
        """`timeout` is in seconds.

        `n_parallel` are the builds at once of the local farm that starts with the first job; of a
        farm that runs already it is refused, unless it is the number of cores. `build_func` makes
        the binary of a kiln.Candidate: its bytes, or the path of its file. Threads of this process
        call it, `n_parallel` at once, and the farm's builds are then as many as it likes.
        """
        if build_func != "default" and not callable(build_func):
            raise InvalidArgumentError(
                f"LocalBuilder: build_func is {build_func!r}, expected 'default', or a function that "
                "makes the binary of a kiln.Candidate"
            )
        if int(n_parallel) < 1:
            raise InvalidArgumentError(f"n_parallel is {n_parallel}, expected 1 or more")
        self.build_func = build_func
        self.timeout = timeout
        self.n_parallel = int(n_parallel)

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {"build_timeout_ms": round(self.timeout * 1000)}

    def build_jobs(self) -> int:
        """The builds at once that the farm is asked for; 0 = as many as it likes."""
        if self.n_parallel == multiprocessing.cpu_count() or callable(self.build_func):
            return 0
        return self.n_parallel


def own_build(builder: Any) -> tuple[BuildFunction | None, int]:
    """The build function of a builder, and its calls at once; None = the farm builds."""
    build = getattr(builder, "build_func", None)
    return (build, builder.n_parallel) if callable(build) else (None, 0)


class LocalRunner(ProgramRunner):
    """Times on the farm's device."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        """`timeout` and `cooldown_interval` are in seconds; `device` is an index, 0 = any."""
        self.timeout = timeout
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        refuse(
            type(self).__name__, {"device": "kiln.local has one device"}, {"device": device or None}
        )

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {
            "timeout_ms": round(self.timeout * 1000),
            "number": self.number,
            "repeat": self.repeat,
            "min_repeat_ms": self.min_repeat_ms,
            "cooldown_ms": round(self.cooldown_interval * 1000),
            "flush_cache": self.enable_cpu_cache_flush,
        }

    def client(self, build_jobs: int = 0) -> Client:
        """The farm that measures."""
        return place.client(build_jobs=build_jobs)


class RPCRunner(LocalRunner):
    """Times on the devices of a farm that have the key."""

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        """`key` is one of `kiln workers`; `host` and `port` are those of the farm's scheduler.

        Without a host it is the farm that auto_scheduler.use named. All devices with the key work
        at once, so `n_parallel` does nothing.
        """
        del n_parallel
        super().__init__(
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
        )
        self.key = key
        self.priority = priority
        self._address = f"{host}:{port}" if host else ""
        self._client: Client | None = None

    def options(self) -> dict[str, Any]:
        return {**super().options(), "device": self.key, "priority": self.priority}

    def client(self, build_jobs: int = 0) -> Client:
        if not self._address:
            return super().client(build_jobs)
        if self._client is None:
            self._client = connect(self._address)
        return self._client


def builder_and_runner(builder: Any, runner: Any, local: tuple[Any, Any]) -> tuple[Any, Any]:
    """Both, where "local" is the one that a function of `local` makes.

    InvalidArgumentError: one is neither "local" nor of its kind.
    """
    found = []
    for name, given, make, does in zip(
        ("builder", "runner"), (builder, runner), local, ("build", "run")
    ):
        one = make() if isinstance(given, str) and given == "local" else given
        if not hasattr(one, does) or not hasattr(one, "options"):
            raise InvalidArgumentError(
                f"{name} is {given!r}, expected 'local' or a {make.__name__}"
            )
        found.append(one)
    return found[0], found[1]


class LocalRPCMeasureContext:
    """A runner in processes of its own, as each runner of Kiln is."""

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        """`priority` and `n_parallel` do nothing: the farm of this machine has one device."""
        del priority, n_parallel
        self.runner = LocalRunner(
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            device,
        )


@dataclass(frozen=True)
class RecordedTask:
    """What a line of a log says of its task."""

    workload_key: str
    target: str
    # The numbers of HardwareParams in their order.
    hardware_params: list[int] = field(repr=False)
    target_host: str = ""
    layout_rewrite_option: int = 0
    task_input_names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MeasureInput:
    """A candidate: a SearchTask and a State; of a line of a log, what the line says of both."""

    task: SearchTask | RecordedTask
    state: State

    def serialize(self) -> str:
        """The task and the steps as JSON, as in a log."""
        return json.dumps(input_row(self))

    @staticmethod
    def deserialize(data: str) -> MeasureInput:
        """What serialize wrote. InvalidArgumentError: it is something else."""
        try:
            return input_of(json.loads(data))
        except (ValueError, TypeError, LookupError) as error:
            raise InvalidArgumentError(f"found {data!r}, expected what serialize wrote") from error


@dataclass(frozen=True)
class MeasureResult:
    """The result of a candidate."""

    # Seconds; [1e10] after an error.
    costs: list[float]
    # A number of MeasureErrorNo.
    error_no: int
    error_msg: str
    # Seconds to build and run.
    all_cost: float
    # Unix time.
    timestamp: float

    @property
    def mean_s(self) -> float:
        """The mean of the costs; infinity if there are none."""
        return mean_of(self.costs)


@dataclass(frozen=True)
class BuildResult:
    """What a builder says of a candidate. Programs stay on the farm, so there is no file."""

    filename: str
    args: list[Any]
    error_no: int
    error_msg: str
    time_cost: float
    # Whose candidate it is; a runner measures it with this builder.
    builder: Any = field(default=None, repr=False, compare=False)


def served_build(builder: Any) -> Served | None:
    """What a job serves whose only code of this process is the builder's; None = nothing."""
    build, jobs = own_build(builder)
    return Served(build=build, build_jobs=jobs) if build is not None else None


def mean_of(costs: Sequence[float]) -> float:
    """The mean of seconds; infinity if there are none, so that nothing is slower."""
    return sum(costs) / len(costs) if costs else math.inf


def check_line(target: str, costs: Sequence[float], error: int) -> None:
    """Refuses what a line of a log cannot say. ValueError: no target, or no time of what ran."""
    if not target.split():
        raise ValueError(f"found the target {target!r}, expected one that begins with its kind")
    if error == MeasureErrorNo.NO_ERROR and not 0 < mean_of(costs) < math.inf:
        raise ValueError(f"found the costs {list(costs)} without an error, expected seconds")


def input_row(given: MeasureInput) -> list[Any]:
    """The part "i" of a line of a log."""
    task = given.task
    hardware = task.hardware_params
    row = hardware if isinstance(hardware, list) else hardware.row() if hardware else [0] * 8
    names = list(task.task_input_names)
    option = task.layout_rewrite_option or 0
    head = [task.workload_key, task.target, row, str(task.target_host or ""), option, names]
    return [head, [[], given.state.transform_steps]]


def input_of(row: Any) -> MeasureInput:
    """The candidate of the part "i" of a line of a log."""
    task, (_, steps) = row
    rest = task[3:]
    recorded = RecordedTask(
        str(task[0]),
        str(task[1]),
        [int(each) for each in task[2]] if len(task) > 2 else [0] * 8,
        str(rest[0]) if rest else "",
        int(rest[1]) if len(rest) > 1 else 0,
        [str(each) for each in rest[2]] if len(rest) > 2 else [],
    )
    return MeasureInput(recorded, State(StateObject(None, list(steps)), None))


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """The candidate of a log's line with its task, whose key a registered function has.

    With `rebuild_state` its state has stages as well. InvalidArgumentError: no function has the
    key, or the steps do not fit.
    """
    from kiln.auto_scheduler.search_task import SearchTask

    task = inp.task
    if isinstance(task, RecordedTask):
        dag = getattr(task, "compute_dag", None)
        task = SearchTask(
            compute_dag=dag,
            workload_key=task.workload_key,
            target=task.target,
            layout_rewrite_option=task.layout_rewrite_option,
        )
    state = State(StateObject(task.compute_dag, inp.state.transform_steps), task.compute_dag)
    if rebuild_state:
        state.state_object.check()
    return MeasureInput(task, state)


# Tasks are told apart by the key, the target, and whether weights are packed.
TaskId = tuple[str, str, int]


def id_of(task: SearchTask | RecordedTask) -> TaskId:
    """What tells the task apart."""
    return task.workload_key, task.target, task.layout_rewrite_option


def tasks_of(inputs: Sequence[MeasureInput]) -> list[SearchTask]:
    """The task of each candidate. That of lines of a log is made once, which takes some 90 ms.

    InvalidArgumentError: no registered function has the key.
    """
    made: dict[TaskId, Any] = {}
    for each in inputs:
        if id_of(each.task) not in made:
            made[id_of(each.task)] = recover_measure_input(each).task
    return [made[id_of(each.task)] for each in inputs]


def result_of(record: Record) -> MeasureResult:
    """The result of a record."""
    costs = list(record.costs_s) if record.cost_s is not None else [_FAILED_S]
    return MeasureResult(
        costs, _ERRORS.index(record.error), record.message, record.all_cost_s, record.timestamp_s
    )


def measured(task: SearchTask, record: Record) -> tuple[MeasureInput, MeasureResult]:
    """A record as a pair of TVM's. Its task has the target and the hardware that measured."""
    state = State(StateObject(task.compute_dag, record.step_list), task.compute_dag)
    return MeasureInput(task.as_measured(record), state), result_of(record)


def _now() -> int:
    return int(time.time())


def _built(builder: Any, task: SearchTask, given: MeasureInput) -> BuildResult:
    start = time.monotonic()
    why_not = _why_not(task, given.state.transform_steps)
    error = MeasureErrorNo.INSTANTIATION_ERROR if why_not else MeasureErrorNo.NO_ERROR
    return BuildResult("", [], error, why_not, time.monotonic() - start, builder)


def _why_not(task: SearchTask, steps: list[Any]) -> str:
    """Why the steps have no program on the target; "" if they have one."""
    try:
        return task.compute_dag.ask("program", target=task.target, steps=steps)["why_not"]
    except InvalidArgumentError as error:
        return str(error)


def measure(
    task: SearchTask,
    states: Sequence[Any],
    builder: Any = "local",
    runner: Any = "local",
    measure_callbacks: Sequence[Any] = (),
) -> tuple[list[MeasureInput], list[MeasureResult]]:
    """Builds, checks and times schedules on the farm, with fair shares, in one job.

    A state is a State or its steps, as sketches, logs and MeasureInputs have them. The records are
    kept by the farm; `measure_callbacks` see them as they come. A state that has no program has the
    error 1, and what is wrong as the message. KilnError: the job failed.
    """
    from kiln.auto_scheduler.rounds import Rounds
    from kiln.auto_scheduler.search_task import TuningOptions

    steps = [steps_of(each) for each in states]
    results: list[MeasureResult | None] = []
    for each in steps:
        why_not = _why_not(task, each)
        failed = MeasureResult(
            [_FAILED_S], MeasureErrorNo.INSTANTIATION_ERROR, why_not, 0.0, _now()
        )
        results.append(failed if why_not else None)
    options = TuningOptions(1, builder=builder, runner=runner)
    texts = {json.dumps(each): each for each, known in zip(steps, results) if known is None}
    found: dict[str, tuple[MeasureInput, MeasureResult]] = {}
    pending = list(texts)
    while pending:
        now = _first_of(pending)
        pending = pending[len(now) :]
        rounds = Rounds([task], measure_callbacks, None)
        with rounds:
            job = _measure_listed(task, now, options, [rounds])
        for record in job.client.records(job=job.id, errors=True):
            found[json.dumps(record.step_list)] = measured(task, record)
    inputs = []
    for number, each in enumerate(steps):
        text = json.dumps(each)
        state = State(StateObject(task.compute_dag, each), task.compute_dag)
        inputs.append(found[text][0] if text in found else MeasureInput(task, state))
        if results[number] is None:
            if text not in found:
                raise KilnError(f"the farm measured nothing of state {number}")
            results[number] = found[text][1]
    return inputs, [each for each in results if each is not None]


def _first_of(texts: list[str]) -> list[str]:
    """As many of the first schedules as one job takes; at least one."""
    size = 0
    for at, text in enumerate(texts):
        size += len(text) + 1
        if at > 0 and size > _BYTES_AT_ONCE:
            return texts[:at]
    return texts


def _measure_listed(task: SearchTask, texts: list[str], options: Any, callbacks: Any) -> Any:
    kind = "gpu" if task.target.split()[0] == "cuda" else "cpu"
    with tempfile.TemporaryDirectory(prefix="kiln-states.") as folder:
        path = os.path.join(folder, "schedules.tmpl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(text + "\n" for text in [f"schedules for {kind}", *texts])
        named = options.options()
        named.update(trials=len(texts), trials_per_round=len(texts), finalists=0)
        return options.client().tune(
            task.measured_computation,
            target=task.target,
            policy="template.grid",
            template=path,
            no_warm_start=True,
            callbacks=callbacks,
            verbose=0,
            served=served_build(options.both()[0]),
            **named,
        )


class MeasureCallback:
    """Base of what is told of measurements."""


class PythonBasedMeasureCallback(MeasureCallback):
    """Base of callbacks that see what was measured, a round at a time."""

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        """`policy` is the search policy, or None for the default one."""
        raise NotImplementedError


class ProgramMeasurer:
    """A builder, a runner and callbacks together."""

    def __init__(
        self,
        builder: Any,
        runner: Any,
        callbacks: Sequence[Any] | None,
        verbose: int,
        max_continuous_error: int | None = None,
    ) -> None:
        """`max_continuous_error` is refused: jobs end by their own rules (docs/search.md)."""
        refuse(
            "ProgramMeasurer",
            {"max_continuous_error": "a task ends after 256 trials that all failed"},
            {"max_continuous_error": max_continuous_error},
        )
        self.builder = builder
        self.runner = runner
        self.callbacks = list(callbacks or ())
        self.verbose = verbose

    def measure(self, task: SearchTask, states: Sequence[Any]) -> list[MeasureResult]:
        """The results of states."""
        return measure(task, states, self.builder, self.runner, self.callbacks)[1]
