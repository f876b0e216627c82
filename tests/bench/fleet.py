#!/usr/bin/env python3
"""How many trials a second one scheduler has measured on a large fleet, as docs/experiments/fleet.md reports it.

  fleet.py KILN SIMULATOR [--before KILN SIMULATOR] [--runners 1,10,100,1000] [--builders 200]
           [--policy random|sketch] [--seconds 20] [--watched all] [--out FOLDER]

Starts a tracker and a scheduler on loopback ports that the system chooses, and the simulator (tests/fleet) with
so many builders and runners, which compile and run nothing. Submits jobs of many tasks, one for each 16 runners,
which do not end, and watches them as `kiln tune` does. After a warm-up, for --seconds: trials by second, CPU
time of each process, resident sizes, and what users wait for an answer. With --before the two sides take turns
for each number of runners.

Prints a table; FOLDER gets fleet.json and fleet.svg. With --exact N the jobs end after N trials each, and the
exit status is 1 unless the scheduler and the simulator have counted the same trials and errors.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from fair_share import Farm

ENDLESS = 10_000_000
# The most runners that a job uses.
RUNNERS_OF_A_JOB = 16
TICKS = os.sysconf("SC_CLK_TCK")
POLICIES = {"random": "sketch.random", "sketch": "sketch.xgb"}
# RUNTIME_DEVICE_ERROR of the protocol's ErrorKind, as a key of JSON.
RUNTIME_ERROR = "4"


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Simulator:
    """The simulator's process, and the newest figures that it has printed."""

    def __init__(self, binary, tracker, scheduler, flags, runners):
        words = [binary, "--tracker", tracker, "--scheduler", scheduler, "--runners", str(runners), "--builders",
                 str(flags.builders), "--build", flags.build, "--run", flags.run, "--unavailable",
                 str(flags.unavailable), "--hang", str(flags.hang), "--error", str(flags.error), "--seed",
                 str(flags.seed), "--artifact-bytes", str(flags.artifact_bytes)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.figures, self.lines = None, 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.figures = json.loads(line)
            self.lines += 1

    def wait_for_line(self):
        """The figures of the next line."""
        lines = self.lines
        while self.lines == lines:
            if self.process.poll() is not None:
                raise RuntimeError(f"the simulator has ended with {self.process.returncode}")
            time.sleep(0.01)
        return self.figures

    def say(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def write_tasks(path, job, count):
    """Matmuls that no other job has: jobs that tune the same computation would wait for each other."""
    with open(path, "w") as file:
        for task in range(count):
            rows, columns = 64 + 16 * (task % 16), 128 + 16 * (job % 32)
            print(f"1 matmul {rows},{columns},{128 + 16 * (task // 16 + 8 * (job // 32))}", file=file)


class Run:
    """One tracker, scheduler and simulator."""

    def __init__(self, side, flags, runners, policy, folder):
        self.kiln, self.flags, self.folder = side[0], flags, pathlib.Path(folder)
        self.jobs_wanted = flags.jobs or max(1, math.ceil(runners / RUNNERS_OF_A_JOB))
        self.farm = Farm(self.kiln, folder)
        self.policy, self.simulator, self.jobs, self.watched = policy, None, [], 0
        tracker = self.farm.start("tracker")
        self.scheduler = self.farm.start("scheduler", "--db", str(self.folder / "kiln.db"), "--tracker", tracker,
                                         "--max-jobs", str(self.jobs_wanted))
        self.simulator = Simulator(side[1], tracker, self.scheduler, flags, runners)
        self.simulator.wait_for_line()
        self.pids = {name: process.pid for name, process in self.farm.processes.items()}
        self.pids["simulator"] = self.simulator.process.pid

    def run(self, *words):
        done = subprocess.run([self.kiln, *words, "--scheduler", self.scheduler], text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def submit(self):
        self.watched = self.jobs_wanted if self.flags.watched == "all" else int(self.flags.watched)
        for number in range(self.jobs_wanted):
            tasks = self.folder / "tasks"
            write_tasks(tasks, number, self.flags.tasks)
            lines = self.run("submit", "--tasks", str(tasks), "--target", "null", "--policy", POLICIES[self.policy],
                             "--trials", str(self.flags.exact or ENDLESS), "--no-warm-start", "--finalists", "0",
                             "--seed", str(number + 1), "--json")
            job = json.loads(lines.splitlines()[-1])["job"]
            self.jobs.append(job)
            if number < self.watched:
                self.simulator.say("watch", job)
            self.simulator.say("ask", job)

    def until(self, wanted, seconds):
        """Waits until `wanted` of the figures is true. RuntimeError: it was not for so long."""
        end = time.monotonic() + seconds
        while not wanted(self.simulator.wait_for_line()):
            if time.monotonic() > end:
                raise RuntimeError(f"nothing for {seconds} s: {self.simulator.figures}; see {self.folder}")

    def measure(self):
        # A job begins with the first schedule of each task, which takes longer than trials.
        least = {"fewest_records": 20} if self.watched else {"results": 20 * self.jobs_wanted}
        try:
            self.until(lambda figures: all(figures[name] > count for name, count in least.items()), self.flags.patience)
        except RuntimeError:
            if not self.flags.begin_anyway:
                raise
            print(f"the window begins although not all jobs have: {self.simulator.figures}", file=sys.stderr)
        time.sleep(self.flags.warm_up)
        self.simulator.say("mark")
        begin = self.simulator.wait_for_line()
        began, cpu = time.monotonic(), {name: cpu_seconds(pid) for name, pid in self.pids.items()}
        window, sizes, last = [], {name: [] for name in self.pids}, begin["results"]
        while time.monotonic() - began < self.flags.seconds:
            figures = self.simulator.wait_for_line()
            window.append(figures["results"] - last)
            last = figures["results"]
            for name, pid in self.pids.items():
                sizes[name].append(resident_mib(pid))
        seconds = time.monotonic() - began
        trials = figures["results"] - begin["results"]
        spent = {name: cpu_seconds(pid) - cpu[name] for name, pid in self.pids.items()}
        return {
            "jobs": self.jobs_wanted, "trials": trials, "seconds": seconds, "trials_per_s": trials / seconds,
            "by_second": window, "cpu_s": spent, "cpu_ms_per_trial": 1e3 * sum(spent.values()) / max(1, trials),
            "rss_mib": {name: [found[0], found[-1], max(found)] for name, found in sizes.items()},
            "rss_mib_by_ten_seconds": {name: found[::10] for name, found in sizes.items()},
            "records_per_s": (figures["records"] - begin["records"]) / seconds,
            "event_bytes_per_s": (figures["event_bytes"] - begin["event_bytes"]) / seconds,
            "announces_per_s": (figures["announces"] - begin["announces"]) / seconds,
            **{name: figures[name] for name in ("built_to_measure", "build_to_record", "get_job", "best")},
        }

    def count(self):
        """What the scheduler and the simulator have counted once all jobs have ended."""
        done = {"trials": 0, "error_results": 0, "other_errors": 0}
        for job in self.jobs:
            self.run("watch", job)
            status = json.loads(self.run("jobs", job, "--json"))["job"]
            done["trials"] += status["trials_done"]
            for error, number in status["error_counts"].items():
                done["error_results" if error == RUNTIME_ERROR else "other_errors"] += number
        time.sleep(1.5)
        return done, self.simulator.figures

    def stop(self):
        if self.simulator is not None:
            self.simulator.stop()
        for name in reversed(list(self.farm.processes)):
            self.farm.stop(name)


@contextlib.contextmanager
def running(*words):
    with tempfile.TemporaryDirectory() as folder:
        run = None
        try:
            run = Run(*words, folder)
            run.submit()
            yield run
        finally:
            if run is not None:
                run.stop()


# ---- what is printed

def row(result):
    cpu, trials = result["cpu_s"], max(1, result["trials"])
    sizes = " ".join(f"{result['rss_mib'][name][0]:.0f}-{result['rss_mib'][name][1]:.0f}"
                     for name in ("scheduler", "tracker"))
    return [result["side"], result["policy"], result["runners"], result["jobs"], f"{result['trials_per_s']:.0f}",
            f"{statistics.median(result['by_second']):.0f}", f"{result['cpu_ms_per_trial']:.3f}",
            *[f"{1e3 * cpu[name] / trials:.3f}" for name in ("scheduler", "tracker", "simulator")],
            f"{2e3 / result['cpu_ms_per_trial']:.0f}",
            *[f"{1e3 * result[what]['p50_s']:.1f} / {1e3 * result[what]['p99_s']:.1f}"
              for what in ("get_job", "best", "built_to_measure")], sizes]


HEAD = ["side", "policy", "runners", "jobs", "trials/s", "median second", "CPU ms a trial", "scheduler", "tracker",
        "simulator", "trials in 2 CPU seconds", "GetJob p50 / p99, ms", "Best", "built to measured",
        "RSS of scheduler and tracker, MiB"]


def print_row(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


COLOURS = {"before": "#767676", "now": "#0072b2"}


def panel(results, figure, title, left, width=420, height=260):
    """Lines of one figure over the number of runners; both axes are logarithmic."""
    values = [value for result in results if (value := figure(result)) > 0]
    runners = sorted({result["runners"] for result in results})
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    high = max(high, 10 * low)
    last = max(runners[-1], 10)

    def x(count):
        return left + width * math.log10(count) / math.log10(last)

    def y(value):
        return 40 + height * (1 - math.log10(value / low) / math.log10(high / low))

    parts = [f'<text x="{left}" y="24" font-size="14">{title}</text>']
    for count in runners:
        parts.append(f'<text x="{x(count):.1f}" y="{height + 58}" text-anchor="middle">{count}</text>')
    tick = low
    while tick <= high * 1.001:
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        tick *= 10
    for side, policy in sorted({(result["side"], result["policy"]) for result in results}):
        line = [(x(result["runners"]), y(figure(result)), figure(result)) for result in results
                if (result["side"], result["policy"]) == (side, policy) and figure(result) > 0]
        dash = "" if policy == "random" else ' stroke-dasharray="6 4"'
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[side]}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[side]}"><title>{side}, {policy}: {c:.4g}'
                  "</title></circle>" for a, b, c in line]
        if line:
            parts.append(f'<text x="{line[-1][0] + 6:.1f}" y="{line[-1][1] + 4:.1f}" fill="{COLOURS[side]}">'
                         f"{side}, {policy}</text>")
    return "\n".join(parts)


def plot(results):
    left = panel(results, lambda result: result["trials_per_s"], "Trials a second, by runners", 60)
    right = panel(results, lambda result: result["cpu_ms_per_trial"], "CPU ms a trial, all processes", 660)
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="330" font-family="sans-serif" '
            f'font-size="12"><rect width="1200" height="330" fill="white"/>\n{left}\n{right}\n</svg>\n')


