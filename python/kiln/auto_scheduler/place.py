"""The farm that tasks are tuned on."""

from __future__ import annotations

from kiln.errors import FailedPreconditionError
from kiln.farm.client import Client
from kiln.farm.places import device_here, local

_named: list[Client] = []
# The farm of this machine, by its device. One is open at a time: a database has one scheduler.
_own: dict[str, Client] = {}
# Builds at once that the farm of this machine was started with; 0 = all cores.
_build_jobs: dict[str, int] = {}


def use(farm: Client) -> None:
    """Names the farm of all later calls: use(kiln.connect("box:9290"))."""
    _named[:] = [farm]


def client(device: str | None = None, build_jobs: int = 0) -> Client:
    """The farm: the one that `use` named, or this machine, with its records in kiln.db.

    `device` is "cpu" or "cuda" where this machine's other one will not do. `build_jobs` are the
    builds at once of a farm that starts. FailedPreconditionError: it runs already, with others.
    """
    if device is None:
        device = next(iter(_own), device_here())
    if not _named and device not in _own:
        for each in list(_own):
            _own.pop(each).close()
        _own[device] = local(device=device, build_jobs=build_jobs)
        _build_jobs[device] = build_jobs
    if build_jobs and (_named or _build_jobs[device] != build_jobs):
        raise FailedPreconditionError(
            f"LocalBuilder has n_parallel={build_jobs}, and the farm runs already: the builders of "
            "a farm say how many they build at once, kiln.local(build_jobs=N)"
        )
    return _named[0] if _named else _own[device]
