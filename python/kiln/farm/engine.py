"""Questions about schedules: a process of the program, `kiln states`, answers them.

Applying the steps of a state takes it some 50 us, and a question some 0.2 ms in all, where a run of
the program takes 70 ms. The process starts with the first question, and ends with Python.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
from typing import Any

from kiln.errors import InvalidArgumentError, KilnError
from kiln.farm.program import program_path


class Engine:
    """The process. Any thread may ask; a fork gets a process of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        # Numbers of the computations that this process has open.
        self._tasks: dict[tuple[str, str], int] = {}

    def ask(self, do: str, dag: str, target: str, **fields: Any) -> dict[str, Any]:
        """The answer to a question about a computation. InvalidArgumentError: its sentence."""
        with self._lock:
            self._start()
            if (dag, target) not in self._tasks:
                opened = self._answer({"do": "open", "dag": dag, "target": target})
                self._tasks[dag, target] = opened["task"]
            return self._answer({"do": do, "task": self._tasks[dag, target], **fields})

    def opened(self, dag: str, target: str) -> dict[str, Any]:
        """The whole text of a target, and the hardware that it stands for."""
        with self._lock:
            self._start()
            return self._answer({"do": "open", "dag": dag, "target": target})

    def ask_keys(self, key: str, other: str) -> float | None:
        """The distance of a workload key from another one, None if they are of other functions."""
        with self._lock:
            self._start()
            return self._answer({"do": "compatible", "key": key, "other": other})["distance"]

    def _start(self) -> None:
        if self._owner == os.getpid() and self._process and self._process.poll() is None:
            return
        # The process of a parent is its own.
        self._tasks = {}
        self._owner = os.getpid()
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
            process.wait()
            self._process = None
            process.stdin.close()
            process.stdout.close()
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
            process, self._process = self._process, None
            if process is None or self._owner != os.getpid():
                return
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait()
            process.stdout.close()
            atexit.unregister(self.close)


_engine = Engine()


def engine() -> Engine:
    """The engine of this process."""
    return _engine
