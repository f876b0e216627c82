"""Kiln under PyTorch: tuned operators, tuned modules, and a backend of torch.compile.

    import kiln, torch
    tuned = kiln.tune(model, (x,), minutes=3)              # a module of the same signature
    fast = torch.compile(model, backend="kiln")            # kiln is installed, or imported
    product = kiln.torch.op("mine::product", kiln.op("matmul", 512, 512, 512), trials=64)

Needs torch from 2.4 on. docs/pytorch.md says what is supported.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from kiln.errors import FailedPreconditionError

try:
    import torch
except ImportError as error:
    raise FailedPreconditionError(
        "kiln.torch needs torch, which is not installed: pip install kiln[torch]"
    ) from error
if tuple(int(each) for each in torch.__version__.split(".")[:2]) < (2, 4):
    raise FailedPreconditionError(
        f"kiln.torch needs torch from 2.4 on, and found {torch.__version__}: pip install -U torch"
    )

from kiln.torch.backend import kiln as backend  # noqa: E402
from kiln.torch.custom_op import op  # noqa: E402
from kiln.torch.module import TunedModule, tune  # noqa: E402
from kiln.torch.options import Options  # noqa: E402
from kiln.torch.report import Left, PartReport, Report, reports  # noqa: E402

__all__ = [
    "Left",
    "Options",
    "PartReport",
    "Report",
    "TunedModule",
    "backend",
    "op",
    "reports",
    "tune",
]


def _register() -> None:
    """Registers the backend, unless the package is installed: torch finds it then by itself."""
    from torch._dynamo.backends.registry import register_backend

    if not any(each.name == "kiln" for each in entry_points(group="torch_dynamo_backends")):
        register_backend(compiler_fn=backend, name="kiln")


_register()
