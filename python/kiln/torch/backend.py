"""torch.compile(model, backend="kiln")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from kiln.torch import inductor
from kiln.torch.decompositions import table
from kiln.torch.graph_program import GraphProgram
from kiln.torch.options import Options
from kiln.torch.parameters import Followed
from kiln.torch.report import Left, Report, keep

_ORIGIN = "torch.compile"


def kiln(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The backend: kiln.torch.Options by name in `options`; `mode` is Inductor's, for the rest."""
    chosen = Options.of(options)
    report = Report(_ORIGIN)
    why = _why_left(example_inputs)
    made = None
    if why:
        report.left.append(Left("the graph", 1, why))
    else:
        made = _compiled(module, example_inputs, chosen, report, mode)
    if made is None:
        made = _default(module, example_inputs, report, mode)
    keep(report)
    return made


def _why_left(inputs: Sequence[Any]) -> str:
    """Why Kiln has nothing to do with a graph of these inputs, or ""."""
    if not all(isinstance(each, torch.Tensor) for each in inputs):
        return (
            "its shapes or numbers are dynamic, and Kiln's programs are for fixed ones; "
            "torch.compile(dynamic=False) compiles for each shape"
        )
    if any(type(each) not in (torch.Tensor, torch.nn.Parameter) for each in inputs):
        return "a tensor of it is of a class of its own"
    if torch.is_grad_enabled() and any(each.requires_grad for each in inputs):
        return (
            "it is traced for training, and Kiln's programs have no gradients; "
            "torch.inference_mode() or torch.no_grad() around the call says that none are wanted"
        )
    devices = {each.device for each in inputs if each.ndim}
    if len(devices) > 1:
        return f"its tensors are on several devices: {', '.join(sorted(map(str, devices)))}"
    if any(device.type not in ("cpu", "cuda") for device in devices):
        return f"it is on {devices.pop()}, and Kiln has programs for CPUs and CUDA"
    return ""


def _is_parameter(value: torch.Tensor) -> bool:
    """True of parameters and buffers, which Dynamo hands in as inputs."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


class _Traced(Exception):
    """Ends a trace whose graph has other inputs than the call."""


def _compiled(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    options: Options,
    report: Report,
    mode: str | None,
) -> Any:
    """The graph by Kiln and the rest by torch; None if Kiln does nothing of it."""
    from torch._functorch.aot_autograd import aot_module_simplified

    # Releases before 2.5 have parameters within the module; they come before the inputs.
    within = [*dict(module.named_parameters(remove_duplicate=False)).values()]
    within += [*dict(module.named_buffers(remove_duplicate=False)).values()]
    values = [*within, *inputs]
    frozen = [True] * len(within) + [_is_parameter(each) for each in inputs]
    traced: list[fx.GraphModule] = []
    followed: list[Followed] = []

    def compile_graph(graph: fx.GraphModule, _: Sequence[Any]) -> Any:
        places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        if len(places) != len(values):
            raise _Traced("its tracer gave it other inputs than the call has")
        traced.append(graph)

        def run(given: list[Any]) -> Sequence[Any]:
            tensors = list(given)
            given.clear()
            return followed[0](tensors)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    copied = fx.GraphModule(module, inductor.copy_of(module))
    try:
        made = aot_module_simplified(
            copied, inputs, fw_compiler=compile_graph, decompositions=table(),
            keep_inference_input_mutations=True,
        )  # fmt: skip
    except _Traced as error:
        report.left.append(Left("the graph", 1, str(error)))
        return None
    program = GraphProgram(traced[0], frozen, options, report, mode)
    call = program.tune(values)
    if call is None:
        return None
    followed.append(Followed(program.compile, program.parameters(), _ORIGIN))
    followed[0].start(call, values)
    return made


def _default(
    module: fx.GraphModule, inputs: Sequence[Any], report: Report, mode: str | None
) -> Any:
    """The default of torch.compile, or eager where Inductor does not run."""
    from torch._dynamo.exc import RestartAnalysis, SkipFrame
    from torch._inductor.compile_fx import compile_fx

    patches = torch._inductor.list_mode_options(mode, dynamic=None) if mode else None
    try:
        return compile_fx(module, list(inputs), config_patches=patches)
    # Dynamo traces again, or leaves the frame alone.
    except (RestartAnalysis, SkipFrame):
        raise
    except Exception as error:  # pylint: disable=broad-exception-caught
        report.notes.append(inductor.eager_instead("the graph", inductor.reason(error)))
        return module.forward
