"""Calls of a build function: each has a thread of its own, and only so many run at once.

A thread cannot be ended, so a call that its job has given up goes on, and keeps its place until it
returns. Python waits at its end for the calls that have begun, because a compiler whose thread is
stopped within it may crash the process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

# Python says at its end what it waits for if that takes longer.
_MOMENT_S = 1.0


class Builds:
    """The calls of one function. Any thread may use it."""

    def __init__(self, places: int) -> None:
        """`places` is the largest number of calls at once, from 1 on. Starts no thread."""
        self._places = places
        self._changed = threading.Condition()
        self._running = 0
        self._watcher: threading.Thread | None = None

    def start(
        self,
        call: Callable[[], Any],
        send: Callable[[Any], None],
        refuse: Callable[[str], None],
        within_s: float,
    ) -> None:
        """Makes the call in a thread as soon as there is a place, then sends what it returned.

        Returns at once. Another thread calls `refuse` with a sentence if no place became free within
        so many seconds. Neither happens if Python ends before the call begins.
        """
        self._watch()
        if self._take(0):
            self._begin(call, send)
            return
        threading.Thread(
            target=self._wait,
            args=(call, send, refuse, within_s),
            name="kiln build that waits",
            daemon=True,
        ).start()

    def _take(self, within_s: float) -> bool:
        with self._changed:
            found = self._changed.wait_for(lambda: self._running < self._places, within_s)
            self._running += found
            return found

    def _give_back(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _wait(
        self,
        call: Callable[[], Any],
        send: Callable[[Any], None],
        refuse: Callable[[str], None],
        within_s: float,
    ) -> None:
        if self._take(within_s):
            self._begin(call, send)
            return
        refuse(
            f"{_calls(self._places, 'earlier ')} of the build function still "
            f"{'runs' if self._places == 1 else 'run'}, so this one did not begin within "
            f"{within_s:.4g} s; give what the function runs a time limit, or raise build_jobs"
        )

    def _begin(self, call: Callable[[], Any], send: Callable[[Any], None]) -> None:
        if is_ending():
            self._give_back()
            return
        # Python waits for threads that are no daemons.
        thread = threading.Thread(
            target=self._run, args=(call, send), name="kiln build", daemon=False
        )
        try:
            thread.start()
        except BaseException:
            self._give_back()
            raise

    def _run(self, call: Callable[[], Any], send: Callable[[Any], None]) -> None:
        # The next call may come as soon as this one's result is sent.
        try:
            result = call()
        finally:
            self._give_back()
        send(result)

    def _watch(self) -> None:
        with self._changed:
            if self._watcher is None:
                self._watcher = threading.Thread(
                    target=self._tell_at_the_end, name="kiln builds at the end", daemon=True
                )
                self._watcher.start()

    def _tell_at_the_end(self) -> None:
        threading.main_thread().join()
        with self._changed:
            if self._changed.wait_for(lambda: self._running == 0, _MOMENT_S):
                return
            running = self._running
        print(
            f"kiln: Python waits for {_calls(running)} of the build function to return",
            file=sys.stderr,
            flush=True,
        )


def is_ending() -> bool:
    """Whether Python ends: its main thread has, and it waits for other threads."""
    return not threading.main_thread().is_alive()


def _calls(count: int, kind: str = "") -> str:
    return f"1 {kind}call" if count == 1 else f"{count} {kind}calls"
