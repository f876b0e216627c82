"""Farms of real daemons that a test may hurt.

HandMadeFarm starts each daemon by itself: on loopback, behind proxies, with keys, or with its workers in a network
namespace of their own. SupervisedFarm is `kiln farm up`. Both measure on the device null. A daemon that is started
again keeps its port.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import signal
import struct
import subprocess
import time

import processes
from proxy import Proxy

_START_S = 60
_STOP_S = 30
# How a farm's supervisor begins, too (docs/operations.md).
RESTART_S = 0.2


@dataclasses.dataclass(frozen=True)
class Place:
    """Where daemons run: words before their command line, and the host that they listen on."""

    words: tuple[str, ...] = ()
    host: str = "127.0.0.1"


@dataclasses.dataclass(frozen=True)
class Shape:
    """How a hand-made farm is built."""

    # Builders and runners each.
    workers: int = 1
    has_proxies: bool = False
    has_keys: bool = False
    head: Place = Place()
    box: Place = Place()
    # The library of clock_offset.c, by which each daemon has a clock of its own. "": none has.
    clock_library: str = ""
    # Folder of the database; "" = the farm's own.
    db_folder: str = ""


class _Farm:
    """What both kinds have in common: clients, and the children of daemons."""

    # A fault lasts at most so long.
    longest_s = 60.0

    def __init__(self, kiln: str, folder: pathlib.Path) -> None:
        self.kiln, self.folder = kiln, folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        self.environment.update(TMPDIR=str(self.temporary), HOME=str(folder))
        # Variables that a client needs to reach the farm.
        self.access: dict[str, str] = {}

    def client(self, *words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs a command of `kiln` to its end."""
        return subprocess.run([self.kiln, *words], env=self.environment | self.access, text=True, timeout=timeout_s,
                              capture_output=True, check=False, cwd=self.folder)

    def start_client(self, *words: str) -> subprocess.Popen[bytes]:
        """Starts a command of `kiln`, whose output goes to a file."""
        with open(self.folder / "client.log", "ab") as log:
            return subprocess.Popen([self.kiln, *words], env=self.environment | self.access, stdout=log, stderr=log,
                                    cwd=self.folder)

    def pid(self, name: str) -> int:
        raise NotImplementedError

    def children(self, name: str) -> list[int]:
        return processes.descendants(self.pid(name))

    def kill(self, name: str) -> None:
        """Ends the daemon with SIGKILL, but not its children."""
        pid = self.pid(name)
        processes.send(pid, signal.SIGKILL)
        processes.all_ended([pid], 10)


