"""How configurations are built and timed, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from kiln.auto_scheduler import measuring
from kiln.auto_scheduler.refuse import refuse
from kiln.farm.client import Client
from kiln.farm.values import Record

if TYPE_CHECKING:
    from kiln.autotvm.space import ConfigEntity

# Cost of a configuration that failed.
FAILED_S = 1e9


class MeasureErrorNo(IntEnum):
    """Why a configuration has no cost."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class MeasureInput(NamedTuple):
    """A candidate."""

    target: str
    # A Task, or what a line of a log says of one.
    task: Any
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """The result of a candidate."""

    # Seconds; (1e9,) after an error.
    costs: tuple[float, ...]
    # A number of MeasureErrorNo.
    error_no: int
    # Seconds to build and run.
    all_cost: float
    # Unix time.
    timestamp: float

    @property
    def mean_s(self) -> float:
        """The mean of the costs; infinity if there are none."""
        return measuring.mean_of(self.costs)


def result_of(record: Record) -> MeasureResult:
    """The result of a record."""
    return _of_autotvm(measuring.result_of(record))


def _of_autotvm(found: measuring.MeasureResult) -> MeasureResult:
    """A result of auto_scheduler, which says otherwise what failed."""
    costs = tuple(found.costs) if found.error_no == 0 else (FAILED_S,)
    return MeasureResult(costs, found.error_no, found.all_cost, found.timestamp)


class LocalBuilder(measuring.LocalBuilder):
    """Builds on the farm, with autotvm's time limit."""

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: Any = None,
        build_func: Any = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ):
        """`timeout` is in seconds; `do_fork` does nothing, builds have processes of their own."""
        del do_fork
        refuse(
            "LocalBuilder",
            {
                "build_kwargs": "options of a build are those of the target",
                "runtime": "Kiln's programs have one runtime",
            },
            {"build_kwargs": build_kwargs, "runtime": runtime},
        )
        named = {} if n_parallel is None else {"n_parallel": n_parallel}
        super().__init__(timeout, build_func=build_func, **named)


class LocalRunner(measuring.LocalRunner):
    """Times on the farm's device, with autotvm's defaults."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        """`timeout` and `cooldown_interval` are in seconds."""
        why = {"module_loader": "the farm's runners load programs"}
        refuse("LocalRunner", why, {"module_loader": module_loader})
        super().__init__(
            timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush
        )


class RPCRunner(measuring.RPCRunner):
    """Times on the devices of a farm that have the key, with autotvm's defaults."""

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        """`host` and `port` are those of the farm's scheduler; `n_parallel` does nothing."""
        why = {"module_loader": "the farm's runners load programs"}
        refuse("RPCRunner", why, {"module_loader": module_loader})
        super().__init__(
            key,
            host,
            port,
            priority,
            n_parallel or 1,
            timeout,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
        )


@dataclass(frozen=True)
class MeasureOption:
    """A builder and a runner."""

    builder: Any
    runner: Any

    def options(self) -> dict[str, Any]:
        """Fields of kiln.farm.options.TuneOptions."""
        return {**self.builder.options(), **self.runner.options()}

    def client(self) -> Client:
        """The farm that measures."""
        return self.runner.client(self.builder.build_jobs())


def measure_option(builder: Any, runner: Any) -> MeasureOption:
    """A builder and a runner; "local" is one with its defaults.

    InvalidArgumentError: one is neither "local" nor of its kind.
    """
    made = measuring.builder_and_runner(builder, runner, (LocalBuilder, LocalRunner))
    return MeasureOption(*made)


def create_measure_batch(task: Any, option: MeasureOption) -> Any:
    """A function that measures MeasureInputs of the task at once, on the farm."""

    def measure_batch(inputs: list[MeasureInput]) -> list[MeasureResult]:
        states = [task.steps_of(each.config) for each in inputs]
        _, results = measuring.measure(
            task.search_task(), states, builder=option.builder, runner=option.runner
        )
        return [_of_autotvm(each) for each in results]

    return measure_batch
