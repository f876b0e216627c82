"""The models of a module of torch's, as files: for its tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from kiln.errors import InvalidArgumentError
from kiln.torch import inductor
from kiln.torch.graph_program import GraphProgram
from kiln.torch.module import Exported
from kiln.torch.options import Options
from kiln.torch.report import Report


def write_models(
    module: torch.nn.Module, example_inputs: Sequence[Any] | torch.Tensor, folder: str
) -> list[str]:
    """Writes a model for each part of the module that Kiln can compute; returns their paths.

    InvalidArgumentError: there is no such part, with the reasons.
    """
    args = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    exported = Exported(module, args, {})
    report = Report("extract_tasks")
    program = GraphProgram(exported.graph, exported.frozen, Options(), report)
    with inductor.apart():
        models = program.models(exported.values_of(args, {}))
    if not models:
        raise InvalidArgumentError(
            f"{type(module).__name__} has no part with a product that Kiln can compute: "
            + "; ".join(report.sentences())
        )
    paths = []
    for index, model in enumerate(models):
        os.makedirs(os.path.join(folder, str(index)))
        paths.append(model.model.write(os.path.join(folder, str(index))))
    return paths
