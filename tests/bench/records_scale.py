#!/usr/bin/python3
"""How fast a large log is imported, and what the commands that look at many records then take.

usage: records_scale.py KILN --db DB [--records N] [--part N] [--workloads N] [--shuffled] [--no-queries]

Makes lines of a measure log as auto_scheduler writes them (schedules of 20 to 44 steps, every twentieth failed) and
pipes them into `KILN records import -`, --part at a time, until DB has --records. A DB that has some already is filled
up. The log is that of many networks tuned one after another: 25 tasks on one target, 64 trials of a task in turn, 25,000
trials. There are 1,000 workload keys on two targets, so a task comes back after 80 networks. With --shuffled each line
is of a task drawn by chance. Of each part: the records a second, the time of a core that each took,
the peak of the process's resident memory (ru_maxrss), the size of the database and the load of the machine. Then times a few commands on it, each a process of its own, the best of three.
"""
import argparse
import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import time

TARGETS = ["cuda -keys=cuda,gpu -arch=sm_90 -max_num_threads=1024 -thread_warp_size=32", "llvm -keys=cpu -mcpu=znver4"]


def key_of(workload):
    digest = hashlib.md5(str(workload).encode()).hexdigest()
    return f'[\\"{digest}\\", [1, 56, 56, 64], [3, 3, 64, 64], [1, 56, 56, {workload + 1}]]'


def steps_of(rng):
    steps = []
    for stage in range(rng.randrange(5, 12)):
        steps += [
            f'["SP", {stage}, 0, 56, [{rng.randrange(1, 56)}, {rng.randrange(1, 56)}, 1, 1], 1]',
            f'["RE", {stage}, [0, 5, 10, 15, 1, 6, 11, 16, 2, 7, 12, 17, 20, 21, 3, 8, 13, 18, 22, 4, 9, 14, 19]]',
            f'["FU", {stage}, [0, 1, 2, 3]]', f'["AN", {stage}, 0, {rng.randrange(1, 9)}]'
        ]
    return ", ".join(steps)


class Lines:
    """Line `number` of the log, for numbers in turn."""

    def __init__(self, workloads, shuffled):
        self.rng, self.shuffled = random.Random(1), shuffled
        self.heads = [
            f'{{"i": [["{key_of(w)}", "{target}", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "", 0, []], [[], ['
            for target in TARGETS for w in range(workloads)
        ]
        self.steps = [steps_of(self.rng) for _ in range(2000)]

    def line(self, number):
        draw = self.rng.getrandbits(62)
        network, task = number // 25000, number // 64 % 25
        head = self.heads[(draw if self.shuffled else 25 * network + task) % len(self.heads)]
        steps = self.steps[(draw >> 16) % len(self.steps)]
        failed = (draw >> 32) % 20 == 0
        cost = "1e+10" if failed else f"{1e-6 * (1000 + (draw >> 36) % 1000000):.6g}"
        return f'{head}{steps}]]], "r": [[{cost}], {4 if failed else 0}, 0.95, {1600000000 + number}], "v": "v0.6"}}\n'


def run(command, **options):
    begin = time.monotonic()
    process = subprocess.Popen(command, **options)
    return process, begin


def wait(process, begin, command):
    """Seconds, peak bytes and seconds of a core of a process that must succeed."""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    if status != 0:
        sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def bytes_of(db):
    return sum(os.path.getsize(path) for path in (db, db + "-wal") if os.path.exists(path))


def records_of(db):
    if not os.path.exists(db):
        return 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()[0]


def fill(kiln, db, records, part, lines):
    have = records_of(db)
    lines.rng.seed(have + 1)
    print(f"{'records':>12}{'a second':>10}{'us of a core':>14}{'peak MB':>9}{'database GB':>13}{'load':>7}", flush=True)
    while have < records:
        count = min(part, records - have)
        command = [kiln, "records", "import", "-", "--db", db]
        process, begin = run(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        chunk = []
        for number in range(have, have + count):
            chunk.append(lines.line(number))
            if len(chunk) == 500:
                process.stdin.write("".join(chunk).encode())
                chunk.clear()
        process.stdin.write("".join(chunk).encode())
        process.stdin.close()
        seconds, peak, core_s = wait(process, begin, command)
        have += count
        print(
            f"{have:>12,}{count / seconds:>10,.0f}{1e6 * core_s / count:>14.1f}{peak / 1e6:>9.0f}"
            f"{bytes_of(db) / 1e9:>13.2f}{os.getloadavg()[0]:>7.1f}", flush=True)


def ask(kiln, db):
    key = key_of(1).replace('\\"', '"')
    commands = {
        "kiln --version": ["--version"],
        "best KEY": ["best", key, "--db", db],
        "records list --workload KEY --top 10": ["records", "list", "--workload", key, "--top", "10", "--db", db],
        "records list --top 10": ["records", "list", "--top", "10", "--db", db],
        "records stats": ["records", "stats", "--db", db],
        "records export": ["records", "export", "--db", db],
        "records distill": ["records", "distill", "--db", db],
    }
    print(f"\n{'command, as a process':<42}{'seconds':>9}{'peak MB':>9}", flush=True)
    for name, words in commands.items():
        best = (float("inf"), 0, 0)
        for _ in range(3):
            process, begin = run([kiln, *words], stdout=subprocess.DEVNULL)
            best = min(best, wait(process, begin, [kiln, *words]))
            if best[0] > 20:
                break
        print(f"{name:<42}{best[0]:>9.3f}{best[1] / 1e6:>9.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--db", required=True)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--part", type=int, default=1_000_000)
    parser.add_argument("--workloads", type=int, default=1000)
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--no-queries", action="store_true")
    arguments = parser.parse_args()
    kiln = os.path.abspath(arguments.kiln)
    fill(kiln, arguments.db, arguments.records, arguments.part, Lines(arguments.workloads, arguments.shuffled))
    if not arguments.no_queries:
        ask(kiln, arguments.db)


if __name__ == "__main__":
    main()
