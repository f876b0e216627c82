"""A farm on this machine: the program `kiln local`, which runs its processes on loopback.

`kiln local` starts tracker, scheduler, builder and runner, starts again one that dies, and ends when
the pipe to it is closed or when Python is gone, however that came. Only these processes and Python
know their secret.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from typing import IO, Any

from kiln.errors import CancelledError, InvalidArgumentError, KilnError
from kiln.farm.program import USAGE, flag, nvrtc, program_path
from kiln.release import check_protocol

_STOP_S = 20.0
_MOST_SAID = 1 << 16


class Cluster:
    """The process. Any thread may start and close it; after a fork, only the parent."""

    def __init__(
        self,
        db: str = "kiln.db",
        device: str = "",
        threads: int = 0,
        build_jobs: int = 0,
        log_folder: str = "",
    ) -> None:
        """Starts nothing yet. `device` is cpu, cuda or null, "" the GPU if there is one.

        0 threads or jobs are one a core. `log_folder` = "" keeps no logs.
        """
        self._flags = [
            *flag("db", db),
            *flag("device", device or None),
            *flag("threads", threads),
            *flag("build-jobs", build_jobs),
            *flag("log-dir", log_folder or None),
        ]
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._place: dict[str, Any] = {}

    @property
    def address(self) -> str:
        """HOST:PORT of the scheduler."""
        return self._place["scheduler"]

    @property
    def secret_file(self) -> str:
        """The file of the secret of these processes, which ends with them."""
        return self._place["secret_file"]

    def start(self) -> None:
        """Returns when jobs can be handed in; takes some 0.5 s. KilnError: a process ended."""
        # A file that has no name: it is gone with the last process that has it open.
        self._errors = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        # Ctrl-C of a terminal is for Python alone, so the program has a session of its own.
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program_path(), "local", "--json", *self._flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env={**os.environ, **nvrtc()},
        )
        atexit.register(self.close)
        try:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line:
                self._process.wait()
                self.check()
            self._place = json.loads(line)
            check_protocol(self._place["version"], self._place["protocol"], "the program kiln")
        except BaseException:
            self.close()
            raise

    def go_on_with(self, job_id: str) -> None:
        """Names a job of an earlier run that was resumed.

        A scheduler that has to be started again goes on with it, as with the jobs of this farm.
        """
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"resume {job_id}\n".encode())
            self._process.stdin.flush()
        except OSError:
            self.check()

    def check(self) -> None:
        """KilnError: the program has ended, with its sentence. InvalidArgumentError: about a flag."""
        if self._process is None:
            raise CancelledError("the local farm is closed")
        if self._process.poll() is None:
            return
        lines = self._said().splitlines()
        said = lines[-1].removeprefix("kiln: ") if lines else "it said nothing"
        if self._process.returncode == USAGE:
            raise InvalidArgumentError(said)
        raise KilnError(f"the local farm ended: {said}")

    def _said(self) -> str:
        """The end of what the program said on standard error."""
        assert self._errors is not None
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _MOST_SAID))
        return self._errors.read().decode(errors="replace").strip()

    def close(self) -> None:
        """Ends the processes in order, within some 100 ms; a second call does nothing."""
        if os.getpid() != self._owner or self._process is None:
            return
        process, self._process = self._process, None
        atexit.unregister(self.close)
        # A fork of Python may hold the pipe as well, so the signal ends the program.
        process.terminate()
        try:
            process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if self._errors is not None:
            self._errors.close()
            self._errors = None
