#!/usr/bin/python3
"""Checks a farm's metrics with a real Prometheus. deploy/check_metrics.sh runs it.

usage: prometheus.py KILN BIN WORK

BIN has `prometheus` and `promtool`. WORK is an empty folder with a disk of its own, WORK/disk, which is filled. The
programs of BIN run as nobody. The exit status is 1 if anything is not as expected.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import exposition
from tls_farm import Farm, get

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOBODY = 65534
problems = []


def expect(good, sentence):
    print(("ok: " if good else "WRONG: ") + sentence, flush=True)
    if not good:
        problems.append(sentence)


def as_nobody():
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Prometheus:
    """A server of its own, in a folder of its own."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.port = programs, folder, free_port()
        self.process = None

    def promtool(self, *words, text=None):
        done = subprocess.run([self.programs / "promtool", *words], input=text, text=True, capture_output=True, check=False,
                              cwd=self.folder, preexec_fn=as_nobody)
        return done.returncode, done.stdout + done.stderr

    def prepare(self, keys, tracker, scheduler):
        """Writes the configuration of deploy/ with the farm's addresses, and shorter times."""
        self.folder.mkdir()
        shutil.copytree(keys, self.folder / "keys")
        config = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
        config = config.replace("HEAD:9191", tracker).replace("HEAD:9291", scheduler)
        config = config.replace("/etc/prometheus/kiln", str(self.folder / "keys"))
        config = re.sub(r"_interval: \d+s", "_interval: 1s", config)
        (self.folder / "prometheus.yml").write_text(config)
        alerts = (ROOT / "deploy/prometheus/alerts.yml").read_text()
        (self.folder / "alerts.yml").write_text(re.sub(r"for: \d+\w", "for: 2s", alerts))
        (self.folder / "data").mkdir()
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", self.folder], check=True)

    def __enter__(self):
        log = open(self.folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.programs / "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             f"--web.listen-address=127.0.0.1:{self.port}"], cwd=self.folder, stdout=log, stderr=log, preexec_fn=as_nobody)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=60) as reply:
            return json.load(reply)["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def firing(self):
        """Names of the alerts that fire, but for the one that looks at hours: it takes these minutes for them."""
        names = {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}
        return names - {"KilnDatabaseGrows"}


def wait_for(condition, seconds=120):
    """The first true value of the condition; its last value after so long."""
    end = time.monotonic() + seconds
    while True:
        value = None
        with contextlib.suppress(OSError):
            value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.5)


def check_texts(prometheus, farm, keys):
    for daemon, address in farm.pages().items():
        _, text = get(address, "/metrics", keys, keys)
        code, said = prometheus.promtool("check", "metrics", text=text)
        expect(code == 0 and not said, f"promtool check metrics of the {daemon}: {said or 'nothing to say'}")
    for what, file in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        code, said = prometheus.promtool("check", what, file)
        expect(code == 0, f"promtool check {what} {file}: {said.strip().splitlines()[-1]}")


def check_targets(prometheus, farm):
    expected = set(farm.pages().values())
    up = lambda: {sample["metric"]["instance"] for sample in prometheus.query('up{job=~"kiln.*"} == 1')}
    found = wait_for(lambda: up() == expected and up())
    expect(found == expected, f"Prometheus scrapes {sorted(expected)} over TLS with a certificate")


def check_expressions(prometheus, farm):
    """Every expression has an answer; those about what this farm has, have samples."""
    absent = ("temperature", "power", "clock", "canary", "quarantined", "!=\"serves\"", "drifts", "code!=\"OK\"", "waiting")
    places = exposition.expressions((ROOT / "deploy/grafana/kiln.json").read_text(),
                                    (ROOT / "deploy/prometheus/alerts.yml").read_text())
    # The job goes on through all checks: some figures are there only while one runs.
    farm.submit(512, 1_000_000)
    wait_for(lambda: prometheus.query("sum(rate(kiln_trials_total[30s])) > 0"))
    time.sleep(10)
    empty = 0
    for place, expression in places:
        expression = expression.replace("$__rate_interval", "30s")
        result = prometheus.query(expression)
        if result or place.startswith("alert") or any(word in expression for word in absent):
            continue
        empty += 1
        expect(False, f"{place}: {expression} has no samples")
    expect(empty == 0, f"{len(places)} expressions of dashboard and alerts have answers")
    rate = float(prometheus.query("sum(rate(kiln_trials_total[30s]))")[0]["value"][1])
    print(f"{rate:.1f} trials a second", flush=True)


def check_alerts(prometheus, farm, work):
    early = wait_for(prometheus.firing, 5)
    expect(not early, f"no alert fires in a farm that is well: {early or 'none'}")
    runner = farm.process("runner null")["pid"]
    os.kill(runner, signal.SIGSTOP)
    expect(wait_for(lambda: "KilnWorkerLost" in prometheus.firing()), "KilnWorkerLost fires when a runner falls silent")
    expect(wait_for(lambda: "KilnQueueStands" in prometheus.firing()), "KilnQueueStands fires when a job has no device")
    os.kill(runner, signal.SIGKILL)
    expect(wait_for(lambda: "KilnQueueStands" not in prometheus.firing()), "KilnQueueStands ends when there is a runner again")
    disk = os.statvfs(work / "disk")
    with open(work / "disk" / "filling", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, int(disk.f_bavail * disk.f_frsize * 0.95))
    expect(wait_for(lambda: "KilnDiskFills" in prometheus.firing()), "KilnDiskFills fires when the database's disk fills")
    (work / "disk" / "filling").unlink()
    expect(wait_for(lambda: "KilnDiskFills" not in prometheus.firing()), "KilnDiskFills ends when there is room again")


def main(kiln, programs, work):
    with Farm(kiln, work / "farm", "--db", work / "disk/kiln.db") as farm:
        keys = farm.issue("prometheus", "read")
        farm.submit(16, 20)
        prometheus = Prometheus(programs, work / "prometheus")
        prometheus.prepare(keys, farm.pages()["tracker"], farm.pages()["scheduler"])
        check_texts(prometheus, farm, keys)
        with prometheus:
            check_targets(prometheus, farm)
            check_expressions(prometheus, farm)
            check_alerts(prometheus, farm, work)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
