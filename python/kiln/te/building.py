"""Schedules as programs, and as texts of programs: what tvm.build and tvm.lower are to TVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kiln.errors import InvalidArgumentError
from kiln.te.schedule import Schedule

if TYPE_CHECKING:
    from kiln.auto_scheduler.program import Program


def build(
    inputs: Schedule, args: Sequence[Any] = (), target: Any = "llvm", name: str = "main"
) -> Program:
    """A callable of a schedule. InvalidArgumentError: the schedule does not fit the target.

    `args` are the tensors in the order of a call, inputs and then outputs; none: the order in which
    the computation has them. `name` does nothing.
    """
    from kiln.auto_scheduler.program import Program, compile_steps

    del name
    _check(inputs)
    dag = inputs.dag
    network = compile_steps(dag.computation, inputs.steps(), str(target))
    known = {each.name for each in network.inputs}
    names = [dag.stage_name(each) for each in args or inputs.tensors]
    names = [each for each in names if each in known]
    return Program(
        network, names + [each.name for each in network.inputs if each.name not in names]
    )


def lower(
    sch: Schedule, args: Sequence[Any] = (), name: str = "main", simple_mode: bool = True
) -> str:
    """The program of a schedule as text: its loops and statements."""
    del args, name, simple_mode
    _check(sch)
    target = "cuda" if sch.for_gpu else "llvm"
    return sch.dag.ask("print", target=target, steps=sch.steps(), form="program")["text"]


def _check(schedule: Any) -> None:
    if not isinstance(schedule, Schedule):
        raise InvalidArgumentError(
            f"found a {type(schedule).__name__}, expected a schedule of te.create_schedule or "
            "ComputeDAG.apply_steps_from_state"
        )
