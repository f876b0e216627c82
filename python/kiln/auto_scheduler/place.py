"""The farm that tasks are tuned on."""

from __future__ import annotations

from kiln.farm.client import Client
from kiln.farm.places import local

_clients: list[Client] = []


def use(farm: Client) -> None:
    """Names the farm of all later calls: use(kiln.connect("box:9290"))."""
    _clients[:] = [farm]


def client() -> Client:
    """The farm: the one that `use` named, or this machine, with its records in kiln.db."""
    if not _clients:
        _clients.append(local())
    return _clients[0]
