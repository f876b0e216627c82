#!/usr/bin/python3
"""How many trials a second do two builds of Kiln make on a GPU, and what do they find in the same time?

usage: build_pace.py NOW --before BEFORE [--seconds N] [--seeds N] [--only WORD,...] [--target TARGET] [--folder DIR]

Four tasks of float16 are tuned by both builds in turns, each job on a new database and with the same seed, for --seconds
each. Prints for each job the trials a second, the best time after a quarter, a half and all of the seconds, the time after
the final race, and the seconds of a build, of a measurement and of a round's search (their medians). At the end the trials
a second and the best times of NOW over those of BEFORE, as geometric means. --only takes the tasks whose names contain one
of the words.

On an H200:  build_pace.py bazel-bin/client/cli/kiln --before kiln_before --seconds 60
"""
import argparse
import json
import math
import os
import sqlite3
import statistics
import subprocess
import sys

TASKS = {
    "matmul": ["matmul", "--args", "1024,1024,1024"],
    "conv2d": ["conv2d_nhwc", "--args", "1,56,56,256,256,3,3,1,1", "--epilogue", "bias,relu"],
    "dense": ["dense", "--args", "128,3072,768", "--epilogue", "bias"],
    "attention": ["attention", "--args", "16,2048,64,causal=1"],
}


def best_after(rounds, seconds):
    known = [best for elapsed, _, best in rounds if elapsed <= seconds and best is not None]
    return min(known) if known else None


def rounds_of(connection):
    """Triples of seconds, trials and the best time after a round."""
    rows = connection.execute("SELECT elapsed_s, trials, best_s FROM rounds ORDER BY number").fetchall()
    parsed = [(elapsed, trials, json.loads(best)) for elapsed, trials, best in rows]
    return [(elapsed, trials, best[0] if best else None) for elapsed, trials, best in parsed if elapsed is not None]


def tune(kiln, words, seed, flags):
    database = os.path.join(flags.folder, "job.db")
    for path in (database, database + "-wal", database + "-shm"):
        if os.path.exists(path):
            os.remove(path)
    command = [kiln, "tune", *words, "--dtype", "float16", "--target", flags.target, "--minutes", str(flags.seconds / 60),
               "--trials", "1000000", "--seed", str(seed), "--db", database, "--quiet"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"build_pace: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    connection = sqlite3.connect(database)
    rounds = rounds_of(connection)
    built = [s for s, in connection.execute("SELECT build_s FROM records WHERE build_s > 0")]
    ran = [s for s, in connection.execute("SELECT run_s FROM records WHERE run_s > 0")]
    searched = [s for s, in connection.execute("SELECT search_s FROM rounds WHERE search_s > 0")]
    final_s, = connection.execute("SELECT MIN(mean_cost_s) FROM records WHERE error = 0 AND remeasurements > 0").fetchone()
    found_s, = connection.execute("SELECT MIN(mean_cost_s) FROM records WHERE error = 0").fetchone()
    trials, = connection.execute("SELECT COUNT(*) FROM records").fetchone()
    connection.close()
    return {"pace": trials / flags.seconds, "final_s": final_s or found_s, "build_s": built, "run_s": ran,
            "search_s": searched, "best_s": [best_after(rounds, flags.seconds * share) for share in (0.25, 0.5, 1)]}


def microseconds(seconds):
    return "-" if seconds is None else f"{1e6 * seconds:.3f}"


def median_of(values):
    return f"{statistics.median(values):.3f}" if values else "-"


def line_of(name, seed, which, job):
    mean = f"{statistics.fmean(job['build_s']):.3f}" if job["build_s"] else "-"
    cells = [name, str(seed), which, f"{job['pace']:.1f}", *map(microseconds, job["best_s"]), microseconds(job["final_s"]),
             f"{median_of(job['build_s'])}, {mean}", median_of(job["run_s"]), median_of(job["search_s"])]
    return "| " + " | ".join(cells) + " |"


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("now")
    parser.add_argument("--before", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--target", default="cuda -arch=sm_90")
    parser.add_argument("--folder", default="build-pace")
    flags = parser.parse_args()
    os.makedirs(flags.folder, exist_ok=True)
    names = [name for name in TASKS if any(word in name for word in flags.only.split(","))]
    if not names:
        parser.error(f"--only is '{flags.only}', expected words out of {', '.join(TASKS)}")
    quarter, half = flags.seconds / 4, flags.seconds / 2
    print(f"| task | seed | tree | trials a second | after {quarter:g} s, us | {half:g} s | {flags.seconds:g} s | final race | "
          "build, s: p50, mean | run, s | search, s |\n|" + "---|" * 11, flush=True)
    paces, times = [], {share: [] for share in (0, 1, 2, "final")}
    for number, (seed, name) in enumerate((seed, name) for seed in range(1, flags.seeds + 1) for name in names):
        jobs = {}
        for which in ("now", "before") if number % 2 else ("before", "now"):
            jobs[which] = tune(getattr(flags, which), TASKS[name], seed, flags)
            print(line_of(name, seed, which, jobs[which]), flush=True)
        now, before = jobs["now"], jobs["before"]
        paces.append(now["pace"] / before["pace"])
        pairs = {**{i: (now["best_s"][i], before["best_s"][i]) for i in range(3)}, "final": (now["final_s"], before["final_s"])}
        for share, (a, b) in pairs.items():
            if a and b:
                times[share].append(a / b)
    print(f"\nNOW over BEFORE, geometric means: trials a second {geometric_mean(paces):.3f}")
    for share, ratios in times.items():
        what = "after the final race" if share == "final" else f"after {flags.seconds * (0.25, 0.5, 1)[share]:g} s"
        print(f"time of the best program {what}: " + (f"{geometric_mean(ratios):.3f}" if ratios else "-"))


if __name__ == "__main__":
    main()
