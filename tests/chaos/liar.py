"""A worker that lies: it joins a farm in the shape of one of its workers, asks that one, and spoils the answers.

    liar.py KIND LIE --tracker HOST:PORT [--keys FOLDER] [--foreign FOLDER] [--seed S]

KIND is runner, builder, tracker (a caller that spoils what the tracker knows) or stranger (a worker with keys of
another farm, FOLDER of --foreign). Prints a line once it has joined, or was refused, and goes on until it is killed.
Needs grpcio and the package that python/make_protos.sh makes, both in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import base64
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent import futures

import grpc

from kiln.proto import builder_pb2, builder_pb2_grpc, runner_pb2, runner_pb2_grpc, tracker_pb2, tracker_pb2_grpc

_DAEMON_HOST = "daemon.kiln.internal"
_CODES = [grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED,
          grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT,
          grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.CANCELLED]


class Keys:
    """A folder of keys; "" = none."""

    def __init__(self, folder: str) -> None:
        self.folder = pathlib.Path(folder)
        self.parts = None
        if folder:
            identity = (self.folder / "identity.pem").read_bytes()
            self.parts = ((self.folder / "authority.pem").read_bytes(), identity)

    def channel(self, address: str) -> grpc.Channel:
        options = [("grpc.max_receive_message_length", 1 << 28), ("grpc.ssl_target_name_override", _DAEMON_HOST)]
        if self.parts is None:
            return grpc.insecure_channel(address, options[:1])
        authority, identity = self.parts
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, identity, identity), options)

    def listen(self, server: grpc.Server) -> int:
        if self.parts is None:
            return server.add_insecure_port("127.0.0.1:0")
        authority, identity = self.parts
        credentials = grpc.ssl_server_credentials([(identity, identity)], authority, True)
        return server.add_secure_port("127.0.0.1:0", credentials)

    def certificate(self) -> bytes:
        text = self.parts[1].decode()
        body = re.search("-----BEGIN CERTIFICATE-----(.*?)-----END", text, re.S).group(1)
        return base64.b64decode(body)

    def sign(self, text: bytes) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            key = str(self.folder / "identity.pem")
            return subprocess.run(["openssl", "dgst", "-sha256", "-sign", key, file.name], check=True,
                                  capture_output=True).stdout


class Liar:
    """Answers calls by a worker's own answers, spoiled."""

    def __init__(self, lie: str, rng: random.Random, worker: tracker_pb2.WorkerState, keys: Keys,
                 foreign: Keys | None) -> None:
        self.lie, self.rng, self.worker, self.foreign = lie, rng, worker, foreign
        channel = keys.channel(worker.address)
        self.runner = runner_pb2_grpc.RunnerStub(channel)
        self.builder = builder_pb2_grpc.BuilderStub(channel)
        self.last_build: builder_pb2.BuildReply | None = None

    def _note(self) -> None:
        print(f"lies: {self.lie}", file=sys.stderr, flush=True)

    def _ask(self, method, request, context):
        try:
            return method(request, timeout=60)
        except grpc.RpcError as error:
            return context.abort(error.code(), error.details() or "no reason")

    def measure(self, request: runner_pb2.MeasureRequest, context: grpc.ServicerContext):
        if (early := self._early(context)) is not None:
            return early
        reply = self._ask(self.runner.Measure, request, context)
        result = reply.result
        if self.lie == "impossible":
            self._note()
            self._impossible(result)
        elif self.lie == "forged":
            self._note()
            result.costs_s[:] = [self.rng.uniform(2e-9, 5e-9)] * len(result.costs_s)
        elif self.lie == "foreign":
            self._note()
            result.runner = result.builder = "the-others"
            result.device, result.measured_as = "a device that nobody has", "stream/cold/fixed"
            result.timestamp_s, result.trace_id = self.rng.choice([-1, 1 << 62]), "no trace"
            result.remeasurements, result.remeasured_device = 7, "x" * 200
            result.instants.committed_us = -5
        return reply

    def _early(self, context: grpc.ServicerContext):
        """The answers that need no worker."""
        if self.lie == "silent":
            self._note()
            time.sleep(3600)
        if self.lie == "garbage":
            self._note()
            return self.rng.randbytes(self.rng.randint(1, 2000))
        if self.lie == "errors":
            self._note()
            context.abort(self.rng.choice(_CODES), "the liar's own error")
        return None

    def _impossible(self, result) -> None:
        costs = self.rng.choice([[-1.0], [math.nan], [math.inf], [-math.inf], [0.0], [1e-300], [1e-12], [1e300], [],
                                 [1e-5] * 5000, [1e-5, math.nan]])
        result.costs_s[:] = costs
        result.run_s = self.rng.choice([result.run_s, -1.0, math.nan, 1e300])
        result.error = self.rng.choice([0, 0, 0, 99, -1])
        result.message = self.rng.choice(["", "x" * 1000])
        result.max_error = self.rng.choice([0.0, math.nan, -1.0])

    def build(self, request: builder_pb2.BuildRequest, context: grpc.ServicerContext):
        if (early := self._early(context)) is not None:
            return early
        reply = self._ask(self.builder.Build, request, context)
        if self.lie == "other":
            self.last_build, other = reply, self.last_build
            if other is not None:
                self._note()
                return other
        elif self.lie == "unsigned":
            self._note()
            reply.artifact.signature, reply.artifact.certificate, reply.artifact.trial = b"", b"", ""
        elif self.lie == "foreign-signature":
            self._note()
            artifact = reply.artifact
            text = "kiln artifact\n"
            for part in (artifact.digest, artifact.target, artifact.trial):
                text += f"{len(part)}:{part}\n"
            artifact.certificate = self.foreign.certificate()
            artifact.signature = self.foreign.sign(text.encode())
        return reply

    def handlers(self):
        def to_bytes(reply) -> bytes:
            return reply if isinstance(reply, bytes) else reply.SerializeToString()

        def row(function, request):
            return grpc.unary_unary_rpc_method_handler(function, request.FromString, to_bytes)

        return (grpc.method_handlers_generic_handler("kiln.v1.Runner",
                                                     {"Measure": row(self.measure, runner_pb2.MeasureRequest)}),
                grpc.method_handlers_generic_handler("kiln.v1.Builder",
                                                     {"Build": row(self.build, builder_pb2.BuildRequest)}))


