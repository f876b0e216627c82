"""Kiln from Python: tune computations on this machine or a farm, and run what was compiled.

    import kiln
    with kiln.local() as client:                     # or kiln.connect("box:9290")
        job = client.tune(kiln.op("matmul", 512, 512, 512), trials=64)
        matmul = job.compile()
    c = matmul(a, b)

A network or kernel that is compiled already needs no client:

    net = kiln.load("net.kiln")
    y = net(x)            # or net(x, out=y)

`x` is a numpy array, a PyTorch tensor, or anything else with __dlpack__; so is what comes back: of
PyTorch where an input is, on its device, else of numpy (bfloat16 as uint16 and 8-bit floats as
uint8, their bits). Nothing is copied that the network can use where it is.

`load` needs libkiln_runtime.so alone, beside this file or where KILN_RUNTIME says. Tuning needs
the packages grpcio and protobuf, and the program `kiln`, in bin/ beside this file or where
KILN_PROGRAM says.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kiln.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    KilnError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from kiln.library import version
from kiln.network import Kernel, Network, Tensor, load
from kiln.release import VERSION as __version__

if TYPE_CHECKING:
    from kiln.farm.client import Client
    from kiln.farm.compiling import compile, export  # pylint: disable=redefined-builtin
    from kiln.farm.computation import Computation, computation, op, operators
    from kiln.farm.job import Job
    from kiln.farm.places import connect, local
    from kiln.farm.serving import Candidate, Served, Serving
    from kiln.torch import tune

# Names that are imported at first use, because they need gRPC, with their modules. A program that
# only runs compiled networks does without.
_OF_FARM = {
    "Candidate": "serving",
    "Client": "client",
    "Computation": "computation",
    "Job": "job",
    "Served": "serving",
    "Serving": "serving",
    "compile": "compiling",
    "computation": "computation",
    "connect": "places",
    "export": "compiling",
    "local": "places",
    "op": "computation",
    "operators": "computation",
}

# Names that need torch, and therefore are not in __all__.
_OF_TORCH = ("torch", "tune")

__all__ = [
    "CancelledError",
    "Candidate",
    "Client",
    "Computation",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "Job",
    "Kernel",
    "KilnError",
    "Network",
    "NotFoundError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "Served",
    "Serving",
    "Tensor",
    "UnauthenticatedError",
    "UnavailableError",
    "compile",
    "computation",
    "connect",
    "export",
    "load",
    "local",
    "op",
    "operators",
    "version",
]


def __getattr__(name: str) -> Any:
    if name in _OF_TORCH:
        found = importlib.import_module("kiln.torch")
        return found if name == "torch" else found.tune
    if name not in _OF_FARM:
        raise AttributeError(f"module 'kiln' has no attribute '{name}'")
    try:
        module = importlib.import_module(f"kiln.farm.{_OF_FARM[name]}")
    except ModuleNotFoundError as error:
        raise KilnError(
            f"kiln.{name} tunes, and needs {error.name}, which is not installed: pip install kiln"
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_OF_TORCH])
