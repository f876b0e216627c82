"""gRPC to a scheduler: what the farm asks for, errors as those of kiln.errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from kiln import errors
from kiln.farm.access import Access
from kiln.release import check_protocol
from kiln.proto import (
    scheduler_pb2,
    scheduler_pb2_grpc,
    tracker_pb2_grpc,
    version_pb2,
    version_pb2_grpc,
)

_FIRST_CALL_S = 5.0
# The same times and sizes as those of the C++ client (rpc/channel.cc).
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", 256 << 20),
)


class _UnimplementedError(errors.KilnError):
    """The server does not have the call."""


_ERRORS = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: errors.InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: errors.NotFoundError,
    grpc.StatusCode.FAILED_PRECONDITION: errors.FailedPreconditionError,
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceededError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
    grpc.StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDeniedError,
    grpc.StatusCode.CANCELLED: errors.CancelledError,
    grpc.StatusCode.UNIMPLEMENTED: _UnimplementedError,
}


def error_of(error: grpc.RpcError) -> errors.KilnError:
    """The error of a call, with the sentence of the service."""
    code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
    details = (error.details() if isinstance(error, grpc.Call) else None) or str(error)
    return _ERRORS.get(code, errors.KilnError)(_reason(details))


def _reason(details: str) -> str:
    """The reason of a lost connection, without gRPC's words around it."""
    for mark in ("remote host: ", "last error: "):
        if mark in details:
            return details[details.rindex(mark) + len(mark) :]
    return details


class Stop:
    """Ends a stream from another thread than the one that reads it."""

    def __init__(self) -> None:
        self.is_requested = False
        self._call: Any = None

    def request(self) -> None:
        """The stream ends within a moment, or as soon as it begins."""
        self.is_requested = True
        if self._call is not None:
            self._call.cancel()

    def watch_over(self, call: Any) -> None:
        """Names the call that is ended."""
        self._call = call
        if self.is_requested:
            call.cancel()


