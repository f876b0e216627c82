"""Tasks: a template, a computation and a target; and templates that are written in Python."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from kiln.auto_scheduler.program import Program, compile_steps
from kiln.auto_scheduler.search_task import SearchTask
from kiln.auto_scheduler.target_kind import kind_of
from kiln.auto_scheduler.workload import ComputeDAG
from kiln.autotvm.dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
)
from kiln.autotvm.space import ConfigEntity, ConfigSpace, TemplateConfig
from kiln.autotvm.target import Target
from kiln.errors import InvalidArgumentError
from kiln.farm import program
from kiln.farm.computation import Computation, op
from kiln.farm.engine import engine
from kiln.te import Tensor
from kiln.te.schedule import Schedule

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackContext",
    "Task",
    "args_to_workload",
    "create",
    "deserialize_args",
    "get_config",
    "serialize_args",
    "template",
]

# Functions of templates by their names.
_templates: dict[str, Callable[..., tuple[Schedule, Sequence[Tensor]]]] = {}


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as a log has them: of tensors ("TENSOR", shape, type)."""

    def one(value: Any) -> Any:
        if isinstance(value, Tensor):
            return ["TENSOR", list(value.shape), value.dtype]
        if isinstance(value, (tuple, list)):
            return [one(each) for each in value]
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        raise InvalidArgumentError(f"found the argument {value!r}, expected numbers or texts")

    return tuple(one(each) for each in args)


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Arguments of a log: new placeholders for tensors."""
    from kiln.te import placeholder

    return [
        (
            placeholder(each[1], each[2])
            if isinstance(each, (list, tuple)) and len(each) == 3 and each[0] == "TENSOR"
            else each
        )
        for each in args
    ]


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """The workload of a call: the name, and the arguments as a log has them."""
    return ((task_name,) if task_name is not None else ()) + serialize_args(args)


def get_config() -> Any:
    """The configuration of the template that runs. InvalidArgumentError: none does."""
    config = DispatchContext.current.query(None, None)
    if not isinstance(config, TemplateConfig) or not isinstance(
        DispatchContext.current, ApplyConfig
    ):
        raise InvalidArgumentError("get_config is called outside of a function of autotvm.template")
    return config


class _Written:
    """What a template's function wrote for its arguments."""

    def __init__(self, name: str, args: Sequence[Any], config: TemplateConfig) -> None:
        with ApplyConfig(config):
            made = _templates[name](*args)
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Schedule)):
            raise InvalidArgumentError(
                f"template {name} returned {made!r}, expected a schedule and a list of tensors"
            )
        self.schedule, tensors = made
        self.tensors = list(tensors)
        clash = self.schedule.names & set(config.knobs)
        if clash:
            raise InvalidArgumentError(
                f"template {name}: a loop or a stage has the name of the knob {clash.pop()}: give "
                "the knob another one"
            )
        self.dag = ComputeDAG(self.tensors)
        self.text = self.schedule.template(name, config.statements)
        self.flop = config.flop

    @property
    def computation(self) -> Computation:
        """The computation."""
        return self.dag.computation


def template(task_name: str, func: Any = None) -> Any:
    """Makes a function a template: a decorator, with the name of its tasks.

    The function declares a computation, defines knobs by autotvm.get_config(), and returns a
    schedule of te.create_schedule and its tensors. Called, it returns the schedule of the
    configuration that the contexts around the call say: autotvm.apply_history_best.
    """
    if func is None:
        return lambda function: template(task_name, function)
    if _templates.get(task_name, func) is not func:
        known = _templates[task_name]
        if (known.__module__, known.__qualname__) != (func.__module__, func.__qualname__):
            raise InvalidArgumentError(f"a template {task_name} is registered already")
    _templates[task_name] = func

    @functools.wraps(func)
    def wrapper(*args: Any) -> tuple[Schedule, list[Tensor]]:
        workload = args_to_workload(args, task_name)
        found = Target.current()
        named = str(found) if found else DispatchContext.current.target_of(workload)
        config = DispatchContext.current.query(named, workload)
        is_written = isinstance(config, TemplateConfig)
        written = _Written(task_name, args, config if is_written else TemplateConfig())
        entity = config.entities() if is_written else list(config.entity)
        if entity is None:
            return written.schedule, written.tensors
        target = named or ("cuda" if written.schedule.for_gpu else "llvm")
        asked = functools.partial(
            engine().ask, dag=written.computation.text, target=target, template=written.text
        )
        index = asked("index", entity=entity)["index"]
        steps = json.loads(asked("config", index=index)["steps"])
        return Schedule.of_steps(written.dag, steps), written.tensors

    return wrapper


