"""kiln.tune: a module of torch's whose forward is computed by tuned programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from kiln.errors import FailedPreconditionError, InvalidArgumentError
from kiln.torch import inductor
from kiln.torch.decompositions import table
from kiln.torch.graph_program import GraphProgram
from kiln.torch.options import Options
from kiln.torch.parameters import Compiled, Followed
from kiln.torch.report import Report, keep, say

_ORIGIN = "kiln.tune"


@dataclass(frozen=True)
class _Place:
    """The dictionary in which a module keeps a parameter or buffer."""

    holder: dict[str, Any]
    name: str


class TunedModule(torch.nn.Module):
    """A module with the signature and the parameters of another one, which it holds as `module`.

    Inputs with the shapes and types of the examples go to the programs, as copies if their strides
    are others. Arguments that are no tensors have to be those of the examples. All other calls, and
    calls that want gradients, go to the module itself; a sentence in the log of "kiln.torch" says
    so once.
    """

    def __init__(
        self, module: torch.nn.Module, exported: Exported, call: Compiled, report: Report
    ) -> None:
        super().__init__()
        self.module = module
        self.report = report
        self.train(module.training)
        self._exported = exported
        self._call = call
        self._said: set[str] = set()

    @torch.compiler.disable
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward."""
        values = self._exported.values_of(args, kwargs)
        if isinstance(values, str):
            return self._by_module(values, args, kwargs)
        if torch.is_grad_enabled() and any(
            isinstance(each, torch.Tensor) and each.requires_grad for each in values
        ):
            why = (
                "gradients are on, and programs have none; torch.inference_mode() or "
                "torch.no_grad() around the call says that none are wanted"
            )
            return self._by_module(why, args, kwargs)
        if self.training:
            return self._by_module("it is in training mode", args, kwargs)
        return self._exported.result_of(self._call(values))

    def _by_module(self, why: str, args: Any, kwargs: Any) -> Any:
        if why not in self._said:
            self._said.add(why)
            say(f"{_ORIGIN}: the module itself computes a call, because {why}")
        return self.module(*args, **kwargs)


