"""States: a computation with steps applied, as TVM's loop_state has them.

    state = dag.get_init_state()
    i, j, k = state[C].iters
    outer, inner = state.split(C, i, [16])
    state.parallel(C, outer)
    print(state)

Each primitive appends a step, which the engine checks and applies. A state that is given to
`measure`, or printed, or asked for its loops, is the same everywhere: a list of steps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from kiln.errors import FailedPreconditionError, InvalidArgumentError
from kiln.tables import titled
from kiln.te import Tensor

if TYPE_CHECKING:
    from kiln.auto_scheduler.workload import ComputeDAG

# A step as a log has it: ["SP", 2, 0, 64, [16], 1].
Step = list[Any]


@dataclass(frozen=True)
class Range:
    """The range of a loop."""

    min: int
    extent: int


@dataclass(frozen=True)
class Iterator:
    """A loop of a stage."""

    name: str
    # None: not known before infer_bound_from_state.
    range: Range | None
    # 0 = spatial, 1 = reduction, 2 = mixed, 3 = special.
    iter_kind: int
    # A number of State.ANNOTATION_TRANS_TABLE.
    annotation: int


@dataclass(frozen=True)
class StageAttributes:
    """What is said of a whole stage."""

    auto_unroll_max_step: int
    storage_offset: int
    # Hints of Kiln's own by name.
    hints: dict[str, int]


@dataclass(frozen=True)
class StageOp:
    """The operator of a stage, by which State's methods know the stage."""

    name: str


@dataclass(frozen=True)
class Stage:
    """A stage of a state."""

    COMPUTE_AT_TRANS_TABLE = {"root": 0, "inlined": 1, "iter": 2}

    op: StageOp
    # 0 = placeholder, 1 = compute.
    op_type: int
    iters: tuple[Iterator, ...]
    # A number of COMPUTE_AT_TRANS_TABLE; of a stage at a loop also the stage and the loop.
    compute_at: int
    attach: tuple[int, int] | None
    attrs: StageAttributes


def _stage_of(told: dict[str, Any]) -> Stage:
    hints = dict(told["hints"])
    unroll = hints.pop("auto_unroll", 0)
    iters = tuple(
        Iterator(
            each["name"],
            None if each["extent"] is None else Range(0, each["extent"]),
            each["kind"],
            each["annotation"],
        )
        for each in told["loops"]
    )
    at = told["compute_at"]
    return Stage(
        StageOp(told["name"]),
        0 if told["is_placeholder"] else 1,
        iters,
        at,
        (told["attach_stage"], told["attach_loop"]) if at == 2 else None,
        StageAttributes(unroll, told["storage_offset"], hints),
    )


def _applicable(steps: Sequence[Step]) -> list[Step]:
    """The steps of a sketch as they can be applied: a split before an rfactor has lengths."""
    applicable = []
    for step, following in zip(steps, [*steps[1:], None]):
        if step[0] == "SP" and following is not None and following[0] == "RF" and 0 in step[4]:
            step = [*step[:4], [length or 1 for length in step[4]], *step[5:]]
        applicable.append(step)
    return applicable