class _Channel:
    """A channel and the calls on it."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.scheduler = scheduler_pb2_grpc.SchedulerStub(channel)
        self.tracker = tracker_pb2_grpc.TrackerStub(channel)
        self.versions = version_pb2_grpc.VersionsStub(channel)


class Connection:
    """A channel to one scheduler. Any thread may call it.

    With keys, the scheduler is judged before it gets a request, and again when the keys change: then
    there is a new channel, which shows the new certificate. A scheduler whose certificate is revoked
    gets no further request, and streams from it end.
    """

    def __init__(self, address: str, access: Access, needs: str = "") -> None:
        """Does not connect yet.

        `needs` is what to do if nobody answers: "start one with `kiln scheduler`".
        """
        self.address = address
        self.access = access
        self._needs = needs
        # Raises if the farm will not come back by itself; what is told of a job that was resumed.
        self.check: Callable[[], None] = lambda: None
        self.go_on_with: Callable[[str], None] = lambda job_id: None
        self._metadata = access.metadata
        self._lock = threading.Lock()
        # The state of the keys that the newest channel shows, and whether the server was judged.
        self._state = access.state()
        self._is_judged = not access.has_keys
        self._is_closed = False
        # Calls under way keep to the channel that they began on; the last one is the newest.
        self._channels = [_Channel(access.channel(address, _OPTIONS))]

    @property
    def scheduler(self) -> scheduler_pb2_grpc.SchedulerStub:
        """The scheduler's calls. UnauthenticatedError: it is no daemon of the farm."""
        return self._channel().scheduler

    @property
    def tracker(self) -> tracker_pb2_grpc.TrackerStub:
        """The tracker's calls that a scheduler passes on. Raises what `scheduler` does."""
        return self._channel().tracker

    def _channel(self) -> _Channel:
        """The newest channel, to a server that is judged by the keys of now."""
        with self._lock:
            if self._is_closed:
                return self._channels[-1]
            state = self.access.state()
            if state != self._state:
                self._state, self._is_judged = state, False
                self._channels.append(_Channel(self.access.channel(self.address, _OPTIONS)))
                if self._is_closed:
                    self._channels[-1].channel.close()
            if not self._is_judged:
                self._is_judged = self.access.check_server(self.address)
            return self._channels[-1]

    def close(self) -> None:
        """Ends the channel; calls that wait end with CancelledError."""
        self._is_closed = True
        for channel in self._channels:
            channel.channel.close()

    def environment(self) -> dict[str, str]:
        """Variables that name this place for the program."""
        return {"KILN_SCHEDULER": self.address, **self.access.environment()}

    def reach(self) -> None:
        """Asks for the scheduler's version. UnavailableError: "cannot reach a scheduler at ...".

        FailedPreconditionError: its calls are of another version. UnauthenticatedError: it asks for
        keys, or is no daemon of the keys' farm.
        """
        request = version_pb2.VersionRequest()
        try:
            told = self.call(self._channel().versions.Get, request, timeout_s=_FIRST_CALL_S)
        except _UnimplementedError as error:
            raise errors.UnavailableError(
                f"{self.address} answers, but is no scheduler, or one of an older kiln; "
                f"{self._needs}"
            ) from error
        except (errors.UnavailableError, errors.DeadlineExceededError) as error:
            is_lost = isinstance(error, errors.UnavailableError)
            if is_lost:
                self.access.check_server(self.address)
            raise errors.UnavailableError(
                f"cannot reach a scheduler at {self.address}: {error if is_lost else 'no answer'}; "
                f"{self._needs}"
            ) from error
        check_protocol(told.version, told.protocol, f"the scheduler at {self.address}")

    def call(self, method: Callable[..., Any], request: Any, timeout_s: float = 60.0) -> Any:
        """One call and its reply. Raises what error_of says."""
        try:
            return method(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise error_of(error) from error
        except ValueError as error:
            raise self._closed() from error

    def send(self, method: Callable[..., Any], requests: Iterator[Any]) -> Any:
        """A stream of requests, and the one reply."""
        try:
            return method(requests, metadata=self._metadata)
        except grpc.RpcError as error:
            raise error_of(error) from error
        except ValueError as error:
            raise self._closed() from error

    def _closed(self) -> errors.KilnError:
        """The error for grpcio's ValueError, which says that the channel is closed."""
        return errors.CancelledError(f"the client of {self.address} is closed")

    def open(self, method: Callable[..., Any], request: Any) -> Any:
        """A call of a stream, of one request or of an iterator of requests."""
        try:
            return method(request, metadata=self._metadata)
        except ValueError as error:
            raise self._closed() from error

    def stream(
        self, method: Callable[..., Any], request: Any, stop: Stop | None = None
    ) -> Iterator[Any]:
        """The replies of a stream. The call ends when the iterator is closed or forgotten."""
        call = self.open(method, request)
        if stop is not None:
            stop.watch_over(call)
        try:
            for reply in call:
                self._channel()
                yield reply
        except grpc.RpcError as error:
            raise error_of(error) from error
        finally:
            call.cancel()


# How long a lost stream is asked for again, in seconds.
PATIENCE_S = 30.0
_PAUSE_S = 0.2


def watch(connection: Connection, job_id: str, stop: Stop | None = None) -> Iterator[Any]:
    """The events of a job (JobEvent), each record once, until the job has ended. Each has a status.

    A lost connection is made again. UnavailableError: it stays lost for PATIENCE_S.
    """
    seen: set[int] = set()
    first_missing = 0
    contact = time.monotonic()
    while True:
        while first_missing in seen:
            seen.remove(first_missing)
            first_missing += 1
        request = scheduler_pb2.WatchJobRequest(job_id=job_id, from_trial=first_missing)
        ended = False
        status = scheduler_pb2.JobStatus()  # the last one that came, which holds until the next one
        lost: errors.KilnError | str = "the scheduler ended the stream"
        try:
            for event in connection.stream(connection.scheduler.WatchJob, request, stop):
                contact = time.monotonic()
                if event.HasField("status"):
                    status = event.status
                else:
                    event.status.CopyFrom(status)
                ended = event.status.state in FINAL
                if event.HasField("record"):
                    trial = event.record.trial
                    if trial < first_missing or trial in seen:
                        event.ClearField("record")
                    else:
                        seen.add(trial)
                yield event
        except errors.UnavailableError as error:
            ended, lost = False, error
        except errors.CancelledError:
            if stop is None or not stop.is_requested:
                raise
            return
        if ended:
            return
        connection.check()
        if time.monotonic() - contact > PATIENCE_S:
            raise errors.UnavailableError(
                f"lost the scheduler at {connection.address}: {lost}; job {job_id} goes on when it "
                "is back"
            )
        time.sleep(_PAUSE_S)


FINAL = (scheduler_pb2.SUCCEEDED, scheduler_pb2.FAILED, scheduler_pb2.CANCELLED)