def serve(flags: argparse.Namespace, tracker: tracker_pb2_grpc.TrackerStub, keys: Keys, foreign: Keys | None) -> None:
    """Joins as a worker, and announces itself until it is killed."""
    kind = tracker_pb2.BUILDER if flags.kind == "builder" else tracker_pb2.RUNNER
    worker = next(w for w in tracker.List(tracker_pb2.ListRequest(), timeout=10).workers if w.kind == kind)
    liar = Liar(flags.lie, random.Random(flags.seed), worker, keys, foreign)
    server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.max_receive_message_length", 1 << 28)])
    server.add_generic_rpc_handlers(liar.handlers())
    port = keys.listen(server)
    server.start()
    own = tracker_pb2.WorkerState()
    own.CopyFrom(worker)
    own.id, own.address = uuid.uuid4().hex[:16], f"127.0.0.1:{port}"
    announce_until_killed(tracker, own)


def announce_until_killed(tracker: tracker_pb2_grpc.TrackerStub, own: tracker_pb2.WorkerState) -> None:
    has_told = False
    while True:
        try:
            pause_s = tracker.Announce(tracker_pb2.AnnounceRequest(worker=own), timeout=5).next_announce_ms / 1e3
            told = f"which joined as {own.id}"
        except grpc.RpcError as error:
            pause_s, told = 0.3, f"which was refused: {error.code().name}"
        if not has_told:
            print(told, flush=True)
            has_told = True
        time.sleep(pause_s)


def spoil_tracker(flags: argparse.Namespace, tracker: tracker_pb2_grpc.TrackerStub) -> None:
    """Takes leases as another scheduler, or claims to be the farm's own workers, until it is killed."""
    rng = random.Random(flags.seed)
    workers = tracker.List(tracker_pb2.ListRequest(), timeout=10).workers
    print(f"which knows {len(workers)} workers", flush=True)
    while True:
        worker = rng.choice(workers)
        calls = [lambda: steal(tracker, rng, worker)]
        if flags.lie == "impersonate":
            calls = [lambda: claim(tracker, worker, leaving=True),
                     lambda: claim(tracker, worker, address="127.0.0.1:9"),
                     lambda: claim(tracker, worker, id=uuid.uuid4().hex[:16])]
        try:
            rng.choice(calls)()
        except grpc.RpcError:
            pass
        print(f"lies: {flags.lie}", file=sys.stderr, flush=True)
        time.sleep(0.1)


def steal(tracker: tracker_pb2_grpc.TrackerStub, rng: random.Random, worker: tracker_pb2.WorkerState) -> None:
    """Takes a lease for three seconds, and gives back leases of others."""
    tracker.Acquire(tracker_pb2.AcquireRequest(
        request_id=uuid.uuid4().hex, scheduler_id="liar", kind=worker.kind, key=worker.keys[0], user="liar",
        priority=rng.choice([0, 1 << 30]), wait_ms=200, lease_ms=3000), timeout=5)
    tracker.Renew(tracker_pb2.RenewRequest(scheduler_id="liar", leases=[
        tracker_pb2.Lease(id=uuid.uuid4().hex, worker=worker, lease_ms=600_000, user="liar")]), timeout=5)
    tracker.Release(tracker_pb2.ReleaseRequest(scheduler_id="liar", lease_ids=[uuid.uuid4().hex]), timeout=5)


def claim(tracker: tracker_pb2_grpc.TrackerStub, worker: tracker_pb2.WorkerState, leaving: bool = False,
          **changed: str) -> None:
    """Announces the worker as if this were the worker."""
    other = tracker_pb2.WorkerState()
    other.CopyFrom(worker)
    for name, value in changed.items():
        setattr(other, name, value)
    tracker.Announce(tracker_pb2.AnnounceRequest(worker=other, leaving=leaving), timeout=5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["runner", "builder", "tracker", "stranger"])
    parser.add_argument("lie")
    parser.add_argument("--tracker", required=True)
    parser.add_argument("--keys", default="")
    parser.add_argument("--foreign", default="")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    keys, foreign = Keys(flags.keys), Keys(flags.foreign) if flags.foreign else None
    tracker = tracker_pb2_grpc.TrackerStub(keys.channel(flags.tracker))
    if flags.kind == "tracker":
        spoil_tracker(flags, tracker)
    elif flags.kind == "stranger":
        own = tracker.List(tracker_pb2.ListRequest(), timeout=10).workers[0]
        own.id, own.address = uuid.uuid4().hex[:16], "127.0.0.1:9"
        announce_until_killed(tracker_pb2_grpc.TrackerStub(foreign.channel(flags.tracker)), own)
    else:
        serve(flags, tracker, keys, foreign)


if __name__ == "__main__":
    main()