def compare(flags, sides):
    results = []
    print_row(HEAD)
    print_row(["---"] * len(HEAD))
    for turn, runners in enumerate(flags.runners):
        for policy in flags.policy:
            order = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for side in order:
                with running(sides[side], flags, runners, policy) as run:
                    results.append({"side": side, "policy": policy, "runners": runners, **run.measure()})
                print_row(row(results[-1]))
                if flags.out:
                    (flags.out / "fleet.json").write_text(json.dumps(results, indent=1) + "\n")
                    (flags.out / "fleet.svg").write_text(plot(results))


def check_counts(flags, side):
    """0 if each trial was counted once."""
    with running(side, flags, flags.runners[0], flags.policy[0]) as run:
        done, figures = run.count()
    wanted = flags.exact * run.jobs_wanted
    print(f"scheduler: {done}, expected {wanted} trials\nsimulator: {figures}")
    faults = figures["unavailable"] + figures["error_results"]
    same = done["trials"] == wanted and done["error_results"] == figures["error_results"]
    # A trial that workers refused too often has an error of its own and no result.
    same = same and figures["results"] + done["other_errors"] == wanted
    return 0 if same and (faults > 0 or flags.unavailable + flags.error == 0) else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("simulator")
    parser.add_argument("--before", nargs=2, metavar=("KILN", "SIMULATOR"))
    parser.add_argument("--runners", default="1,10,100,1000")
    parser.add_argument("--builders", type=int, default=200)
    parser.add_argument("--policy", default="random", help="random, sketch, or both as random,sketch")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--patience", type=float, default=300, help="seconds until all jobs must have results")
    parser.add_argument("--begin-anyway", action="store_true", help="begin the window also where some have none")
    parser.add_argument("--jobs", type=int, default=0, help="0: one for each 16 runners")
    parser.add_argument("--tasks", type=int, default=16, help="of each job")
    parser.add_argument("--watched", default="all", help="jobs that somebody watches: all, or a number")
    parser.add_argument("--build", default="0", help="time of a build: 0, P50:P90 in seconds, or a file")
    parser.add_argument("--run", default="0", help="time of a run, in the same form")
    parser.add_argument("--unavailable", type=float, default=0)
    parser.add_argument("--hang", type=float, default=0)
    parser.add_argument("--error", type=float, default=0)
    parser.add_argument("--artifact-bytes", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exact", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path)
    flags = parser.parse_args()
    flags.runners = [int(count) for count in flags.runners.split(",")]
    flags.policy = flags.policy.split(",")
    return flags


def main():
    flags = parse()
    for name in [name for name in os.environ if name.startswith("KILN_")]:
        del os.environ[name]
    now = (flags.kiln, flags.simulator)
    if flags.exact:
        return check_counts(flags, now)
    sides = {"before": tuple(flags.before), "now": now} if flags.before else {"now": now}
    if flags.out:
        flags.out.mkdir(parents=True, exist_ok=True)
    compare(flags, sides)
    return 0


if __name__ == "__main__":
    sys.exit(main())
