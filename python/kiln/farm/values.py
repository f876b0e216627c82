"""What a farm tells, as plain values: jobs, tasks, records, rounds, workers, models.

Times are in seconds unless a name ends otherwise; points in time are Unix time.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from kiln.errors import KilnError
from kiln.proto import scheduler_pb2, tracker_pb2, trial_pb2
from kiln.tables import duration, table, titled


@dataclass(frozen=True)
class Record:
    """One measured candidate."""

    id: int
    job: str
    # Index of the task within the job, and number of the trial within the job.
    task: int
    trial: int
    # "NO_ERROR", or why there is no cost: "WRONG_ANSWER_ERROR"; the message is its sentence.
    error: str
    message: str
    # Time of one run; None for a failed candidate.
    cost_s: float | None
    costs_s: tuple[float, ...]
    # 95% of readings at other times lie within so much of the cost; None = not known.
    confidence_s: float | None
    # The way of measuring, "graph/warm/free"; "" = not known. Costs of two ways do not compare.
    measured_as: str
    # Ids of finalists that do not differ significantly from it, if it is a best record.
    equal_ids: tuple[int, ...]
    flop_count: float
    workload_key: str
    # Digest of the computation, "" for imported lines.
    workload_id: str
    # Text form of the computation.
    dag: str
    target: str
    device: str
    # Steps of the schedule, JSON as in a log of TVM.
    steps: str
    # Part of the search that proposed the candidate, and its model's score (None = by chance).
    origin: str
    score: float | None
    max_error: float
    # Time to build and run it.
    all_cost_s: float
    timestamp_s: int
    hardware: dict[str, int] = field(repr=False)

    @property
    def gflops(self) -> float | None:
        """Billions of operations a second; None without a cost or a count."""
        return self.flop_count / self.cost_s / 1e9 if self.cost_s and self.flop_count else None

    def _repr_html_(self) -> str:
        """The figures and the steps, for notebooks."""
        speed = f"{self.gflops:.1f}" if self.gflops else None
        result = duration(self.cost_s) or f"{self.error}: {self.message}"
        head = ["record", "trial", "result", "GFLOP/s", "target", "device", "origin"]
        row = [self.id, f"{self.job}/{self.trial}", result, speed, self.target, self.device]
        steps = "\n".join(json.dumps(step) for step in self.step_list)
        return table(head, [[*row, self.origin]]) + titled("steps", steps)

    @property
    def step_list(self) -> list[list[Any]]:
        """The steps as lists: [["SP", 2, 0, 64, [2, 8, 4], 1], ...]."""
        return json.loads(self.steps) if self.steps else []


def _cost(result: Any) -> float | None:
    """The cost that counts: the median of re-measurements, or the mean of the readings."""
    if result.error != trial_pb2.NO_ERROR or not (result.costs_s or result.remeasured_costs_s):
        return None
    if result.remeasured_costs_s:
        return statistics.median(result.remeasured_costs_s)
    return statistics.fmean(result.costs_s)


def fields_of(message: Any) -> dict[str, Any]:
    """All fields of a flat message by name."""
    return {each.name: getattr(message, each.name) for each in message.DESCRIPTOR.fields}


def record_of(message: Any) -> Record:
    """The record of a message."""
    result = message.result
    return Record(
        id=message.id,
        job=message.job_id,
        task=message.task_index,
        trial=message.trial,
        error=trial_pb2.ErrorKind.Name(result.error),
        message=result.message,
        cost_s=_cost(result),
        costs_s=tuple(result.costs_s),
        confidence_s=result.confidence_s or None,
        measured_as=result.measured_as,
        equal_ids=tuple(message.equal_record_ids),
        flop_count=message.flop_count,
        workload_key=message.workload_key,
        workload_id=message.workload_id,
        dag=message.dag,
        target=message.target,
        device=result.device,
        steps=message.steps,
        origin=message.origin,
        score=None if math.isnan(message.score) else message.score,
        max_error=result.max_error,
        all_cost_s=result.build_s + result.run_s,
        timestamp_s=result.timestamp_s,
        hardware=fields_of(message.hardware),
    )


class Records:
    """An iterator of records, read from the farm as they are asked for; it is read once."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    def to_pandas(self) -> Any:
        """The rest as a pandas.DataFrame, a row a record. KilnError: pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise KilnError("to_pandas needs pandas, which is not installed") from error
        return pandas.DataFrame([{**asdict(each), "gflops": each.gflops} for each in self])


@dataclass(frozen=True)
class Task:
    """A task of a job: one computation, and what is known of it."""

    description: str
    # Text form.
    dag: str
    target: str
    weight: float
    network: str
    # "" or the name of the algorithm: "direct", "winograd F(4,3)".
    variant: str
    workload_key: str
    workload_id: str
    flop_count: float
    trials: int
    # None = no program yet.
    best_cost_s: float | None
    best_record: int | None
    # Time of the unscheduled loops; None = not measured.
    reference_cost_s: float | None


def task_of(message: Any) -> Task:
    """The task of a message."""
    spec = message.spec
    return Task(
        description=spec.description,
        dag=spec.dag,
        target=spec.target,
        weight=spec.weight or 1.0,
        network=spec.network,
        variant=spec.variant,
        workload_key=message.workload_key,
        workload_id=message.workload_id,
        flop_count=message.flop_count,
        trials=message.trials,
        best_cost_s=message.best_cost_s or None,
        best_record=message.best_record_id or None,
        reference_cost_s=message.reference_cost_s or None,
    )


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment."""

    id: str
    name: str
    user: str
    # "QUEUED", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED" or "CANCELLED"; the message says why it
    # failed.
    state: str
    message: str
    # "" while it goes on, or why it took no more trials: "TRIALS_USED_UP", "TARGET_REACHED", ...
    ending: str
    # "" = searching, or what it does instead.
    phase: str
    # Task of the newest round; None = there is none yet.
    next_task: int | None
    notices: tuple[str, ...]
    trials: int
    trials_done: int
    # Failed trials by kind.
    errors: dict[str, int]
    elapsed_s: float
    created_s: int
    waiting_for_workers: bool
    device: str
    # Share of the devices' time that was used, from 0 to 1.
    busy_share: float
    tasks: tuple[Task, ...] = field(repr=False)

    @property
    def is_final(self) -> bool:
        """True once the job has ended."""
        return self.state in ("SUCCEEDED", "FAILED", "CANCELLED")

    def _repr_html_(self) -> str:
        """The tasks, for notebooks."""
        rows = []
        for task in self.tasks:
            best, flops = task.best_cost_s, task.flop_count
            speed = f"{flops / best / 1e9:.1f}" if best and flops else None
            rows.append([task.description, task.weight, task.trials, duration(best), speed])
        title = f"job {self.id}: {self.state.lower()}, {self.trials_done} of {self.trials} trials"
        head = ["task", "uses", "trials", "best", "GFLOP/s"]
        return f"<p>{title}, {self.elapsed_s:.0f} s</p>{table(head, rows)}"


