"""The farm that tasks are tuned on."""

from __future__ import annotations

from kiln.farm.client import Client
from kiln.farm.places import device_here, local

_named: list[Client] = []
# The farm of this machine, by its device. One is open at a time: a database has one scheduler.
_own: dict[str, Client] = {}


def use(farm: Client) -> None:
    """Names the farm of all later calls: use(kiln.connect("box:9290"))."""
    _named[:] = [farm]


def client(device: str | None = None) -> Client:
    """The farm: the one that `use` named, or this machine, with its records in kiln.db.

    `device` is "cpu" or "cuda" where this machine's other one will not do.
    """
    if _named:
        return _named[0]
    if device is None:
        device = next(iter(_own), device_here())
    if device not in _own:
        for each in list(_own):
            _own.pop(each).close()
        _own[device] = local(device=device)
    return _own[device]
