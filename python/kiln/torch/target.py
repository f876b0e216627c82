"""Targets of torch's devices."""

from __future__ import annotations

import torch

from kiln.errors import InvalidArgumentError


def target_of(device: torch.device) -> str:
    """The target for tensors of this device. InvalidArgumentError: Kiln has none for it."""
    if device.type == "cpu":
        return "llvm"
    if device.type == "cuda" and torch.version.hip is None:
        major, minor = torch.cuda.get_device_capability(device)
        return f"cuda -arch=sm_{major}{minor}"
    raise InvalidArgumentError(f"found a tensor on {device.type}, expected one on cpu or cuda")
