"""Processes of the machine: their children, and whether they have ended."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """A process whose parent dies becomes a child of this one, so that none is lost."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> None:
    """Takes the exit status of every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; [] if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return []


def is_running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def descendants(root: int) -> list[int]:
    """All running processes below `root`, parents first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))) and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(name))
    found, rest = [], [root]
    while rest:
        below = children.get(rest.pop(0), [])
        found += below
        rest += below
    return found


def command_of(pid: int) -> str:
    """The first words of the command line, for messages."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return "?"
    return b" ".join(words[:3]).decode(errors="replace")


def send(pid: int, number: signal.Signals) -> None:
    """Sends a signal; nothing happens if the process has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_until(done: Callable[[], bool], seconds: float, pause_s: float = 0.02) -> bool:
    """Waits until done(), at most so long. Returns what it says in the end."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return done()
        time.sleep(pause_s)
    return True


def all_ended(pids: Iterable[int], seconds: float) -> list[int]:
    """Waits for the processes to end, at most so long. Returns those that run."""
    rest = list(pids)

    def done() -> bool:
        reap()
        rest[:] = [pid for pid in rest if is_running(pid)]
        return not rest

    wait_until(done, seconds)
    return rest