class Task:
    """A template and what it schedules."""

    def __init__(self, name: str, args: Any, target: str = "llvm") -> None:
        """create() makes one."""
        self.name = name
        self.target = target
        self.target_host = None
        self.args: tuple[Any, ...] = ()
        self._written: _Written | None = None
        self._flop: float | None = None
        if name in _templates:
            self.args = tuple(args)
            self._written = _Written(name, self.args, TemplateConfig())
            self.computation = self._written.computation
            self.template_text = self._written.text
            self._flop = self._written.flop
        elif isinstance(args, Computation):
            self.computation = args
            self.args = (args.workload_key,)
            self.template_text = _text_of(name, target)
        else:
            self.args = tuple(args)
            self.computation = op(_operator_of(name, target), *self.args)
            self.template_text = _text_of(name, target)
        self.config_space = ConfigSpace(self)
        # The template must fit.
        self.ask("space")

    @property
    def workload(self) -> tuple[Any, ...]:
        """Name and arguments, by which logs know the task."""
        return args_to_workload(self.args, self.name)

    @property
    def flop(self) -> float:
        """Number of operations."""
        return self._flop or self.computation.flop_count

    def __repr__(self) -> str:
        return f"<Task {self.name} {self.args} for {self.target}>"

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """What the engine says of the task's space."""
        return engine().ask(
            do, self.computation.text, self.target, template=self.template_text, **fields
        )

    def search_task(self) -> SearchTask:
        """The computation as a task of auto_scheduler."""
        return SearchTask(compute_dag=self.dag(), target=self.target)

    def dag(self) -> ComputeDAG:
        """The computation."""
        return self._written.dag if self._written else ComputeDAG(self.computation)

    def steps_of(self, config: ConfigEntity) -> list[Any]:
        """The steps of a configuration. KilnError: the template makes none of it."""
        if config.steps is not None:
            return json.loads(config.steps)
        index = self.ask("index", entity=[list(each) for each in config.entity])["index"]
        return json.loads(self.ask("config", index=index)["steps"])

    def instantiate(self, config: ConfigEntity) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a configuration, and the tensors."""
        tensors = self._written.tensors if self._written else []
        return Schedule.of_steps(self.dag(), self.steps_of(config)), list(tensors)

    def compile(self, config: ConfigEntity) -> Program:
        """The schedule of a configuration, compiled: a callable."""
        network = compile_steps(self.computation, self.steps_of(config), self.target)
        known = [each.name for each in network.inputs]
        dag = self.dag()
        names = [dag.stage_name(each) for each in dag.tensors]
        names = [each for each in names if each in known]
        return Program(network, names + [each for each in known if each not in names])


def _text_of(name: str, target: str) -> str:
    """The text of a template that ships, or of a file."""
    if os.sep in name or name.endswith(".tmpl"):
        try:
            with open(name, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"cannot read {name}: {error}") from error
    kind = kind_of(target)
    return program.run(["templates", name, f"--target={'cuda' if kind == 'cuda' else 'llvm'}"])


def _operator_of(name: str, target: str) -> str:
    """The operator of a template that ships."""
    kind = kind_of(target)
    for found in program.run_json(["templates"]):
        if found["template"] == name and found["target"] == kind:
            return found["op"]
    raise InvalidArgumentError(
        f"no template '{name}' for {kind} ships, expected one of `kiln templates`, or the name of "
        "an @autotvm.template; for a file give a kiln.Computation as args"
    )


def create(task_name: str, args: Any, target: Any, target_host: Any = None) -> Task:
    """A task of a template: of @autotvm.template, one that ships, or a file (*.tmpl).

    `args` are those of the template's function or operator, or a kiln.Computation.
    """
    if target_host is not None:
        raise InvalidArgumentError(
            f"create: target_host is {target_host!r}, expected None: the host is the machine that "
            "measures"
        )
    return Task(task_name, args, str(target))
