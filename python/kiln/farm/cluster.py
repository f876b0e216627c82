"""A farm on this machine: tracker, scheduler, builder and runner as child processes on loopback.

The children are the program `kiln` as a `cluster-child` (client/local_cluster.h), as those of `kiln
tune` without a scheduler: only they and this process know their secret. A child that dies is
started again. They end when the cluster is closed, when Python ends, and when Python is killed:
the kernel ends them with the thread that started them, so one thread starts them all and lives as
long as they do.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import subprocess
import tempfile
import threading
import time

from kiln.errors import CancelledError, DeadlineExceededError, KilnError
from kiln.farm.program import flag, nvrtc, program_path

_START_S = 60.0
_POLL_S = 0.005
# Time between two looks whether all children live.
_WATCH_S = 0.2
_STOP_S = 5.0
_MOST_RESTARTS = 20


class _Daemon:
    def __init__(self, name: str, flags: list[str]) -> None:
        self.name = name
        self.flags = flags
        # Known once it listens. A tracker or scheduler that is started again has the same one, a
        # worker another one, since the tracker refuses the address of a worker that was lost.
        self.port = "0"
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = 0


class Cluster:
    """The processes. Any thread may start and close it; after a fork, only the parent."""

    def __init__(
        self,
        db: str = "kiln.db",
        device: str = "cpu",
        threads: int = 0,
        build_jobs: int = 0,
        log_folder: str = "",
    ) -> None:
        """Starts nothing yet. `device` is cpu, cuda or null; 0 threads or jobs are one a core."""
        self._tracker = _Daemon("tracker", [])
        scheduler_flags = ["--unfinished=none", "--exclusive-phases", *flag("db", db)]
        self._scheduler = _Daemon("scheduler", scheduler_flags)
        self._builder = _Daemon("builder", flag("jobs", build_jobs))
        self._runner = _Daemon("runner", [*flag("device", device), *flag("threads", threads)])
        self._daemons = (self._tracker, self._scheduler, self._builder, self._runner)
        self._log_folder = log_folder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._owner = os.getpid()
        # Guards the processes, which the thread starts and close() ends.
        self._lock = threading.Lock()
        self._is_closing = False
        self._is_closed = threading.Event()
        self._failure: KilnError | None = None
        self._is_up = threading.Event()
        self.address = ""

    @property
    def secret_file(self) -> str:
        """The file of the secret of these processes."""
        return self._path("secret")

    def _path(self, name: str) -> str:
        if self._folder is None:
            raise CancelledError("the local farm is closed")
        return os.path.join(self._folder.name, name)

    def _log(self, daemon: _Daemon) -> str:
        return os.path.join(self._log_folder or self._path(""), daemon.name + ".log")

    def start(self) -> None:
        """Returns when the scheduler can be called; takes some 0.4 s. KilnError: a child ended."""
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-cluster.")
        atexit.register(self.close)
        try:
            if self._log_folder:
                os.makedirs(self._log_folder, exist_ok=True)
            descriptor = os.open(self.secret_file, os.O_WRONLY | os.O_CREAT, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(secrets.token_hex(32) + "\n")
            threading.Thread(target=self._run, name="kiln-local", daemon=True).start()
            self._is_up.wait()
            self.check()
        except BaseException:
            self.close()
            raise

    def go_on_with(self, job_id: str) -> None:
        """Names the job that a scheduler which is started again resumes; no other one is."""
        self._scheduler.flags[0] = f"--unfinished={job_id}"

    def check(self) -> None:
        """KilnError: a process could not be started, or keeps dying; with the end of its log."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        """The thread: starts the processes, and starts again those that die, until the end."""
        try:
            self._start_all()
        except Exception as error:  # pylint: disable=broad-except
            self._failure = error if isinstance(error, KilnError) else KilnError(str(error))
        self._is_up.set()
        # The thread ends last: the kernel ends its children with it.
        while not self._is_closed.wait(_WATCH_S):
            if self._failure is not None:
                continue
            try:
                self._restart_dead()
            except KilnError as error:
                self._failure = error

    def _start_all(self) -> None:
        self._launch(self._tracker)
        self._wait_for_port(self._tracker)
        for daemon in self._daemons[1:]:
            daemon.flags.append(f"--tracker=127.0.0.1:{self._tracker.port}")
            self._launch(daemon)
        for daemon in self._daemons[1:]:
            self._wait_for_port(daemon)
        self.address = f"127.0.0.1:{self._scheduler.port}"

    def _restart_dead(self) -> None:
        for daemon in self._daemons:
            if daemon.process is None or daemon.process.poll() is None:
                continue
            daemon.restarts += 1
            if daemon.restarts > _MOST_RESTARTS:
                raise self._ended(daemon)
            if daemon in (self._builder, self._runner):
                daemon.port = "0"
            self._launch(daemon)

    def _launch(self, daemon: _Daemon) -> None:
        command = [program_path(), "cluster-child", self._log(daemon), daemon.name]
        command += [f"--listen=127.0.0.1:{daemon.port}", "--log-level=info"]
        command += [f"--port-file={self._path(daemon.name + '.port')}"]
        command += [f"--secret-file={self.secret_file}", *daemon.flags]
        with self._lock:
            if self._is_closing:
                return
            # Ctrl-C of a terminal is for Python alone, so the child has a session of its own.
            daemon.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **nvrtc()},
            )

    def _wait_for_port(self, daemon: _Daemon) -> None:
        end = time.monotonic() + _START_S
        while not os.path.exists(self._path(daemon.name + ".port")):
            if daemon.process is None or daemon.process.poll() is not None:
                raise self._ended(daemon)
            if time.monotonic() > end:
                raise DeadlineExceededError(
                    f"the {daemon.name} did not start within {_START_S:.0f} s"
                )
            time.sleep(_POLL_S)
        with open(self._path(daemon.name + ".port"), encoding="utf-8") as file:
            daemon.port = file.readline().strip()

    def _ended(self, daemon: _Daemon) -> KilnError:
        if daemon.process is None:
            return CancelledError("the local farm was closed while it started")
        try:
            with open(self._log(daemon), encoding="utf-8", errors="replace") as file:
                lines = file.read().strip().splitlines()
        except OSError:
            lines = []
        said = ": " + lines[-1].removeprefix(daemon.name + ": ") if lines else ""
        return KilnError(f"the {daemon.name} ended (exit {daemon.process.returncode}){said}")

    def close(self) -> None:
        """Ends the processes in order, within some 100 ms; a second call does nothing."""
        if os.getpid() != self._owner or self._folder is None:
            return
        # No process is started from here on, and the thread still lives: see _run.
        with self._lock:
            self._is_closing = True
            processes = {each: each.process for each in self._daemons}
            for each in self._daemons:
                each.process = None
        # The scheduler ends first: it gives its leases back to a tracker that still listens.
        for group in ((self._scheduler,), (self._builder, self._runner), (self._tracker,)):
            _stop([process for each in group if (process := processes[each]) is not None])
        self._is_closed.set()
        atexit.unregister(self.close)
        self._folder.cleanup()
        self._folder = None


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    end = time.monotonic() + _STOP_S
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
