"""How candidates are built and timed, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kiln.auto_scheduler.refuse import refuse
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


class LocalBuilder:
    """Builds on the farm. The number of builds at once is the farm's: kiln.local(build_jobs=)."""

    def __init__(self, timeout: float = 15, n_parallel: Any = None, build_func: str = "default"):
        """`timeout` is in seconds."""
        own = {
            "n_parallel": n_parallel,
            "build_func": None if build_func == "default" else build_func,
        }
        refuse(
            "LocalBuilder",
            {
                "n_parallel": "the builders of the farm say it, kiln.local(build_jobs=N)",
                "build_func": "the farm builds with its own compiler",
            },
            own,
        )
        self.timeout = timeout

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {"build_timeout_ms": round(self.timeout * 1000)}


class LocalRunner:
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
        refuse("LocalRunner", {"device": "kiln.local has one device"}, {"device": device or None})

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


class RPCRunner(LocalRunner):
    """Times on the devices of the farm (auto_scheduler.use) that have the key."""

    def __init__(
        self,
        key: str,
        host: str = "",
        port: int = 0,
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
        """`key` is a key of `kiln workers`; `n_parallel` does nothing, all devices are used."""
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
        where = "kiln.connect(HOST:PORT) names the farm, for auto_scheduler.use"
        refuse(
            "RPCRunner",
            {"host": where, "port": where},
            {"host": host or None, "port": port or None},
        )
        self.key = key
        self.priority = priority

    def options(self) -> dict[str, Any]:
        return {**super().options(), "device": self.key, "priority": self.priority}


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
        """`priority` and `n_parallel` do nothing."""
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
class MeasureInput:
    """A candidate."""

    # The task, or None for a line of a log.
    task: SearchTask | None
    workload_key: str
    target: str
    # Steps of the schedule, as in a log.
    steps: list[Any]
    hardware_params: list[int] = field(repr=False)


@dataclass(frozen=True)
class MeasureResult:
    """The result of a candidate."""

    # Seconds; [1e10] after an error.
    costs: list[float]
    # Number of TVM's MeasureErrorNo; 0 = none.
    error_no: int
    error_msg: str
    # Seconds to build and run.
    all_cost: float
    # Unix time.
    timestamp: float


def measured(
    task: SearchTask | None, key: str, record: Record
) -> tuple[MeasureInput, MeasureResult]:
    """A record as a pair of TVM's."""
    hardware = list(record.hardware.values())
    costs = list(record.costs_s) if record.cost_s is not None else [1e10]
    result = MeasureResult(
        costs, _ERRORS.index(record.error), record.message, record.all_cost_s, record.timestamp_s
    )
    return MeasureInput(task, key, record.target, record.step_list, hardware), result


class PythonBasedMeasureCallback:
    """Base of callbacks that see what was measured, a round at a time."""

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        """`policy` is the search policy, or None for the default one."""
        raise NotImplementedError
