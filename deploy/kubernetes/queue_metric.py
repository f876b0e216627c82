#!/usr/bin/python3
"""How many builders the autoscaler would ask for, with 0, some 10 and 1,000 trials that wait for a builder.

usage: queue_metric.py KILN SIMULATOR [--prometheus BIN]

A tracker and a scheduler run on loopback, with simulated runners (tests/fleet) and one builder whose builds never end.
A Prometheus, which runs as nobody and labels all figures with a namespace as one in a cluster does, scrapes the
scheduler's pages each second. The expression of prometheus_adapter.yaml is asked of it, with the namespace in place of
the adapter's words, and replicas follow from the target of autoscaler.yaml as Kubernetes computes them. Prints a row for
each number of jobs, and fails if a figure is not the scheduler's own, or if the first one is not 0, or the last one less
than 1,000. Needs Debian's prometheus (BIN: another one) and python3-yaml.
"""
import argparse
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "bench"))
import fleet  # pylint: disable=wrong-import-position
from fair_share import Farm  # pylint: disable=wrong-import-position

NOBODY = 65534
RUNNERS, JOBS = 240, (0, 2, 200)
CONFIG = """global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: kiln
    static_configs: [{{targets: ["{pages}"], labels: {{namespace: kiln}}}}]
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def expression():
    """What the adapter asks for the figure of the namespace."""
    rule, = yaml.safe_load((HERE / "prometheus_adapter.yaml").read_text())["rules"]["external"]
    return rule["metricsQuery"].replace("<<.LabelMatchers>>", 'namespace="kiln"')


def asked_replicas(waiting):
    """AverageValue of an external metric: the figure over the target, rounded up, between the limits."""
    spec = yaml.safe_load((HERE / "autoscaler.yaml").read_text())["spec"]
    average = float(spec["metrics"][0]["external"]["target"]["averageValue"])
    return min(max(math.ceil(waiting / average), spec["minReplicas"]), spec["maxReplicas"])


def own_figure(pages):
    lines = get(f"http://{pages}/metrics").splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith("kiln_queue_items{") and 'stage="build"' in line)


class Prometheus:
    def __init__(self, program, pages, folder):
        self.port = free_port()
        (folder / "prometheus.yml").write_text(CONFIG.format(pages=pages))
        (folder / "data").mkdir()
        as_nobody = {}
        if os.getuid() == 0:
            as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            folder.chmod(0o755)
            os.chown(folder / "data", NOBODY, NOBODY)
        with open(folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                [program, "--config.file", str(folder / "prometheus.yml"), "--storage.tsdb.path", str(folder / "data"),
                 "--web.listen-address", f"127.0.0.1:{self.port}"], stdout=log, stderr=log, cwd=folder / "data",
                **as_nobody)

    def ask(self, text):
        """The value, or None while there is none."""
        query = urllib.parse.urlencode({"query": text})
        try:
            result = json.loads(get(f"http://127.0.0.1:{self.port}/api/v1/query?{query}"))["data"]["result"]
        except OSError:
            return None
        return float(result[0]["value"][1]) if result else None

    def settled(self, own):
        """The figure, once it is the scheduler's own and has not changed for eight seconds; None after two minutes."""
        last, since = None, time.monotonic()
        for _ in range(120):
            time.sleep(1)
            found = self.ask(expression())
            if found is None or found != last or found != own():
                last, since = found, time.monotonic()
            elif time.monotonic() - since > 8:
                return found
        return None


def submit(kiln, scheduler, folder, number):
    tasks = folder / "tasks"
    fleet.write_tasks(tasks, number, 1)
    subprocess.run([kiln, "submit", "--tasks", str(tasks), "--target", "null", "--policy", "sketch.random", "--trials",
                    "100000", "--no-warm-start", "--finalists", "0", "--scheduler", scheduler], check=True,
                   capture_output=True)


def measure(flags, folder):
    """The figures, for each number of jobs."""
    farm, started, figures = Farm(flags.kiln, folder), [], []
    pages = f"127.0.0.1:{free_port()}"
    try:
        tracker = farm.start("tracker")
        scheduler = farm.start("scheduler", "--db", str(folder / "kiln.db"), "--tracker", tracker, "--max-jobs",
                               str(max(JOBS)), "--http-port", pages.split(":")[1])
        started.append(subprocess.Popen(
            [flags.simulator, "--tracker", tracker, "--scheduler", scheduler, "--runners", str(RUNNERS), "--builders",
             "1", "--build", "3000:3001"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        prometheus = Prometheus(flags.prometheus, pages, folder)
        started.append(prometheus.process)
        for number, jobs in enumerate(JOBS):
            for job in range(JOBS[number - 1] if number else 0, jobs):
                submit(flags.kiln, scheduler, folder, job)
            figures.append(prometheus.settled(lambda: own_figure(pages)))
    finally:
        for process in started:
            process.kill()
            process.wait()
        for name in list(farm.processes):
            farm.stop(name)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("simulator")
    parser.add_argument("--prometheus", default="prometheus")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(flags, pathlib.Path(folder))
    print("| jobs | trials that wait for a builder | builders asked for |\n|---|---|---|")
    for jobs, waiting in zip(JOBS, figures):
        print(f"| {jobs} | {waiting} | {asked_replicas(waiting) if waiting is not None else ''} |")
    if None in figures or figures[0] != 0 or figures[-1] < 1000:
        sys.exit("FAILED: expected figures that settle, 0 without jobs, and 1,000 or more at last")


if __name__ == "__main__":
    main()
