"""Schedules by hand, with TVM's names: create_schedule, and the primitives of stages.

    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, factor=16)
    s[C].vectorize(inner)
    fn = te.build(s, [A, B, C], "llvm")

A schedule is recorded as a template's text (docs/templates.md), one statement a primitive; the
engine makes steps of it. With the values of a configuration space in it (kiln.autotvm), the text is
a template, which searches turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from kiln.errors import FailedPreconditionError, InvalidArgumentError
from kiln.te.expression import Axis, Tensor
from kiln.te.operators import Compute, Placeholder, names_of

if TYPE_CHECKING:
    from kiln.auto_scheduler.workload import ComputeDAG

_THREADS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
# Pragmas that say nothing to Kiln: it leaves unrolling to the compiler of the kernel.
_WITHOUT_EFFECT = ("unroll_explicit",)
# Words of the template form, which no name of it may be.
_WORDS = frozenset(
    "template for cpu gpu stage knob let filter require if true false and or not min max ceil_div "
    "extent computed reduction output input op axes reduce_axes split split_parts fuse reorder "
    "unroll vectorize parallel bind annotate fetch_by_threads compute_at compute_root inline "
    "inline_others choose cache_read cache_write accumulator rfactor hint storage_align layout "
    "buffering shared local vthread cluster blockIdx threadIdx".split()
)


class Recorded:
    """A number that the text computes: a knob, a size of one, or arithmetic of them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        raise InvalidArgumentError(
            f"the value of {self.text} is not known while the template is written, so Python "
            "cannot branch on it: define a knob of the two numbers, or two templates"
        )

    __hash__ = object.__hash__

    def __index__(self) -> int:
        self.__bool__()
        raise AssertionError

    def __repr__(self) -> str:
        return f"<recorded {self.text}>"


def _operator(symbol: str, swapped: bool = False) -> Any:
    def apply(self: Recorded, other: Any) -> Recorded:
        left, right = text_of_number(self), text_of_number(other)
        if swapped:
            left, right = right, left
        return Recorded(f"({left} {symbol} {right})")

    return apply


for _name, _symbol in (
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("floordiv", "//"),
    ("mod", "%"),
):
    setattr(Recorded, f"__{_name}__", _operator(_symbol))
    setattr(Recorded, f"__r{_name}__", _operator(_symbol, swapped=True))
for _name, _symbol in (
    ("le", "<="),
    ("lt", "<"),
    ("ge", ">="),
    ("gt", ">"),
    ("eq", "=="),
    ("ne", "!="),
):
    setattr(Recorded, f"__{_name}__", _operator(_symbol))
setattr(Recorded, "__and__", _operator("&&"))
setattr(Recorded, "__or__", _operator("||"))

Number = Union[int, Recorded]


def text_of_number(value: Any) -> str:
    """A whole number or a recorded one, as the text has it."""
    if isinstance(value, Recorded):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        if int(value) == value:
            return str(int(value))
    except (TypeError, ValueError):
        pass
    raise InvalidArgumentError(f"found {value!r}, expected a whole number or a value of the space")


class IterVar:
    """A loop, by its name in the text."""

    def __init__(self, name: str, extent: int | None = None) -> None:
        self.name = name
        # None: the text alone knows it.
        self.extent = extent

    def __repr__(self) -> str:
        return f"<loop {self.name}>"


class ThreadAxis:
    """What thread_axis returns: blocks, threads, or virtual threads."""

    def __init__(self, tag: str) -> None:
        self.tag = tag


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: Any = None) -> ThreadAxis:
    """A kind of blocks or threads to bind a loop to: thread_axis("threadIdx.x").

    The loop has its own extent, so `dom` is no more than a check of TVM's; `name` does nothing.
    """
    del span, name
    found = dom if isinstance(dom, str) else tag
    if found not in (*_THREADS, "vthread"):
        raise InvalidArgumentError(
            f"found the thread axis {found!r}, expected vthread or one of {', '.join(_THREADS)}"
        )
    return ThreadAxis(found)