class StateObject:
    """What a State stands for, which never changes: steps, and the stages that they make."""

    def __init__(self, dag: ComputeDAG | None, steps: Sequence[Step], bounds: bool = False) -> None:
        """`dag` is None for a line of a log, of which only the steps are known."""
        self.dag = dag
        self._steps = [list(step) for step in steps]
        self._bounds = bounds
        self._told: dict[str, Any] | None = None

    @property
    def transform_steps(self) -> list[Step]:
        """Steps, as a log has them."""
        return [list(step) for step in self._steps]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in their order."""
        return self._shown()["stages"]

    @property
    def concrete(self) -> bool:
        """Whether no length is a blank."""
        return all(0 not in step[4] for step in self._steps if step[0] == "SP")

    def check(self) -> None:
        """InvalidArgumentError: a step does not fit; the sentence says which, and why."""
        self._shown()

    def _shown(self) -> dict[str, Any]:
        if self._told is None:
            if self.dag is None:
                raise FailedPreconditionError(
                    "the state is of a line of a log, expected one of a ComputeDAG: "
                    "recover_measure_input(inp, rebuild_state=True) finds its computation"
                )
            told = self.dag.ask("state", steps=_applicable(self._steps), bounds=self._bounds)
            told["stages"] = tuple(_stage_of(each) for each in told["stages"])
            self._told = told
        return self._told

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateObject) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(json.dumps(self._steps))

    def __str__(self) -> str:
        return self._shown()["text"]


# A stage is named by its number, its operator, or a tensor of te.
AnyStage = Union[int, StageOp, Tensor, Any]


class State:
    """A state of the search. Its methods change it; `copy` makes another one."""

    ANNOTATION_TRANS_TABLE = {
        "none": 0,
        "unroll": 1,
        "vectorize": 2,
        "parallel": 3,
        "vthread": 4,
        "blockIdx.x": 5,
        "threadIdx.x": 6,
        "blockIdx.y": 7,
        "threadIdx.y": 8,
        "blockIdx.z": 9,
        "threadIdx.z": 10,
        "tensorize": 11,
    }

    def __init__(self, state_object: StateObject, dag: ComputeDAG | None) -> None:
        self.state_object = state_object
        self.compute_dag = dag

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in their order."""
        return self.state_object.stages

    @property
    def transform_steps(self) -> list[Step]:
        """Steps, as a log has them."""
        return self.state_object.transform_steps

    @property
    def stage_ops(self) -> list[StageOp]:
        """The operators of the stages."""
        return [stage.op for stage in self.stages]

    # ---- primitives; each returns the loops or the stage that it makes ------------------------

    def bind(self, stage: AnyStage, iterator: Iterator, thread_name: str) -> Iterator:
        """Lets blocks, threads or virtual threads of a GPU run the iterations."""
        known = [name for name, number in self.ANNOTATION_TRANS_TABLE.items() if 4 <= number <= 10]
        if thread_name not in known:
            raise InvalidArgumentError(
                f"bind: found thread_name {thread_name!r}, expected one of {', '.join(known)}"
            )
        return self._annotate(stage, iterator, thread_name)

    def parallel(self, stage: AnyStage, iterator: Iterator) -> Iterator:
        """Lets cores run the iterations."""
        return self._annotate(stage, iterator, "parallel")

    def unroll(
        self, stage: AnyStage, iterator: Iterator, max_unroll: int | None = None
    ) -> Iterator:
        """Unrolls the loop; one that has more than `max_unroll` iterations stays as it is."""
        number = self._stage(stage)
        loop = self.stages[number].iters[self._loop(number, iterator)]
        if max_unroll and loop.range is not None and loop.range.extent > max_unroll:
            return loop
        return self._annotate(stage, iterator, "unroll")

    def vectorize(self, stage: AnyStage, iterator: Iterator) -> Iterator:
        """Runs the iterations as lanes of vectors."""
        return self._annotate(stage, iterator, "vectorize")

    def fuse(self, stage: AnyStage, iters: Sequence[Iterator]) -> Iterator:
        """Makes one loop of loops that follow each other."""
        number = self._stage(stage)
        loops = [self._loop(number, each) for each in iters]
        self._apply(["FU", number, loops])
        return self.stages[number].iters[loops[0] if loops else 0]

    def pragma(self, stage: AnyStage, iterator: Iterator, pragma_type: str) -> None:
        """Sets a hint, "auto_unroll_max_step$16"."""
        number = self._stage(stage)
        self._apply(["PR", number, self._loop(number, iterator), pragma_type])

    def reorder(self, stage: AnyStage, order: Sequence[Iterator]) -> None:
        """Gives all loops of the stage this order."""
        number = self._stage(stage)
        self._apply(["RE", number, [self._loop(number, each) for each in order]])

    def split(
        self,
        stage: AnyStage,
        iterator: Iterator,
        lengths: Sequence[int | None],
        inner_to_outer: bool = True,
    ) -> list[Iterator]:
        """Splits a loop. A length of None is a blank, which a search fills in."""
        number = self._stage(stage)
        loop = self._loop(number, iterator)
        found = self.stages[number].iters[loop]
        extent = found.range.extent if found.range else 0
        filled = [int(each) if each else 0 for each in lengths]
        self._apply(["SP", number, loop, extent, filled, int(inner_to_outer)])
        return self._loops(number, loop, len(filled) + 1)

    def follow_split(
        self, stage: AnyStage, iterator: Iterator, src_step_id: int, n_split: int
    ) -> list[Iterator]:
        """Splits as an earlier split does."""
        number = self._stage(stage)
        loop = self._loop(number, iterator)
        self._apply(["FSP", number, loop, int(src_step_id), int(n_split)])
        return self._loops(number, loop, int(n_split) + 1)

    def follow_fused_split(
        self,
        stage: AnyStage,
        iterator: Iterator,
        src_step_ids: Sequence[int],
        level: int,
        factor_or_nparts: bool,
    ) -> list[Iterator]:
        """Splits in two by the product of one level of earlier splits."""
        number = self._stage(stage)
        loop = self._loop(number, iterator)
        sources = [int(each) for each in src_step_ids]
        self._apply(["FFSP", number, loop, sources, int(level), int(factor_or_nparts)])
        return self._loops(number, loop, 2)

    def storage_align(self, stage: AnyStage, iterator: Iterator, factor: int, offset: int) -> None:
        """Makes the stride of an axis in memory a multiple of `factor` plus `offset`."""
        number = self._stage(stage)
        self._apply(["SA", number, self._loop(number, iterator), int(factor), int(offset)])

    def compute_at(self, stage: AnyStage, target_stage: AnyStage, target_iter: Iterator) -> None:
        """Computes the stage inside of a loop of another one."""
        target = self._stage(target_stage)
        self._apply(["CA", self._stage(stage), target, self._loop(target, target_iter)])

    def compute_inline(self, stage: AnyStage) -> None:
        """Computes the stage where it is read."""
        self._apply(["CI", self._stage(stage)])

    def compute_root(self, stage: AnyStage) -> None:
        """Computes the stage on its own."""
        self._apply(["CR", self._stage(stage)])

    def cache_read(
        self, stage: AnyStage, scope_name: str, reader_stages: Sequence[AnyStage]
    ) -> StageOp:
        """Lets the readers read a copy of the stage. Returns the operator of the copy."""
        number = self._stage(stage)
        readers = [self._stage(each) for each in reader_stages]
        self._apply(["CHR", number, scope_name, readers])
        return self.stages[number + 1].op

    def cache_write(self, stage: AnyStage, scope_name: str) -> StageOp:
        """Computes the stage into a copy first. Returns the operator of the copy."""
        number = self._stage(stage)
        self._apply(["CHW", number, scope_name])
        return self.stages[number].op

    def rfactor(self, stage: AnyStage, iterator: Iterator, factor_iter_id: int) -> StageOp:
        """Makes a loop of a reduction an axis of partial results. Returns their operator."""
        number = self._stage(stage)
        self._apply(["RF", number, self._loop(number, iterator), int(factor_iter_id)])
        return self.stages[number].op

    def copy(self) -> State:
        """Another state with these steps."""
        return State(self.state_object, self.compute_dag)

    # ---- how it works -----------------------------------------------------------------------

    def _apply(self, step: Step) -> None:
        """Appends a step; if it is refused, the state is unchanged."""
        changed = StateObject(self.compute_dag, [*self.transform_steps, step])
        changed.check()
        self.state_object = changed

    def _annotate(self, stage: AnyStage, iterator: Iterator, name: str) -> Iterator:
        number = self._stage(stage)
        loop = self._loop(number, iterator)
        self._apply(["AN", number, loop, self.ANNOTATION_TRANS_TABLE[name]])
        return self.stages[number].iters[loop]

    def _loops(self, stage: int, first: int, count: int) -> list[Iterator]:
        return list(self.stages[stage].iters[first : first + count])

    def _stage(self, stage: AnyStage) -> int:
        """The number of a stage."""
        stages = self.stages
        if isinstance(stage, int):
            if 0 <= stage < len(stages):
                return stage
            last = len(stages) - 1
            raise InvalidArgumentError(f"stage {stage} does not exist, expected 0 to {last}")
        assert self.compute_dag is not None
        name = stage.name if isinstance(stage, StageOp) else self.compute_dag.stage_name(stage)
        for number, each in enumerate(stages):
            if each.op.name == name:
                return number
        raise InvalidArgumentError(
            f"found the stage {name!r}, expected a number, tensor or operator of "
            f"{', '.join(each.op.name for each in stages)}"
        )

    def _loop(self, stage: int, iterator: Iterator) -> int:
        """The number of a loop of the stage. Loops of one stage have different names."""
        iters = self.stages[stage].iters
        for number, each in enumerate(iters):
            if isinstance(iterator, Iterator) and each.name == iterator.name:
                return number
        found = iterator.name if isinstance(iterator, Iterator) else repr(iterator)
        raise InvalidArgumentError(
            f"stage {self.stages[stage].op.name} has no loop {found}, expected one of its iters: "
            f"{', '.join(each.name for each in iters)}"
        )

    def __getitem__(self, key: AnyStage) -> Stage:
        return self.stages[self._stage(key)]

    def __str__(self) -> str:
        return str(self.state_object)

    def __repr__(self) -> str:
        return f"<State of {len(self.transform_steps)} steps>"

    def _repr_html_(self) -> str:
        """The loops, for notebooks."""
        return titled(f"{len(self.transform_steps)} steps", str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.state_object == other.state_object

    def __hash__(self) -> int:
        return hash(self.state_object)


def steps_of(state: Any) -> list[Step]:
    """The steps of a State, a StateObject, or a list of steps."""
    return [list(step) for step in getattr(state, "transform_steps", state)]
