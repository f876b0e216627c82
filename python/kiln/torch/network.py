"""A converted graph as a network of Kiln's: tuned, compiled, and called with torch's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kiln.auto_scheduler import place
from kiln.farm import program
from kiln.farm.client import Client
from kiln.farm.computation import Computation
from kiln.network import Network
from kiln.torch.convert import Converted
from kiln.torch.database import has_program
from kiln.torch.options import Options
from kiln.torch.target import target_of


class TensorCall:
    """A compiled network that takes and makes tensors as torch lays them out."""

    def __init__(self, network: Network, converted: Converted) -> None:
        self.network = network
        by_name = {port.name: index for index, port in enumerate(converted.inputs)}
        # A network has no inputs that nothing is made of.
        self._inputs = [
            (by_name[tensor.name], converted.inputs[by_name[tensor.name]])
            for tensor in network.inputs
        ]
        names = [tensor.name for tensor in network.outputs]
        self._outputs = [(names.index(port.name), port) for port in converted.outputs]
        self._is_plain = all(port.is_plain for _, port in [*self._inputs, *self._outputs])

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs; inputs are copied only if their elements have gaps."""
        given = [tensors[index] for index, _ in self._inputs]
        # Gradients are off where a program is called, and arrays are handed over without them.
        given = [each.detach() if each.requires_grad else each for each in given]
        if not self._is_plain:
            given = [
                each if port.is_plain else each.permute(port.order)
                for each, (_, port) in zip(given, self._inputs)
            ]
        made = self.network(
            *[each if each.is_contiguous() else each.contiguous() for each in given]
        )
        made = made if isinstance(made, tuple) else (made,)
        found = [made[index] for index, _ in self._outputs]
        if not self._is_plain:
            found = [
                each if port.is_plain else each.permute(port.inverse)
                for each, (_, port) in zip(found, self._outputs)
            ]
        return found


class Place:
    """A farm and a target: computations and the parts of a graph are tuned and compiled there."""

    def __init__(self, options: Options, device: torch.device) -> None:
        self._options = options
        self._device = device
        self._client: Client | None = options.client
        self.target = options.target or target_of(device)

    @property
    def client(self) -> Client:
        """The farm, which starts at first use."""
        if self._client is None:
            self._client = place.client(self._device.type)
        return self._client

    def tasks(self, path: str) -> list[dict[str, Any]]:
        """The tasks of a model, as `kiln tasks` lists them. KilnError: Kiln does not read it."""
        words = [
            "tasks",
            path,
            f"--target={self.target}",
            *program.flag("layout_rewrite", self._rewrite),
        ]
        return program.run_json(words)

    @property
    def _rewrite(self) -> Any:
        return self._options.job.get("layout_rewrite")

    def has_programs(self, tasks: Sequence[dict[str, Any]]) -> bool:
        """True if the database has a program for each task, by one of its variants."""
        return all(
            any(self.has_program(each["workload_key"]) for each in task["variants"])
            for task in tasks
        )

    def has_program(self, workload_key: str) -> bool:
        """True if the database has a program for a computation."""
        return has_program(self.client, workload_key, self.target)

    def wants_tuning(self, is_known: bool) -> bool:
        """True if the options say that what the database has programs for, or not, is tuned."""
        return self._options.trials != 0 and (self._options.again or not is_known)

    def tune(self, workload: Computation | str, share: float) -> str:
        """Tunes a computation or a model with a share of the budget; returns the job's name."""
        options = {**self._options.job, **self._options.budget(share)}
        verbose = self._options.verbose
        return self.client.tune(workload, target=self.target, verbose=verbose, **options).id

    def compile(self, workload: Computation | str) -> Network:
        """A computation, or the model of this path, with the best programs, on the device."""
        named = {} if isinstance(workload, Computation) else {"layout_rewrite": self._rewrite}
        return self.client.compile(
            workload, target=self.target, gpu=self._device.index or 0, **named
        )
