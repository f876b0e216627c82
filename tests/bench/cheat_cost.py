#!/usr/bin/python3
"""What the checks of measured programs cost: trials per second of two programs kiln, in turns.

usage: cheat_cost.py KILN_BEFORE KILN_NOW [--target llvm|cuda] [--trials N] [--rounds N] [--limit PERCENT]

Each round runs the same search once with each program, the order changing from round to round: random schedules of a
small matrix product, the same seed for both, so that both measure the same candidates. Prints for each round the trials
per second between the first trial and the last, and at the end the difference and its 95% interval, from the rounds'
ratios. Ends with 1 if even the favourable end of the interval is a loss of more than the limit (5%).
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

# Two-sided 95% quantiles of Student's distribution, by degrees of freedom.
STUDENT = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13]


def trials_per_second(kiln, arguments, seed):
    with tempfile.TemporaryDirectory() as folder:
        words = [kiln, "tune", "matmul", "--args", arguments.args, "--target", arguments.target, "--policy",
                 "sketch.random", "--trials", str(arguments.trials), "--seed", str(seed), "--no-warm-start",
                 "--finalists", "0", "--idle-ms", "0", "--json", "--db", os.path.join(folder, "cost.db")]
        times = []
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("{") and json.loads(line)["event"] == "trial":
                    times.append(time.monotonic())
        if process.returncode != 0 or len(times) < arguments.trials // 2:
            sys.exit(f"cheat_cost.py: {' '.join(words)} ended with {process.returncode} after {len(times)} trials")
    return (len(times) - 1) / (times[-1] - times[0])


def interval(ratios):
    """Returns the mean of the ratios (geometric) and the ends of its 95% interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    half = STUDENT[min(len(logs) - 1, len(STUDENT) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--args", default="64,64,64")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--limit", type=float, default=5, help="percent")
    arguments = parser.parse_args()
    print("| round | before, trials/s | now, trials/s | now / before |\n|---|---|---|---|")
    ratios = []
    for number in range(arguments.rounds):
        order = [arguments.before, arguments.now] if number % 2 == 0 else [arguments.now, arguments.before]
        rates = [trials_per_second(kiln, arguments, number + 1) for kiln in order]
        before, now = rates if number % 2 == 0 else reversed(rates)
        ratios.append(now / before)
        print(f"| {number + 1} | {before:.2f} | {now:.2f} | {now / before:.3f} |", flush=True)
    mean, low, high = interval(ratios)
    print(f"\n{arguments.target}: {100 * (mean - 1):+.1f}% trials per second, 95% interval {100 * (low - 1):+.1f}% to "
          f"{100 * (high - 1):+.1f}%, {len(ratios)} rounds of {arguments.trials} trials")
    if high < 1 - arguments.limit / 100:
        sys.exit(f"cheat_cost.py: more than {arguments.limit:g}% fewer trials per second")


if __name__ == "__main__":
    main()