class HandMadeFarm(_Farm):
    """A farm whose daemons are children of this process. `names` are their names."""

    def __init__(self, kiln: str, folder: pathlib.Path, shape: Shape) -> None:
        super().__init__(kiln, folder)
        self.shape = shape
        self.db = os.path.join(shape.db_folder or folder, "kiln.db")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._addresses: dict[str, str] = {}
        self.proxies: dict[str, Proxy] = {}
        self.keys = self.foreign_keys = ""
        # The command that starts a worker that lies; empty = there is none.
        self.liar_program: list[str] = []
        if shape.has_keys:
            self._make_keys()
        workers = [f"{kind}{i}" for i in range(shape.workers) for kind in ("builder", "runner")]
        self.names = ["tracker", "scheduler", *workers]
        if shape.has_proxies:
            self.proxies = {name: Proxy(shape.head.host) for name in ["tracker", *workers]}
        for name in self.names:
            self.start(name)

    def _make_keys(self) -> None:
        """Makes the keys of this farm, and those of another one."""
        for authority in ("farm-keys", "foreign-keys"):
            for words in (["init"], ["issue", "box", "--role", "work"], ["issue", "ann", "--role", "admin"]):
                made = self.client("keys", *words, "--authority", str(self.folder / authority))
                if made.returncode != 0:
                    raise RuntimeError(f"kiln keys {' '.join(words)}: {made.stderr}")
        self.keys = str(self.folder / "farm-keys" / "box")
        self.foreign_keys = str(self.folder / "foreign-keys" / "box")
        self.access["KILN_KEYS"] = str(self.folder / "farm-keys" / "ann")

    def _flags(self, name: str) -> list[str]:
        """The flags of a daemon, but for its port."""
        flags = ["--keys", self.keys] if self.keys else []
        if not self.keys and self.shape.head.host != "127.0.0.1":
            flags.append("--insecure")
        if name == "tracker":
            return flags
        flags += ["--tracker", self.address_for_others("tracker")]
        if name == "scheduler":
            return [*flags, "--db", self.db]
        if name in self.proxies:
            flags += ["--advertise", self.proxies[name].address]
        return flags + (["--jobs", "1"] if name.startswith("builder") else ["--device", "null"])

    def address(self, name: str) -> str:
        """Where the daemon listens."""
        return self._addresses[name]

    def address_for_others(self, name: str) -> str:
        """Where other daemons reach it: through its proxy if there is one."""
        return self.proxies[name].address if name in self.proxies else self._addresses[name]

    def set_clock(self, name: str, offset_s: int) -> pathlib.Path:
        """Sets the daemon's clock so many seconds ahead, and returns the file where it reads that."""
        path = self.folder / f"{name}.clock"
        path.touch()
        # The daemon has the file mapped, so it is written in place.
        with open(path, "r+b") as file:
            file.write(struct.pack("=q", offset_s * 1_000_000_000))
        return path

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def start(self, name: str) -> None:
        """Starts a daemon that does not run, and waits until it serves."""
        place = self.shape.box if name.startswith(("builder", "runner")) else self.shape.head
        listen = self._addresses.get(name, f"{place.host}:0")
        port_file = self.folder / f"{name}.port"
        port_file.unlink(missing_ok=True)
        environment = dict(self.environment)
        if self.shape.clock_library:
            environment.update(LD_PRELOAD=self.shape.clock_library, KILN_CLOCK_OFFSET=str(self.set_clock(name, 0)))
        command = [*place.words, self.kiln, name.rstrip("0123456789"), "--listen", listen, "--port-file",
                   str(port_file), *self._flags(name)]
        with open(self.folder / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log,
                                                     cwd=self.folder)
        process = self._processes[name]
        processes.wait_until(lambda: process.poll() is not None or _is_whole(port_file), _START_S)
        if process.poll() is not None or not _is_whole(port_file):
            raise RuntimeError(f"{name} does not start: {self.log_end(name)}")
        self._addresses[name] = f"{place.host}:{port_file.read_text().split()[0]}"
        if name in self.proxies:
            self.proxies[name].to = self._addresses[name]
        if name == "scheduler":
            self.access["KILN_SCHEDULER"] = self._addresses[name]

    def kill(self, name: str) -> None:
        super().kill(name)
        self._processes[name].wait()

    def restart(self, name: str) -> None:
        """Starts a daemon again that was killed, as soon as a supervisor would."""
        time.sleep(RESTART_S)
        self.start(name)

    def log_end(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def stop(self, name: str) -> int:
        """Stops the daemon in order. Returns its exit status."""
        process = self._processes[name]
        processes.send(process.pid, signal.SIGTERM)
        try:
            return process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return -signal.SIGKILL

    def down(self) -> list[str]:
        """Stops all daemons in order. Returns what went wrong."""
        statuses = {name: self.stop(name) for name in ["scheduler", *self.names[2:], "tracker"]}
        for proxy in self.proxies.values():
            proxy.close()
        return [f"{name} ended with status {status}: {self.log_end(name)}"
                for name, status in statuses.items() if status != 0]

    def sweep(self) -> None:
        """Starts and stops a builder and a runner once more: each removes what killed ones of its kind have left."""
        for name in ("tracker", "builder0", "runner0"):
            self.start(name)
        for name in ("builder0", "runner0", "tracker"):
            self.stop(name)


class SupervisedFarm(_Farm):
    """`kiln farm up`. The supervisor is one of `names`; it starts the others again by itself."""

    names = ["supervisor", "tracker", "scheduler", "builder0", "runner0"]

    def __init__(self, kiln: str, folder: pathlib.Path) -> None:
        super().__init__(kiln, folder)
        self.home = folder / "farm"
        self.db = str(self.home / "kiln.db")
        self.proxies: dict[str, Proxy] = {}
        self._up()

    def _up(self) -> None:
        done = self.client("farm", "up", "--folder", str(self.home), "--device", "null", "--workers", "1")
        if done.returncode != 0:
            raise RuntimeError(f"kiln farm up: {done.stderr}")
        addresses = {row["name"]: row["addresses"] for row in self._state()["processes"]}
        self.access = {"KILN_SCHEDULER": addresses["scheduler"][0], "KILN_SECRET_FILE": str(self.home / "secret")}

    def _state(self) -> dict:
        return json.loads((self.home / "farm.json").read_text())

    def pid(self, name: str) -> int:
        state = self._state()
        if name == "supervisor":
            return state["supervisor"]["pid"]
        want = {"builder0": "builder", "runner0": "runner null"}.get(name, name)
        return next(row["process"]["pid"] for row in state["processes"] if row["name"] == want)

    def restart(self, name: str) -> None:
        """Waits until the supervisor has started the daemon again; starts the supervisor with all of them."""
        if name == "supervisor":
            time.sleep(RESTART_S)
            self._up()
        elif not processes.wait_until(lambda: processes.is_running(self.pid(name)), _START_S):
            raise RuntimeError(f"{name} is not started again: {(self.home / 'supervisor.log').read_text()[-2000:]}")

    def log_end(self, name: str) -> str:
        file = {"builder0": "builder", "runner0": "runner-null"}.get(name, name)
        return (self.home / f"{file}.log").read_text(errors="replace")[-2000:]

    def down(self) -> list[str]:
        """Stops the farm in order. Returns what went wrong."""
        done = self.client("farm", "down", "--folder", str(self.home))
        return [] if done.returncode == 0 else [f"kiln farm down: {done.stdout}{done.stderr}"]

    def sweep(self) -> None:
        """Starts and stops the farm once more."""
        self._up()
        self.down()


def _is_whole(port_file: pathlib.Path) -> bool:
    return port_file.exists() and port_file.read_text().endswith("\n")
