"""kiln.torch.op: tuned computations as an operator of torch's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Union

import torch

from kiln.errors import FailedPreconditionError, InvalidArgumentError
from kiln.farm.computation import Computation
from kiln.network import Network, Tensor, load
from kiln.torch.network import Place
from kiln.torch.options import Options

# A computation, a file that `kiln compile` wrote, or what kiln.load returned.
Source = Union[Computation, str, "os.PathLike[str]", Network]


def op(
    name: str,
    what: Source | Sequence[Source],
    *,
    reference: Callable[..., torch.Tensor] | None = None,
    device: str | torch.device | None = None,
    **options: Any,
) -> Any:
    """A custom operator, torch.ops.NAMESPACE.NAME, of one program or of one for each shape.

    name: "mine::product". what: computations (kiln.op, kiln.te.create), which are tuned on `device`
    unless the database has programs, or compiled ones. `options` are those of kiln.torch.Options.

    The operator takes the program's inputs in their order, returns its output, or a list of
    several, and writes to none of its inputs. It works in eager, under torch.compile, and where
    CUDA graphs are captured. It has no gradient: backward() raises FailedPreconditionError.

    `reference` computes the same by torch. It takes the shapes that there is no program for, and
    torch.compile measures both where there is one and takes the faster (torch 2.10 and newer).
    Without it other shapes raise InvalidArgumentError.
    """
    _check_name(name)
    chosen = Options.of(options)
    sources = list(what) if isinstance(what, (list, tuple)) else [what]
    if not sources:
        raise InvalidArgumentError(f"{name} has no program, expected one at least")
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    programs = Programs(name, [_network(each, where, chosen) for each in sources], reference)
    return _operator(name, programs)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise InvalidArgumentError(f"found the name '{name}', expected NAMESPACE::NAME")


def _network(source: Source, device: torch.device, options: Options) -> Network:
    if isinstance(source, Network):
        return source
    if isinstance(source, (str, os.PathLike)):
        return load(source, gpu=device.index or 0)
    if not isinstance(source, Computation):
        raise InvalidArgumentError(
            f"found a {type(source).__name__}, expected a kiln.Computation (kiln.op, "
            "kiln.te.create), the path of a compiled file, or a kiln.Network"
        )
    place = Place(options, device)
    if place.wants_tuning(place.has_program(source.workload_key)):
        place.tune(source, 1.0)
    return place.compile(source)


class Programs:
    """Networks of the same inputs and outputs but for their shapes."""

    def __init__(
        self, name: str, networks: Sequence[Network], reference: Callable[..., torch.Tensor] | None
    ) -> None:
        self._name = name
        self.reference = reference
        self._networks = {_key(each): each for each in networks}
        first = networks[0]
        for each in networks:
            if _kinds(each) != _kinds(first):
                raise InvalidArgumentError(
                    f"{name} has programs ({_kinds(first)}) and ({_kinds(each)}), expected the "
                    "same inputs and outputs but for their shapes"
                )
        self.inputs = first.inputs
        self.has_one_output = len(first.outputs) == 1

    def find(self, tensors: Sequence[torch.Tensor]) -> Network | None:
        """The program for these tensors."""
        device = tensors[0].device if tensors else torch.device("cpu")
        return self._networks.get((device, *[_fact(each) for each in tensors]))

    def run(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The outputs. InvalidArgumentError: there is no program for these tensors."""
        network = self.find(tensors)
        if network is None:
            return self._without_program(tensors)
        # The gradient of an operator is the matter of its autograd formula.
        made = network(*[each.detach().contiguous() for each in tensors])
        return list(made) if isinstance(made, tuple) else made

    def like(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Outputs without elements, for tracers."""
        network = self.find(tensors)
        if network is None:
            return self._without_program(tensors)
        made = [
            torch.empty(each.shape, dtype=getattr(torch, each.dtype), device=tensors[0].device)
            for each in network.outputs
        ]
        return made[0] if self.has_one_output else made

    def _without_program(self, tensors: Sequence[torch.Tensor]) -> Any:
        if self.reference is not None:
            return self.reference(*tensors)
        found = ", ".join(
            f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)} on {each.device}"
            for each in tensors
        )
        known = "; ".join(
            repr(each).removeprefix("<kiln.Network ").rstrip(">")
            for each in self._networks.values()
        )
        raise InvalidArgumentError(
            f"{self._name} has no program for {found}, expected one of: {known}"
        )


def _fact(tensor: torch.Tensor) -> tuple[Any, ...]:
    # A tracer's dynamic extent becomes a fixed one here: a program is for one shape.
    return tensor.dtype, *map(int, tensor.shape)


def _key(network: Network) -> tuple[Any, ...]:
    """What find() makes of tensors that are the network's inputs."""
    facts = [(getattr(torch, each.dtype), *each.shape) for each in network.inputs]
    return torch.device(network.device), *facts


def _kinds(network: Network) -> str:
    def text(tensors: Sequence[Tensor]) -> str:
        return ", ".join(f"{each.dtype} of {len(each.shape)} axes" for each in tensors)

    return f"{text(network.inputs)} -> {text(network.outputs)}"


def _parameter_names(tensors: Sequence[Tensor]) -> list[str]:
    """Names of the inputs as a schema of torch's can have them."""
    names: list[str] = []
    for index, each in enumerate(tensors):
        name = re.sub(r"\W", "_", each.name)
        is_name = re.fullmatch(r"[A-Za-z]\w*", name) and name not in (*names, "self", "Tensor")
        names.append(name if is_name else f"input{index}")
    return names


def _operator(name: str, programs: Programs) -> Any:
    made = _defined(name, programs, programs.run, programs.like)
    if programs.reference is not None:
        _register_autotuning(name, made, programs)
    return made


def _defined(
    name: str, programs: Programs, run: Callable[..., Any], like: Callable[..., Any]
) -> Any:
    names = _parameter_names(programs.inputs)
    result = "Tensor" if programs.has_one_output else "Tensor[]"
    schema = f"({', '.join(f'Tensor {each}' for each in names)}) -> {result}"
    function = _with_parameters(names, run)
    made = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
    made.register_fake(lambda *tensors: like(tensors))

    def backward(context: Any, *_: Any) -> Any:
        del context
        raise FailedPreconditionError(
            f"{name} has no gradient: Kiln's programs compute forward alone. Call it under "
            "torch.no_grad(), or detach its inputs"
        )

    made.register_autograd(backward)
    return made


def _with_parameters(names: Sequence[str], run: Callable[..., Any]) -> Callable[..., Any]:
    """A function with these parameters: torch's autotuning reads their names."""
    text = f"def program({', '.join(names)}):\n    return run(({', '.join(names)},))\n"
    scope: dict[str, Any] = {"run": run}
    exec(text, scope)  # pylint: disable=exec-used
    return scope["program"]


def _register_autotuning(name: str, made: Any, programs: Programs) -> None:
    """Lets torch.compile measure the program beside the reference, if this torch can."""
    try:
        from torch._inductor.kernel.custom_op import CustomOpConfig, register_custom_op_autotuning
    except ImportError:
        return
    # The program as an operator that Inductor does not look into.
    opaque = _defined(f"{name}_program", programs, programs.run, programs.like)
    names = _parameter_names(programs.inputs)
    reference = _with_parameters(names, lambda tensors: programs.reference(*tensors))
    reference.__name__ = "reference"
    program = _with_parameters(names, lambda tensors: opaque(*tensors))

    # Torch 2.11 fails with one choice alone, so both stand for all shapes: where there is no
    # program, the first one is the reference by eager.
    choices = [CustomOpConfig(program), CustomOpConfig(reference)]
    register_custom_op_autotuning(made, configs=choices, name=name.replace("::", "_"))
