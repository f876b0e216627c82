"""Where jobs run: a farm at an address, or this machine."""

from __future__ import annotations

import os

from kiln.errors import InvalidArgumentError
from kiln.farm.access import Access
from kiln.farm.client import Client
from kiln.farm.cluster import Cluster
from kiln.farm.connection import Connection

_DEVICES = ("cpu", "cuda", "null")


def connect(address: str | None = None, keys: str | os.PathLike[str] | None = None) -> Client:
    """The farm whose scheduler listens at HOST:PORT, or where KILN_SCHEDULER says.

    `keys` is the folder of one's keys, or the file of the secret of a farm on one machine; without
    it, KILN_KEYS or KILN_SECRET_FILE. UnavailableError: nobody answers there. UnauthenticatedError:
    the keys do not hold, or are another farm's.
    """
    where = address or os.environ.get("KILN_SCHEDULER", "")
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        found = f"'{where}'" if where else "no address"
        raise InvalidArgumentError(f"found {found}, expected the scheduler's HOST:PORT")
    access = Access(keys) if keys else Access.of_environment()
    connection = Connection(where, access, "start one with `kiln scheduler`")
    connection.reach()
    return Client(lambda: connection, lambda: None, f"the farm at {where}")


def device_here() -> str:
    """The device that a local farm has unless told otherwise: "cuda", or "cpu"."""
    return "cuda" if os.path.exists("/dev/nvidiactl") else "cpu"


def local(
    db: str | os.PathLike[str] = "kiln.db",
    *,
    device: str | None = None,
    threads: int = 0,
    build_jobs: int = 0,
    log_folder: str | os.PathLike[str] = "",
) -> Client:
    """A farm on this machine, which starts at first use and ends with the client or with Python.

    `db` keeps jobs and records. `device` is "cpu", "cuda" or "null" (measures nothing); without one
    it is the GPU of this machine if there is one. `threads` are the cores to measure on, and
    `build_jobs` the builds at once; 0 = all. `log_folder` keeps the logs of the processes.
    KilnError at first use: a process ended, with its last sentence.
    """
    chosen = device or device_here()
    if chosen not in _DEVICES:
        raise InvalidArgumentError(
            f"found device '{chosen}', expected one of {', '.join(_DEVICES)}"
        )
    folder = os.fspath(log_folder)
    database = os.path.abspath(os.fspath(db))
    clusters: list[Cluster] = []

    def start() -> Connection:
        cluster = Cluster(
            database, chosen, threads, build_jobs, os.path.abspath(folder) if folder else ""
        )
        cluster.start()
        clusters.append(cluster)
        connection = Connection(
            cluster.address, Access(cluster.secret_file), "the local farm has ended"
        )
        connection.check = cluster.check
        connection.go_on_with = cluster.go_on_with
        connection.reach()
        return connection

    def close() -> None:
        while clusters:
            clusters.pop().close()

    return Client(start, close, f"this machine's {chosen}")
