"""Workloads: functions that declare computations, their keys, and computations by a key."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Sequence
from typing import Any

from kiln.auto_scheduler.layout import LayoutRewriteOption, check_layout_rewrite
from kiln.auto_scheduler.loop_state import State, StateObject, steps_of
from kiln.errors import InvalidArgumentError
from kiln.farm.computation import Computation, computation
from kiln.farm.engine import engine
from kiln.tables import titled
from kiln.te import Tensor, text
from kiln.te.operators import names_of
from kiln.te.schedule import Schedule

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
    """A computation. It prints as TVM prints it, a body that is one call by the call's name alone.

    `text` is its text form.
    """

    def __init__(self, compute_or_sche: Any) -> None:
        """Of tensors, a workload key, a te.Schedule, or a kiln.Computation."""
        self.tensors: list[Tensor] = []
        self._names: dict[Any, str] = {}
        if isinstance(compute_or_sche, Computation):
            self.computation = compute_or_sche
            return
        if isinstance(compute_or_sche, str):
            self.tensors = tensors_of(compute_or_sche)
        else:
            self.tensors = list(getattr(compute_or_sche, "tensors", compute_or_sche))
        if not self.tensors:
            raise InvalidArgumentError("a ComputeDAG of no tensors, expected an output at least")
        self.computation = computation(text(self.tensors), self.tensors[-1].name)
        self._names = names_of(self.tensors)

    def _repr_html_(self) -> str:
        """The computation as it prints, for notebooks."""
        return titled(f"{self.flop_ct:,.0f} operations", str(self))

    @property
    def flop_ct(self) -> float:
        """Number of operations."""
        return self.computation.flop_count

    @property
    def ops(self) -> list[Any]:
        """The operators of te, each after what it reads."""
        return list(self._names)

    @property
    def text(self) -> str:
        """The text form."""
        return self.computation.text

    def workload_key(self) -> str:
        """The key that TVM has for this computation: a hash and shapes."""
        return self.computation.workload_key

    def hash_key(self) -> str:
        """The hash of the computation: the first part of its key."""
        return json.loads(self.computation.workload_key)[0]

    # ---- states -----------------------------------------------------------------------------

    @property
    def init_state(self) -> StateObject:
        """The state without steps."""
        return StateObject(self, [])

    def get_init_state(self) -> State:
        """The state without steps."""
        return State(self.init_state, self)

    def apply_steps_from_state(
        self, state: State | StateObject, layout_rewrite: int = LayoutRewriteOption.NO_REWRITE
    ) -> tuple[Schedule, list[Tensor]]:
        """A schedule with the steps of the state, and the tensors, for kiln.te.build.

        `layout_rewrite` 2 makes it read weights packed; 1, a stage that packs, is refused.
        """
        check_layout_rewrite(layout_rewrite)
        return Schedule.of_steps(self, steps_of(state)), list(self.tensors)

    def infer_bound_from_state(self, state: State | StateObject) -> State:
        """The state with the extents of all loops."""
        bound = StateObject(self, steps_of(state), bounds=True)
        bound.check()
        return State(bound, self)

    def print_python_code_from_state(self, state: State | StateObject) -> str:
        """The steps as TVM's Python. InvalidArgumentError: TVM has no such step."""
        return self.ask("print", steps=steps_of(state), form="primitives")["text"]

    def rewrite_layout_from_state(self, state: State | StateObject) -> ComputeDAG:
        """The computation whose weights are packed in the order in which the state reads them.

        Weights are placeholders that an operator's `layout_free_placeholders` names. The result has
        `rewritten_layouts`: {"B": "4j32k16j"}.
        """
        packed = self.ask("packed", steps=steps_of(state))
        made = ComputeDAG(computation(packed["dag"], self.computation.name))
        made.tensors, made._names = list(self.tensors), dict(self._names)
        made.rewritten_layouts = packed["layouts"]
        return made

    rewritten_layouts: dict[str, str] = {}

    # ---- the engine -------------------------------------------------------------------------

    def ask(self, do: str, target: str = "llvm", **fields: Any) -> dict[str, Any]:
        """What the engine says of the computation."""
        return engine().ask(do, self.computation.text, target, **fields)

    def stage_name(self, key: Any) -> str:
        """The name of the stage of a tensor or an operator of te."""
        op = key.op if isinstance(key, Tensor) else key
        return self._names.get(op, getattr(op, "name", repr(op)))

    def __str__(self) -> str:
        most = 256
        lines = self.ask("dag")["text"].split("\n")
        return "\n".join(
            line if len(line) <= most else f"{line[: most // 2]} ..(OMITTED).. {line[-most // 2 :]}"
            for line in lines
        )

    def __repr__(self) -> str:
        return f"<ComputeDAG {self.computation.name}>"


def get_shape_from_rewritten_layout(rewritten_layout: str, axis_names: Sequence[str]) -> list[int]:
    """Extents of the axes in a layout: "4j32k16j" has 32 of k and 64 of j.

    InvalidArgumentError: the text is no layout, or has other axes.
    """
    parts = re.findall(r"(\d+)([A-Za-z_]\w*?)(?=\d|$)", rewritten_layout)
    if "".join(extent + name for extent, name in parts) != rewritten_layout:
        raise InvalidArgumentError(
            f"found the layout {rewritten_layout!r}, expected extents and axes: '4j32k16j'"
        )
    shape = dict.fromkeys(axis_names, 1)
    for extent, name in parts:
        if name not in shape:
            raise InvalidArgumentError(
                f"layout {rewritten_layout!r} has the axis {name}, expected {', '.join(axis_names)}"
            )
        shape[name] *= int(extent)
    return list(shape.values())


def save_workload_func_registry(filename: str) -> None:
    """Writes the registered functions into a file, by Python's pickle."""
    with open(filename, "wb") as file:
        pickle.dump(_functions, file)


def load_workload_func_registry(filename: str) -> None:
    """Registers the functions of a file. Only for files that one made oneself: pickle runs code."""
    with open(filename, "rb") as file:
        _functions.update(pickle.load(file))