def status_of(message: Any) -> JobStatus:
    """The status of a message."""
    ending = scheduler_pb2.JobEnding.Name(message.ending)
    return JobStatus(
        id=message.id,
        name=message.spec.name,
        user=message.spec.user,
        state=scheduler_pb2.JobState.Name(message.state),
        message=message.message,
        ending="" if ending == "ENDING_UNSPECIFIED" else ending,
        phase=message.phase,
        next_task=message.next_task - 1 if message.next_task else None,
        notices=tuple(message.notices),
        trials=message.spec.options.trials,
        trials_done=message.trials_done,
        errors={
            trial_pb2.ErrorKind.Name(kind): count
            for kind, count in message.error_counts.items()
            if kind != trial_pb2.NO_ERROR
        },
        elapsed_s=message.elapsed_s,
        created_s=message.created_s,
        waiting_for_workers=message.waiting_for_workers != 0,
        device=message.device,
        busy_share=message.busy_share,
        tasks=tuple(task_of(each) for each in message.tasks),
    )


@dataclass(frozen=True)
class Round:
    """A round of the search: some candidates of one task, all measured."""

    number: int
    task: int
    # Since the job began.
    elapsed_s: float
    # Trials of the job that have results.
    trials: int
    # The objective; None while a task has no program.
    total_latency_s: float | None
    # Best cost of each task; None = none yet.
    best_s: tuple[float | None, ...]
    # Time for finding the candidates.
    search_s: float
    # A text for people about which candidates were considered and dropped.
    report: str


@dataclass(frozen=True)
class Event:
    """A change of a job: a record, a round, or the status alone."""

    status: JobStatus
    record: Record | None = None
    round: Round | None = None


