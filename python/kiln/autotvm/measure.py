"""How configurations are built and timed."""

from __future__ import annotations

from typing import Any

from kiln.auto_scheduler import measuring


class LocalBuilder(measuring.LocalBuilder):
    """Builds on the farm, with autotvm's time limit."""

    def __init__(self, timeout: float = 10, n_parallel: Any = None, build_func: str = "default"):
        """`timeout` is in seconds."""
        super().__init__(timeout, n_parallel, build_func)


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
    ) -> None:
        """`timeout` and `cooldown_interval` are in seconds."""
        super().__init__(
            timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush
        )


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """Fields of kiln.farm.options.TuneOptions, of a builder and a runner."""
    return {**builder.options(), **runner.options()}
