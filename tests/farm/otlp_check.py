"""Checks that a collector of OpenTelemetry understands the spans of a farm.

usage: otlp_check.py KILN      Python must have opentelemetry-proto (PyPI)

A farm on the null target sends its spans to a collector here, which refuses some of them for a moment, and reads the
others with OpenTelemetry's own classes.
"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

TRIALS = 60
PARENT_TRACE, PARENT_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.refusals = 2
        self.spans = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, body):
        """Returns the status of HTTP."""
        with self.lock:
            if self.refusals > 0:
                self.refusals -= 1
                return 503
        request = trace_service_pb2.ExportTraceServiceRequest()
        request.ParseFromString(body)
        with self.lock:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.spans.extend(scope.spans)
        return 200

    def of(self, name):
        with self.lock:
            return [span for span in self.spans if span.name == name]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.take(body) if self.path == "/v1/traces" else 404
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


def start(kiln, folder, name, *flags):
    """Starts a daemon. Returns it and its address."""
    port_file = os.path.join(folder, name + ".port")
    log = open(os.path.join(folder, name + ".log"), "w", encoding="utf-8")
    daemon = subprocess.Popen(
        [kiln, name, "--listen", "127.0.0.1:0", "--port-file", port_file, "--log-format", "json", *flags], stderr=log
    )
    deadline = time.monotonic() + 60
    while not os.path.exists(port_file):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the {name} did not start: see {log.name}")
        time.sleep(0.05)
    with open(port_file, encoding="utf-8") as file:
        return daemon, f"127.0.0.1:{file.readline().strip()}"


def check(collector):
    trials, builds, runs = collector.of("trial"), collector.of("build"), collector.of("run")
    assert len(trials) == len(builds) == len(runs) == TRIALS, (len(trials), len(builds), len(runs))
    roots = {span.trace_id: span for span in trials}
    assert len(roots) == TRIALS, "each trial is a trace of its own"
    (job,) = collector.of("job")
    assert job.trace_id.hex() == PARENT_TRACE and len(job.parent_span_id) == 8, job
    for call in builds + runs:
        root = roots[call.trace_id]
        assert call.parent_span_id == root.span_id and not root.parent_span_id
        assert root.start_time_unix_nano <= call.start_time_unix_nano <= call.end_time_unix_nano
        assert call.end_time_unix_nano <= root.end_time_unix_nano
    for trial in trials:
        assert trial.links[0].trace_id == job.trace_id and trial.links[0].span_id == job.span_id


def check_count(folder):
    """The scheduler's figures count the trials and the job, once the collector's last answer has come."""
    with open(os.path.join(folder, "scheduler.log"), encoding="utf-8") as log:
        page = re.search(r"http://[^\s\"]+/metrics", log.read()).group()
    deadline = time.monotonic() + 60
    counts = {}
    while counts.get("sent") != TRIALS + 1 and time.monotonic() < deadline:
        time.sleep(0.1)
        with urllib.request.urlopen(page, timeout=10) as answer:
            text = answer.read().decode()
        counts = {fate: int(count) for fate, count in re.findall(r'kiln_traces_total{fate="(\w+)"} (\d+)', text)}
    assert counts == {"sent": TRIALS + 1, "dropped": 0}, counts


def check_logs(folder):
    lines = 0
    for name in ("tracker", "scheduler", "builder", "runner"):
        with open(os.path.join(folder, name + ".log"), encoding="utf-8") as log:
            for line in log:
                assert json.loads(line)["process"] == name, line
                lines += 1
    return lines


def main():
    kiln = os.path.abspath(sys.argv[1])
    collector = Collector()
    daemons = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            tracker, address = start(kiln, folder, "tracker")
            daemons.append(tracker)
            scheduler, place = start(
                kiln, folder, "scheduler", "--tracker", address, "--db", os.path.join(folder, "kiln.db"),
                "--otlp", f"127.0.0.1:{collector.server_port}",
            )  # fmt: skip
            daemons.append(scheduler)
            for name, flags in (("builder", ["--jobs", "2"]), ("runner", ["--device", "null"])):
                daemons.append(start(kiln, folder, name, "--tracker", address, "--log-level", "debug", *flags)[0])
            subprocess.run(
                [kiln, "tune", "matmul", "--args", "64,64,64", "--target", "null", "--trials", str(TRIALS),
                 "--scheduler", place, "--json"],
                check=True, stdout=subprocess.DEVNULL,
                env={**os.environ, "TRACEPARENT": f"00-{PARENT_TRACE}-{PARENT_SPAN}-01"},
            )  # fmt: skip
            deadline = time.monotonic() + 60
            while (len(collector.of("trial")) < TRIALS or not collector.of("job")) and time.monotonic() < deadline:
                time.sleep(0.1)
            check(collector)
            check_count(folder)
            assert collector.refusals == 0, "refused batches were sent again"
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                daemon.wait()
        lines = check_logs(folder)
    print(f"{len(collector.spans)} spans of {TRIALS} trials are right, {lines} lines of logs are JSON")


if __name__ == "__main__":
    main()