def event_of(message: Any) -> Event:
    """The event of a message."""
    record = record_of(message.record) if message.HasField("record") else None
    happened = None
    if message.HasField("round"):
        each = message.round
        happened = Round(
            number=each.number,
            task=each.task_index,
            elapsed_s=each.elapsed_s,
            trials=each.trials,
            total_latency_s=each.total_latency_s or None,
            best_s=tuple(best or None for best in each.best_s),
            search_s=each.search_s,
            report=each.report,
        )
    return Event(status_of(message.status), record, happened)


@dataclass(frozen=True)
class Reason:
    """A reason why a job waits or is slow, and what would help."""

    # "queue", "no-device", "busy", ..., "running"; docs/operations.md has them all.
    kind: str
    # One sentence, and the lines about it: jobs, keys or notices.
    text: str
    details: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        return "\n".join([self.text, *(f"- {each}" for each in self.details), self.remedy])


def reason_of(fields: dict[str, Any]) -> Reason:
    """The reason that `kiln why --json` prints."""
    return Reason(fields["kind"], fields["text"], tuple(fields["details"]), fields["remedy"])


@dataclass(frozen=True)
class Worker:
    """A builder or a runner of the farm."""

    id: str
    # "BUILDER" or "RUNNER".
    kind: str
    address: str
    # The keys that it serves: "llvm", "cuda/sm_90", "NVIDIA H200".
    keys: tuple[str, ...]
    slots: int
    busy_slots: int
    # Name of a runner's device, and its full target.
    device: str
    target: str
    trials_done: int
    version: str
    hardware: dict[str, int] = field(repr=False)
    # Facts about the device, by the names of DeviceModel (proto/tracker.proto); a builder has none.
    model: dict[str, Any] = field(repr=False)

    @property
    def peak_gflops(self) -> float | None:
        """Billions of float32 operations a second without matrix units; None = not known."""
        get = self.model.get
        if get("compute_capability"):
            lanes = 64 if get("compute_capability") <= 80 else 128
            return 2e-3 * lanes * get("multiprocessors") * get("clock_mhz") or None
        return float(get("cores", 0) * get("gflops_per_core", 0)) or None

    @property
    def memory_gb_s(self) -> float | None:
        """Billions of bytes of memory a second, by the driver; None = not known, as of CPUs."""
        get = self.model.get
        return 2e-3 * get("memory_clock_mhz", 0) * get("memory_bus_bits", 0) / 8 or None


def workers_of(reply: Any) -> list[Worker]:
    """The workers of a tracker's list."""
    busy = list(reply.busy_slots) + [0] * len(reply.workers)
    return [
        Worker(
            id=each.id,
            kind=tracker_pb2.WorkerKind.Name(each.kind),
            address=each.address,
            keys=tuple(each.keys),
            slots=each.slots,
            busy_slots=busy[index],
            device=each.device,
            target=each.target,
            trials_done=each.trials_done,
            version=each.version,
            hardware=fields_of(each.hardware),
            model=fields_of(each.device_model) if each.HasField("device_model") else {},
        )
        for index, each in enumerate(reply.workers)
    ]


@dataclass(frozen=True)
class Model:
    """A trained cost model that the farm keeps."""

    name: str
    created_s: int
    bytes: int
    # The training records and how well the model ranks, as `kiln model show --json` has it.
    info: dict[str, Any] = field(repr=False)


def model_of(message: Any) -> Model:
    """The model of a message."""
    info = json.loads(message.info) if message.info else {}
    return Model(message.name, message.created_s, message.bytes, info)


@dataclass(frozen=True)
class Schedule:
    """The schedule that a computation gets where nothing is searched."""

    # "SET", "RECORD", "COMPATIBLE", "SAMPLE" or "NONE".
    source: str
    steps: str
    record: int | None
    # Cost of a record of the computation itself; None = not known.
    cost_s: float | None
    # Predicted time of a schedule that is chosen without measuring.
    predicted_s: float | None
    device: str
    origin: str


def schedule_of(reply: Any) -> Schedule:
    """The schedule of a reply."""
    return Schedule(
        source=scheduler_pb2.ScheduleSource.Name(reply.source).removeprefix("SCHEDULE_"),
        steps=reply.steps,
        record=reply.record_id or None,
        cost_s=reply.cost_s or None,
        predicted_s=reply.predicted_s or None,
        device=reply.device,
        origin=reply.origin,
    )


@dataclass(frozen=True)
class Imported:
    """What became of the lines of a log."""

    imported: int
    duplicates: int
    refused: int
    # "line 12: ...", of the first lines that were refused.
    errors: tuple[str, ...]
