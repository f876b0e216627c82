"""Is a program right, and is it fast: beside torch, on the example inputs."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

# Largest difference to eager that rounding explains, of the largest value.
_TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 6e-2,
}
# Time of a reading, and how many there are of each.
_READING_S = 0.005
_READINGS = 11
_MOST_CALLS = 200


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """A block in which eager computes float32 without TensorFloat32, as Kiln does."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = False
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference, of the largest value; infinite if the values are of other kinds."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.dtype.is_floating_point:
        return 0.0 if torch.equal(found, expected) else float("inf")
    # Torch has no isfinite of floats of 8 bits.
    a, b = found.double(), expected.double()
    finite = torch.isfinite(b)
    others, expected_others = a[~finite], b[~finite]
    both_nan = others.isnan() & expected_others.isnan()
    if not bool((both_nan | (others == expected_others)).all()):
        return float("inf")
    a, b = a[finite], b[finite]
    if a.numel() == 0:
        return 0.0
    if not bool(torch.isfinite(a).all()):
        return float("inf")
    scale = b.abs().max().item()
    return (a - b).abs().max().item() / (scale or 1.0)


def tolerance_of(dtypes: Iterable[torch.dtype]) -> float:
    """The difference that rounding explains where values of these types are computed."""
    return max((_TOLERANCES.get(each, 0.0) for each in dtypes), default=0.0)


def why_wrong(
    found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], tolerance: float
) -> tuple[float, str]:
    """The largest difference of all outputs, and a sentence about it, or "" if all are right."""
    worst, said = 0.0, ""
    for index, (a, b) in enumerate(zip(found, expected)):
        error = difference(a, b)
        worst = max(worst, error)
        if not error <= tolerance:
            said = (
                f"result {index} differs from eager by {error:.1e} of its largest value, expected "
                f"at most {tolerance:.0e}"
            )
    return worst, said


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _reading(call: Callable[[], Any], count: int, device: torch.device) -> float:
    _synchronize(device)
    begin = time.perf_counter()
    for _ in range(count):
        call()
    _synchronize(device)
    return (time.perf_counter() - begin) / count


def seconds_of(calls: Sequence[Callable[[], Any]], device: torch.device) -> list[float]:
    """Seconds of a call of each, medians, read in turns: what else the machine does is for all.

    On a GPU a reading is many calls behind each other, as a model is called.
    """
    counts = []
    for call in calls:
        call()
        once = _reading(call, 1, device)
        counts.append(max(1, min(_MOST_CALLS, round(_READING_S / max(once, 1e-7)))))
    readings: list[list[float]] = [[] for _ in calls]
    for _ in range(_READINGS):
        for call, count, into in zip(calls, counts, readings):
            # Caches and threads are this one's again.
            call()
            into.append(_reading(call, count, device))
    return [statistics.median(each) for each in readings]
