"""Facts of a device that a task may say otherwise than the device does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kiln.auto_scheduler.target_kind import kind_of
from kiln.errors import InvalidArgumentError

# Options of a target by the fields that they are for, with the factor between the two.
_OF_CPU = {
    "num_cores": ("num-cores", 1),
    "vector_unit_bytes": ("vector-width", 8),
    "cache_line_bytes": ("cache_line_bytes", 1),
}
_OF_GPU = {
    "vector_unit_bytes": ("vector_unit_bytes", 1),
    "cache_line_bytes": ("cache_line_bytes", 1),
    "max_shared_memory_per_block": ("max_shared_memory_per_block", 1),
    "max_local_memory_per_block": ("max_local_memory_per_block", 1),
    "max_threads_per_block": ("max_threads_per_block", 1),
    "max_vthread_extent": ("max_vthread_extent", 1),
    "warp_size": ("thread_warp_size", 1),
}
_FIELDS = (
    "num_cores",
    "vector_unit_bytes",
    "cache_line_bytes",
    "max_shared_memory_per_block",
    "max_local_memory_per_block",
    "max_threads_per_block",
    "max_vthread_extent",
    "warp_size",
)
# TVM's value for what has no limit, or is not known.
_NONE = (None, -1, 0, 2**31 - 1)


@dataclass
class HardwareParams:
    """Facts of a device. A field that is None is the device's own.

    Resources can be made smaller than the device's, not larger. With a `target`, the other fields
    are those of the target's default device.
    """

    num_cores: int | None = None
    vector_unit_bytes: int | None = None
    cache_line_bytes: int | None = None
    max_shared_memory_per_block: int | None = None
    max_local_memory_per_block: int | None = None
    max_threads_per_block: int | None = None
    max_vthread_extent: int | None = None
    warp_size: int | None = None
    target: Any = None
    target_host: Any = None

    def __post_init__(self) -> None:
        if self.target is not None:
            from kiln.farm.engine import engine

            text = "input x: float32[1]\ny[i: 1] = x[i] + 1.0\n"
            known = engine().opened(text, str(self.target))["hardware"]
            for name in _FIELDS:
                if getattr(self, name) is None:
                    setattr(self, name, known.get(name, known.get(name + "_bytes")))

    def row(self) -> list[int]:
        """The numbers in the order of a log; 0 for those that are not given."""
        return [getattr(self, name) or 0 for name in _FIELDS]

    def options(self, target: str) -> str:
        """The target with an option for each field that is given.

        InvalidArgumentError: such a target has no such fact, or the target says otherwise.
        """
        is_gpu = kind_of(target) == "cuda"
        known = _OF_GPU if is_gpu else _OF_CPU
        words = []
        for name in _FIELDS:
            value = getattr(self, name)
            if name not in known:
                if value not in _NONE:
                    raise InvalidArgumentError(
                        f"hardware_params.{name} is {value}, which target {target} does not have: "
                        "leave it out"
                    )
                continue
            if value in _NONE:
                continue
            option, factor = known[name]
            said = [word for word in target.split() if word.startswith(f"-{option}=")]
            word = f"-{option}={int(value) * factor}"
            if said and said != [word]:
                raise InvalidArgumentError(
                    f"hardware_params.{name} is {value}, and the target says {said[0]}"
                )
            words += [] if said else [word]
        return " ".join([target, *words])