class Exported:
    """A module's graph, with what connects its inputs and outputs to calls."""

    def __init__(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        program = _export(module, args, kwargs)
        self.graph = program.graph_module
        self._inputs, self._spec = pytree.tree_flatten((args, kwargs))
        self._out_spec = program.call_spec.out_spec
        self._is_leaf = self._out_spec.num_leaves == 1 and self._out_spec.num_children == 0
        self._is_positional = not kwargs and all(isinstance(each, torch.Tensor) for each in args)
        self._facts = [_facts(each) for each in self._inputs]
        self._layouts = [_layout(each) for each in self._inputs]
        self._places: list[_Place] = []
        self.frozen: list[bool] = []
        for spec in program.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                self.frozen.append(False)
                continue
            self.frozen.append(True)
            self._places.append(_place(module, program, spec))
        # Parameters come before inputs.
        if self.frozen != sorted(self.frozen, reverse=True):
            raise FailedPreconditionError("the exported graph has inputs before parameters")

    def values_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | str:
        """The inputs of the graph for a call, or why the graph is not for it."""
        if self._is_positional and not kwargs and len(args) == len(self._inputs):
            given = list(args)
        else:
            given, spec = pytree.tree_flatten((args, kwargs))
            if spec != self._spec:
                return "its arguments have another structure than the examples"
        for index, (value, facts) in enumerate(zip(given, self._facts)):
            if _facts(value) != facts:
                return (
                    f"argument {index} is {_text(value)}, and the programs are for "
                    f"{_text(self._inputs[index])}"
                )
        for index, (value, layout) in enumerate(zip(given, self._layouts)):
            if layout is None or layout.is_of(value):
                continue
            if layout.has_overlaps:
                return (
                    f"argument {index} has the strides {list(value.stride())}, and the programs "
                    f"are for {list(layout.strides)}, where elements share memory"
                )
            given[index] = layout.copy(value)
        return [place.holder[place.name] for place in self._places] + given

    def result_of(self, outputs: Sequence[Any]) -> Any:
        """The outputs of the graph as the module returns them."""
        return outputs[0] if self._is_leaf else pytree.tree_unflatten(list(outputs), self._out_spec)


def _facts(value: Any) -> Any:
    """What a program is for: of a tensor all but strides and elements, else the type and value."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.device, value.layout
    # 0.0 equals -0.0, and NaN equals nothing.
    return type(value), value.hex() if isinstance(value, float) else value


def _text(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    layout = "" if value.layout == torch.strided else f", {value.layout}"
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}{list(value.shape)} on {value.device}{layout}"


@dataclass(frozen=True)
class _Layout:
    """The strides of an example: Inductor's code is for these."""

    strides: tuple[int, ...]
    # True if elements share memory, as those of an expanded tensor do; nothing is written there.
    has_overlaps: bool

    def is_of(self, value: torch.Tensor) -> bool:
        """True of a tensor with these strides. Axes of extent 1 may have any."""
        return value.stride() == self.strides or all(
            found == expected or extent == 1
            for found, expected, extent in zip(value.stride(), self.strides, value.shape)
        )

    def copy(self, value: torch.Tensor) -> torch.Tensor:
        """The elements with these strides."""
        made = torch.empty_strided(
            value.shape, self.strides, dtype=value.dtype, device=value.device
        )
        return made.copy_(value)


def _layout(value: Any) -> _Layout | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    return _Layout(value.stride(), _has_overlaps(value))


def _has_overlaps(value: torch.Tensor) -> bool:
    """False only if no two elements share memory."""
    reach = 0
    for stride, extent in sorted(zip(value.stride(), value.shape)):
        if extent > 1 and stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


def _export(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.export.ExportedProgram:
    try:
        with torch.no_grad():
            program = torch.export.export(module, args, kwargs, strict=False)
            program = program.run_decompositions(table())
    except Exception as error:  # pylint: disable=broad-exception-caught
        raise InvalidArgumentError(
            f"torch.export cannot make one graph of {type(module).__name__}: {error}; "
            'torch.compile(module, backend="kiln") takes modules with several graphs'
        ) from error
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise FailedPreconditionError(
                f"{type(module).__name__} writes to {spec.target or 'an input'} when it is called, "
                'and programs only read; torch.compile(module, backend="kiln") takes such modules'
            )
    return program


def _place(module: torch.nn.Module, program: Any, spec: Any) -> _Place:
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
        path, _, name = spec.target.rpartition(".")
        owner = module.get_submodule(path)
        holder = owner._parameters if name in owner._parameters else owner._buffers
        return _Place(holder, name)
    if spec.kind == InputKind.CONSTANT_TENSOR:
        return _Place(program.constants, spec.target)
    raise FailedPreconditionError(f"the exported graph takes a {spec.kind.name}, expected tensors")


def tune(
    module: torch.nn.Module,
    example_inputs: Sequence[Any] | torch.Tensor,
    example_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> TunedModule:
    """The module with tuned programs for inputs like these: tune(model, (x,), minutes=3).

    `options` are those of kiln.torch.Options. Torch computes what Kiln cannot, and what Kiln
    computes slower; `.report` says what and why. A second call finds the programs in the database.

    InvalidArgumentError: the module is no graph with fixed shapes, or an option is unknown.
    FailedPreconditionError: the module is in training mode, or writes to its buffers.
    """
    chosen = Options.of(options)
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgumentError(f"found a {type(module).__name__}, expected a torch.nn.Module")
    if module.training:
        raise FailedPreconditionError(
            f"{type(module).__name__} is in training mode, and programs are for inference: call "
            "module.eval() first"
        )
    args = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    exported = Exported(module, args, dict(example_kwargs or {}))
    values = exported.values_of(args, dict(example_kwargs or {}))
    assert not isinstance(values, str)
    report = Report(_ORIGIN)
    call = _call_of(exported, values, chosen, report)
    keep(report)
    return TunedModule(module, exported, call, report)


def _call_of(exported: Exported, values: list[Any], options: Options, report: Report) -> Compiled:
    program = GraphProgram(exported.graph, exported.frozen, options, report)
    call = program.tune(values)
    if call is not None:
        followed = Followed(program.compile, program.parameters(), _ORIGIN)
        followed.start(call, values)
        return followed
    compiled, why = inductor.compiled(exported.graph, values)
    if compiled is not None:
        return compiled
    report.notes.append(inductor.eager_instead("the graph", why))
    graph = exported.graph
    return lambda given: graph(*given)