class _Op:
    """What `s[C].op` has: the axes of the stage as loops, and what it reads."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self._stage.op_name

    @property
    def axis(self) -> list[IterVar]:
        """The loops of the stage's axes."""
        return self._stage.loops("axes")

    @property
    def reduce_axis(self) -> list[IterVar]:
        """The loops of the stage's reduction."""
        return self._stage.loops("reduce_axes")

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that the operator reads."""
        declared = self._stage.declared
        if not isinstance(declared, Compute):
            raise FailedPreconditionError(f"{self.name} is no te.compute, expected one that reads")
        return list(dict.fromkeys(declared.reads()))

    def output(self, index: int) -> Any:
        """The tensor that the operator computes."""
        return self._stage.handle if index == 0 else self._stage.declared.outputs[index]


class CachedTensor:
    """A stage that the schedule made: by cache_read, cache_write or rfactor."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def op(self) -> _Op:
        """Its operator."""
        return self._stage.op

    @property
    def name(self) -> str:
        """Its name in the schedule."""
        return self._stage.name

    def __repr__(self) -> str:
        return f"<tensor {self.name} of a schedule>"


class Stage:
    """A stage of a schedule."""

    def __init__(self, schedule: Schedule, name: str, op_name: str, declared: Any) -> None:
        self.schedule = schedule
        # Its name in the text.
        self.name = name
        self.op_name = op_name
        # Its te operator; None for one that the schedule made.
        self.declared = declared
        # Numbers of axes and reduction axes, with their names and extents where they are known.
        self.known_axes: dict[str, list[tuple[str, int | None]]] = {}
        self.handle: Any = declared.outputs[0] if isinstance(declared, Compute) else None
        self._loops: dict[str, list[IterVar]] = {}
        self.op = _Op(self)

    def loops(self, which: str) -> list[IterVar]:
        """The loops that `axes` or `reduce_axes` names; the same ones each time."""
        if which not in self._loops:
            axes = self.known_axes.get(which, [])
            loops = [IterVar(self.schedule.fresh(name), extent) for name, extent in axes]
            if loops:
                names = ", ".join(each.name for each in loops)
                self.schedule.write(f"{names} = {which}({self.name})")
            self._loops[which] = loops
        return list(self._loops[which])

    def forget_loops(self) -> None:
        """The stage's loops are made anew."""
        self._loops = {}

    def _loop(self, loop: Any) -> str:
        if isinstance(loop, IterVar):
            return loop.name
        if isinstance(loop, Axis) and isinstance(self.declared, Compute):
            for which in ("axes", "reduce_axes"):
                for declared, made in zip(axes_of(self.declared, which), self.loops(which)):
                    if declared is loop:
                        return made.name
        raise InvalidArgumentError(
            f"stage {self.op_name} has no loop {loop!r}, expected one of s[...].op.axis, "
            "op.reduce_axis, or what a primitive returned"
        )

    def _step(self, text: str) -> None:
        self.schedule.write(text)

    # ---- primitives -------------------------------------------------------------------------

    def split(
        self, parent: Any, factor: Number | None = None, nparts: Number | None = None
    ) -> tuple[IterVar, IterVar]:
        """Two loops of one: `factor` iterations inside, or `nparts` outside."""
        if (factor is None) == (nparts is None):
            raise InvalidArgumentError("split: expected factor or nparts, one of both")
        return self.split_into(parent, [factor if factor is not None else nparts], nparts is None)

    def split_into(self, parent: Any, lengths: Sequence[Number], inner: bool) -> Any:
        """One loop more than lengths."""
        loop = self._loop(parent)
        word = "split" if inner else "split_parts"
        numbers = ", ".join(text_of_number(each) for each in lengths)
        made = self.schedule.make_loops(loop, len(lengths) + 1)
        self._step(f"{_names(made)} = {word}({loop}, {numbers})")
        return tuple(made)

    def split_by(self, parent: Any, knob: str, outputs: int) -> list[IterVar]:
        """The loops that a split of the space says."""
        loop = self._loop(parent)
        made = self.schedule.make_loops(loop, outputs)
        self._step(f"{_names(made)} = split({loop}, {knob})")
        return made

    def fuse(self, *args: Any) -> IterVar:
        """One loop of loops that follow each other."""
        loops = [self._loop(each) for each in (args[0] if _is_list(args) else args)]
        (made,) = self.schedule.make_loops("_".join(loops), 1)
        self._step(f"{made.name} = fuse({', '.join(loops)})")
        return made

    def reorder(self, *args: Any, knob: str = "") -> None:
        """These loops take their places in this order; the others stay."""
        loops = [self._loop(each) for each in args]
        self._step(f"reorder({', '.join([knob, *loops] if knob else loops)})")

    def tile(
        self, x_parent: Any, y_parent: Any, x_factor: Number, y_factor: Number
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Both loops split, and the outer ones outside."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def vectorize(self, var: Any) -> None:
        """The iterations are lanes of vectors."""
        self._step(f"vectorize({self._loop(var)})")

    def unroll(self, var: Any) -> None:
        """The loop is unrolled."""
        self._step(f"unroll({self._loop(var)})")

    def parallel(self, var: Any) -> None:
        """Cores run the iterations."""
        self._step(f"parallel({self._loop(var)})")

    def bind(self, ivar: Any, thread_ivar: Any) -> None:
        """Blocks, threads or virtual threads run the iterations."""
        tag = (
            thread_ivar.tag if isinstance(thread_ivar, ThreadAxis) else thread_axis(thread_ivar).tag
        )
        self.schedule.for_gpu = True
        self._step(f"bind({self._loop(ivar)}, {tag})")

    def annotate(self, knob: str, axes: Sequence[Any]) -> None:
        """What the knob says of each loop."""
        self._step(f"annotate({knob}, {', '.join(self._loop(each) for each in axes)})")

    def compute_at(self, parent: Stage, scope: Any) -> None:
        """Computed inside of a loop of another stage."""
        place = scope.text if isinstance(scope, Recorded) else parent._loop(scope)
        self._step(f"compute_at({self.name}, {place})")

    def compute_inline(self) -> None:
        """Computed where it is read."""
        self._step(f"inline({self.name})")

    def compute_root(self) -> None:
        """Computed on its own."""
        self._step(f"compute_root({self.name})")

    def pragma(self, var: Any, pragma_type: str, pragma_value: Any = None) -> None:
        """A hint of the stage: auto_unroll_max_step, and Kiln's own (docs/steps.md)."""
        self._loop(var)
        if pragma_type in _WITHOUT_EFFECT:
            return
        value = text_of_number(1 if pragma_value is None else pragma_value)
        self._step(f"hint({self.name}, {pragma_type}, {value})")

    def storage_align(self, axis: Any, factor: Number, offset: Number) -> None:
        """The stride of the axis in memory is a multiple of `factor` plus `offset`."""
        numbers = f"{text_of_number(factor)}, {text_of_number(offset)}"
        self._step(f"storage_align({self._loop(axis)}, {numbers})")

    def double_buffer(self) -> None:
        """Tiles that the stage reads are fetched one iteration ahead."""
        self._step(f"buffering({self.name}, 2)")

    def set_scope(self, scope: str) -> None:
        """Refused but for "global": cache_read and cache_write say where a stage lies."""
        if scope not in ("", "global"):
            raise InvalidArgumentError(
                f"set_scope: found {scope!r}, expected global: cache_read and cache_write make "
                "stages in other memory"
            )

    def _refused(self, name: str) -> None:
        raise InvalidArgumentError(f"{name}: Kiln's schedules have no such step (docs/steps.md)")

    def tensorize(self, var: Any, tensor_intrin: Any) -> None:
        """Refused: the hint matrix_unit is what uses matrix units."""
        self._refused("tensorize")

    def prefetch(self, tensor: Any, var: Any, offset: Any) -> None:
        """Refused: processors fetch ahead by themselves."""
        self._refused("prefetch")

    def rolling_buffer(self) -> None:
        """Refused."""
        self._refused("rolling_buffer")

    def env_threads(self, threads: Any) -> None:
        """Refused: bind is what uses threads."""
        self._refused("env_threads")

    def set_store_predicate(self, predicate: Any) -> None:
        """Refused: the compiler finds conditions."""
        self._refused("set_store_predicate")


def _is_list(args: Sequence[Any]) -> bool:
    return len(args) == 1 and isinstance(args[0], (list, tuple))


def _names(loops: Sequence[IterVar]) -> str:
    return ", ".join(each.name for each in loops)


def axes_of(op: Any, which: str) -> list[Axis]:
    """The axes of an operator, or those that it reduces over."""
    if which == "axes":
        return list(op.axes)
    return op.reduce_axis


def _extents(op: Any, which: str) -> list[tuple[str, int | None]]:
    if isinstance(op, Placeholder):
        extents = op.output.shape if which == "axes" else ()
        return [(f"ax{number}", extent) for number, extent in enumerate(extents)]
    return [
        (axis.name, axis.extent if isinstance(axis.extent, int) else None)
        for axis in axes_of(op, which)
    ]


class Schedule:
    """A schedule: what create_schedule returns."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self.outputs = list(outputs)
        # Inputs in the order in which they are read, then outputs.
        self._names = names_of(self.outputs)
        placeholders = [op.output for op in self._names if isinstance(op, Placeholder)]
        self.tensors = placeholders + self.outputs
        self.for_gpu = False
        self._taken: set[str] = set(_WORDS)
        self._stages: dict[Any, Stage] = {}
        # Stages stand before all steps.
        self._head: list[str] = []
        self._body: list[str] = []
        self._dag: ComputeDAG | None = None
        self._steps: list[Any] | None = None

    @classmethod
    def of_steps(cls, dag: ComputeDAG, steps: list[Any]) -> Schedule:
        """The schedule of a state, to be built or printed."""
        made = cls.__new__(cls)
        made.outputs, made.tensors = [], list(dag.tensors)
        made._dag, made._steps = dag, steps
        made.for_gpu = any(step[0] == "AN" and 4 <= step[3] <= 10 for step in steps)
        return made

    def __getitem__(self, tensor: Any) -> Stage:
        if self._steps is not None:
            raise FailedPreconditionError(
                "the schedule is that of a state, expected one of create_schedule: change the state"
            )
        key = getattr(tensor, "op", tensor)
        if isinstance(key, _Op):
            return key._stage
        if key not in self._stages:
            if key not in self._names:
                raise InvalidArgumentError(f"the schedule has no stage of {tensor!r}")
            op_name = self._names[key]
            stage = Stage(self, self.fresh(op_name), op_name, key)
            stage.known_axes = {w: _extents(key, w) for w in ("axes", "reduce_axes")}
            self._head.append(f"stage {stage.name} = op({_op_word(op_name)})")
            self._stages[key] = stage
        return self._stages[key]

    @property
    def stages(self) -> list[Stage]:
        """All stages, in the order of the computation."""
        return [self[op] for op in self._names]

    def cache_read(self, tensor: Any, scope: str, readers: Any) -> CachedTensor:
        """A copy of a tensor that the readers read."""
        stage = self[tensor]
        listed = readers if isinstance(readers, (list, tuple)) else [readers]
        names = ", ".join(self[each].name for each in listed)
        made = self._made(stage, scope.replace("global", "local"))
        self.write(f"{made.name} = cache_read({stage.name}, {scope}, {names})")
        made.known_axes = {
            "axes": [(f"ax{i}", e) for i, (_, e) in enumerate(stage.known_axes["axes"])]
        }
        return made.handle

    def cache_write(self, tensor: Any, scope: str) -> CachedTensor:
        """The stage computes into a copy first, which is returned."""
        if isinstance(tensor, (list, tuple)) and len(tensor) == 1:
            (tensor,) = tensor
        stage = self[tensor]
        made = self._made(stage, scope)
        self.write(f"{made.name} = cache_write({stage.name}, {scope})")
        made.known_axes = dict(stage.known_axes)
        stage.known_axes = {"axes": stage.known_axes["axes"]}
        stage.forget_loops()
        return made.handle

    def rfactor(self, tensor: Any, axis: Any, factor_axis: int = 0) -> CachedTensor:
        """Partial results with a loop of the reduction as an axis, which are returned."""
        stage = self[tensor]
        made = self._made(stage, "rf")
        loop = stage._loop(axis)
        self.write(f"{made.name} = rfactor({loop}, {factor_axis})")
        spatial = list(stage.known_axes["axes"])
        spatial.insert(factor_axis, (loop, None))
        rest = stage.known_axes.get("reduce_axes", [])
        made.known_axes = {"axes": spatial, "reduce_axes": rest}
        stage.known_axes = {"axes": stage.known_axes["axes"], "reduce_axes": [(loop, None)]}
        stage.forget_loops()
        return made.handle

    def normalize(self) -> Schedule:
        """The schedule itself: it is complete as it is."""
        return self

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> None:
        """Refused: each stage is computed where it says."""
        raise InvalidArgumentError("create_group: Kiln's schedules have no groups of stages")

    def _made(self, stage: Stage, scope: str) -> Stage:
        made = Stage(self, self.fresh(f"{stage.name}_{scope}"), f"{stage.op_name}.{scope}", None)
        made.handle = CachedTensor(made)
        return made

    # ---- the text ---------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name that the text does not have yet."""
        stem = re.sub(r"\W", "_", name)
        stem = stem if re.match(r"[A-Za-z_]", stem) else f"_{stem}"
        found, number = stem[:100], 1
        while found in self._taken:
            found, number = f"{stem[:100]}_{number}", number + 1
        self._taken.add(found)
        return found

    def make_loops(self, stem: str, count: int) -> list[IterVar]:
        """Loops with new names."""
        names = [stem] if count == 1 else [f"{stem}_{number}" for number in range(count)]
        return [IterVar(self.fresh(name)) for name in names]

    def write(self, statement: str) -> None:
        """Adds a step."""
        self._body.append(statement)

    @property
    def names(self) -> set[str]:
        """Names of stages and loops in the text."""
        return self._taken - _WORDS

    def template(self, name: str, knobs: Sequence[str] = ()) -> str:
        """The text of the schedule, as a template of this name with these knobs and filters."""
        word = re.sub(r"\W", "_", name) or "schedule"
        kind = "gpu" if self.for_gpu else "cpu"
        return "\n".join([f"template {word} for {kind}", *self._head, *knobs, *self._body]) + "\n"

    @property
    def dag(self) -> ComputeDAG:
        """The computation."""
        if self._dag is None:
            from kiln.auto_scheduler.workload import ComputeDAG

            self._dag = ComputeDAG(self.tensors)
        return self._dag

    def steps(self) -> list[Any]:
        """The steps of the schedule. InvalidArgumentError: a primitive does not fit, and why."""
        import json

        if self._steps is not None:
            return self._steps
        target = "cuda" if self.for_gpu else "llvm"
        found = self.dag.ask("config", target=target, template=self.template("schedule"), index=0)
        return json.loads(found["steps"])


def _op_word(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def create_schedule(ops: Any) -> Schedule:
    """A schedule in which each operator is computed on its own: of tensors' ops, or of tensors."""
    listed = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    outputs = []
    for each in listed:
        op = getattr(each, "op", each)
        if not isinstance(op, Compute):
            raise InvalidArgumentError(
                f"create_schedule: found {each!r}, expected the op of a te.compute"
            )
        outputs += op.outputs
    return Schedule(outputs)
