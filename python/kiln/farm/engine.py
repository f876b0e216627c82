"""Questions about schedules: a process of the program, `kiln states`, answers them.

Applying the steps of a state takes it some 50 us, and a question some 0.2 ms in all, where a run of
the program takes 70 ms. The process starts with the first question, and ends with Python.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import json
import os
import subprocess
import threading
from typing import Any

from kiln.errors import InvalidArgumentError, KilnError
from kiln.farm.program import program_path

# The most computations that are open at once; one takes some kilobytes.
_MOST_TASKS = 4096


class Engine:
    """The process. Any thread may ask."""

    def __init__(self, most_tasks: int = _MOST_TASKS) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The process has said this of each computation that it has open.
        self._opened: dict[tuple[str, str], dict[str, Any]] = {}
        self._most_tasks = most_tasks

    def ask(self, do: str, dag: str, target: str, **fields: Any) -> dict[str, Any]:
        """The answer to a question about a computation. InvalidArgumentError: its sentence."""
        with self._lock:
            task = self._open(dag, target)["task"]
            return self._answer({"do": do, "task": task, **fields})

    def opened(self, dag: str, target: str) -> dict[str, Any]:
        """The whole text of a target, and the hardware that it stands for."""
        with self._lock:
            return copy.deepcopy(self._open(dag, target))

    def ask_keys(self, key: str, other: str) -> float | None:
        """The distance of a workload key from another one, None if they are of other functions."""
        with self._lock:
            self._start()
            return self._answer({"do": "compatible", "key": key, "other": other})["distance"]

    def _open(self, dag: str, target: str) -> dict[str, Any]:
        if len(self._opened) >= self._most_tasks and (dag, target) not in self._opened:
            # The program closes no computation, so another process begins without any.
            self._stop()
        self._start()
        if (dag, target) not in self._opened:
            answer = self._answer({"do": "open", "dag": dag, "target": target})
            self._opened[dag, target] = answer
        return self._opened[dag, target]

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._stop()
        self._process = subprocess.Popen(
            [program_path(), "states"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C of a terminal is for Python alone.
            start_new_session=True,
        )
        atexit.register(self.close)

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question, separators=(",", ":")).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError) as error:
            raise KilnError(f"the program kiln states does not answer: {error}") from error
        except BaseException:
            # Ctrl-C came between question and answer, so the next answer would be to this question.
            process.kill()
            self._stop()
            raise
        if not line:
            raise KilnError(f"the program kiln states ended with exit status {process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise InvalidArgumentError(answer["error"])
        return answer

    def close(self) -> None:
        """Ends the process. The next question starts another one."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        self._opened = {}
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.wait()
        process.stdout.close()
        atexit.unregister(self.close)

    def forget(self) -> None:
        """In a process that fork has made: leaves the parent's process alone.

        While this process had an end of the pipe, the parent's would not end. A thread of the
        parent may have held the lock, and may have filled a buffer, which must not be written.
        """
        process, self._process = self._process, None
        self._opened = {}
        self._lock = threading.Lock()
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                pipe.raw.close()  # type: ignore[union-attr]
            # The process is no child of this one, so nothing waits for it.
            process.returncode = 0


_engine = Engine()
os.register_at_fork(after_in_child=_engine.forget)


def engine() -> Engine:
    """The engine of this process. A fork gets a process of its own."""
    return _engine
