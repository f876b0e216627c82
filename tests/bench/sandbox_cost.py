#!/usr/bin/env python3
"""What namespaces cost a farm that measures small kernels of a CPU.

usage: sandbox_cost.py KILN [--pairs 8] [--trials 150]

Two farms run on loopback as root of a user namespace. In the namespace of one of them no namespace can be
made, so that the children of its builder and runner have seccomp, Landlock and limits alone; those of
the other one have all of the sandbox. In turns, and in the other order each time, each gets a job of
--trials random candidates of matmul 64,64,64, each measured in 2 ms. Prints trials a second, the ratio
(geometric mean over the pairs) and its 95% interval. The exit status is 1 where it lies below 0.95
entirely. Skips itself with a sentence where the kernel gives no namespaces.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from fair_share import Farm
from short_budgets import interval

GOAL = 0.95
INSIDE = ["unshare", "--user", "--map-root-user"]
FORBID = "for kind in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$0\" \"$@\""


class Side:
    def __init__(self, kiln, folder, with_namespaces):
        self.kiln, self.with_namespaces = kiln, with_namespaces
        folder.mkdir()
        # The farm's programs are started by this script, which enters the namespace first.
        program = folder / "kiln"
        words = [*INSIDE, kiln] if with_namespaces else [*INSIDE, "/bin/sh", "-c", FORBID, kiln]
        quoted = " ".join("'" + word + "'" for word in words)
        program.write_text(f"#!/bin/sh\nexec {quoted} \"$@\"\n")
        program.chmod(0o755)
        self.farm = Farm(str(program), folder)

    def start(self):
        tracker = self.farm.start("tracker")
        self.scheduler = self.farm.start("scheduler", "--exclusive-phases", "--tracker", tracker, "--db",
                                         str(self.farm.folder / "kiln.db"))
        self.farm.start("builder", "--jobs", "2", "--tracker", tracker)
        # The builder beside it would make the canary slow.
        self.farm.start("runner", "--canary-seconds", "0", "--tracker", tracker)
        log = "".join((self.farm.folder / f"{name}.log").read_text() for name in ("builder", "runner"))
        has = [("namespaces" in line) for line in re.findall(r"sandbox of [^:]*: (.*)", log)]
        if has != [self.with_namespaces] * 2:
            raise RuntimeError(f"the sandbox is not as it should be:\n{log}")

    def stop(self):
        for name in reversed(list(self.farm.processes)):
            self.farm.stop(name)

    def run(self, *words):
        done = subprocess.run([self.kiln, *words, "--scheduler", self.scheduler], text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def trials(self, count, seed):
        lines = self.run("submit", "matmul", "--args", "64,64,64", "--target", "llvm", "--policy", "sketch.random",
                         "--trials", str(count), "--no-warm-start", "--finalists", "0", "--seed", str(seed),
                         "--repeat", "1", "--min-repeat-ms", "2", "--json")
        job = json.loads(lines.splitlines()[-1])["job"]
        self.run("watch", job)
        found = json.loads(self.run("jobs", job, "--json"))["job"]
        if found["trials_done"] != count:
            raise RuntimeError(f"the job ended after {found['trials_done']} trials, {found['state']}")
        return count / found["elapsed_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--trials", type=int, default=150)
    flags = parser.parse_args()
    kiln = os.path.realpath(flags.kiln)
    for name in [name for name in os.environ if name.startswith("KILN_")]:
        del os.environ[name]
    if subprocess.run([*INSIDE, "true"], capture_output=True).returncode != 0:
        print("skipped: this kernel gives no user namespace to this user")
        return 0
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        both = {name: Side(kiln, pathlib.Path(folder) / name, name == "with") for name in ("with", "without")}
        try:
            for side in both.values():
                side.start()
            for number in range(-1, flags.pairs):
                order = ["with", "without"] if number % 2 == 0 else ["without", "with"]
                done = {way: both[way].trials(flags.trials if number >= 0 else 20, number + 2) for way in order}
                # The first turn starts the children.
                if number >= 0:
                    pairs.append((done["with"], done["without"]))
        finally:
            for side in both.values():
                side.stop()
    ratio, low, high = interval(pairs)
    having, lacking = (statistics.fmean(pair[i] for pair in pairs) for i in (0, 1))
    print("| figure | without namespaces | with | ratio | 95% interval | goal |\n|---|---|---|---|---|---|")
    print(f"| trials a second | {lacking:.1f} | {having:.1f} | {ratio:.3f} | {low:.3f} to {high:.3f} | {GOAL} |")
    return 0 if high >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
