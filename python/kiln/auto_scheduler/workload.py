"""Workloads: functions that declare computations, their keys, and computations by a key."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from kiln.errors import InvalidArgumentError
from kiln.farm.computation import Computation, computation
from kiln.te import Tensor, text

_functions: dict[str, Callable[..., Sequence[Tensor]]] = {}


def register_workload(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Registers a function that returns tensors, under its own name or the one that is given.

    A decorator, with or without a name. InvalidArgumentError: another function has the name, and
    `override` is not set.
    """
    if callable(func_name):
        return register_workload(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_workload(func_name, function, override)
    if _functions.get(func_name, f) is not f and not override:
        raise InvalidArgumentError(f"workload {func_name} is registered already: set override=True")
    _functions[func_name] = f
    return f


def make_workload_key(func: Any, args: Sequence[Any]) -> str:
    """The key of a registered function, or of its name, with arguments: '["matmul", 512, 512]'."""
    registered = (name for name, function in _functions.items() if function is func)
    default = func if isinstance(func, str) else getattr(func, "__name__", repr(func))
    name = next(registered, default)
    if name not in _functions:
        raise InvalidArgumentError(f"{name} is not registered, expected @register_workload on it")
    return json.dumps([name, *(_argument(each) for each in args)])


def _argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return ["TENSOR", list(value.shape), value.dtype]
    if isinstance(value, (tuple, list)):
        return [_argument(each) for each in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise InvalidArgumentError(f"an argument of a workload is {value!r}, expected numbers or texts")


def _of_key(value: Any) -> Any:
    from kiln.te import placeholder

    if isinstance(value, list) and len(value) == 3 and value[0] == "TENSOR":
        return placeholder(value[1], value[2])
    return tuple(_of_key(each) for each in value) if isinstance(value, list) else value


def tensors_of(workload_key: str) -> list[Tensor]:
    """The tensors of a key. InvalidArgumentError: no registered function has it."""
    try:
        name, *args = json.loads(workload_key)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"'{workload_key}' is no workload key") from error
    if name not in _functions:
        raise InvalidArgumentError(
            f"no workload {name} is registered, which key {workload_key} names"
        )
    made = _functions[name](*(_of_key(each) for each in args))
    return [made] if isinstance(made, Tensor) else list(made)


class ComputeDAG:
    """A computation. It prints as the text form."""

    def __init__(self, compute: Any) -> None:
        """Of tensors, a workload key, or a kiln.Computation."""
        self.tensors: list[Tensor] = []
        if isinstance(compute, Computation):
            self.computation = compute
            return
        self.tensors = tensors_of(compute) if isinstance(compute, str) else list(compute)
        if not self.tensors:
            raise InvalidArgumentError("a ComputeDAG of no tensors, expected an output at least")
        self.computation = computation(text(self.tensors), self.tensors[-1].name)

    @property
    def flop_ct(self) -> float:
        """Number of operations."""
        return self.computation.flop_count

    def workload_key(self) -> str:
        """The key that TVM has for this computation: a hash and shapes."""
        return self.computation.workload_key

    def hash_key(self) -> str:
        """As workload_key."""
        return self.computation.workload_key

    def __str__(self) -> str:
        return self.computation.text
