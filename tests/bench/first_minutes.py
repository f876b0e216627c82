#!/usr/bin/python3
"""What a network's job knows and has after its first seconds.

usage: first_minutes.py KILN [NETWORK] [--target TARGET] [--minutes N] [--seed N] [--folder DIR]

Runs `KILN tune network:NETWORK --minutes N` on a new database and prints when its total latency was first estimated, when all
tasks had a result, and a Markdown table of the total latency after some seconds: as measured, and in units of the final one.

On an H200:  first_minutes.py bazel-bin/client/cli/kiln resnet-18 --target "cuda -arch=sm_90" --minutes 3
"""
import argparse
import os
import subprocess
import sys
import time

PLACES_S = [5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300]


def rounds_of(path):
    """Pairs of seconds and milliseconds, those of rounds before which a task had no result left out."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.rstrip("\n").split("\t")
            fields = dict(zip(words[0::2], words[1::2]))
            if fields.get("EstimatedLatency(ms)", "N/A") != "N/A":
                found.append((float(fields["ElapsedTime(s)"]), float(fields["EstimatedLatency(ms)"])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("network", nargs="?", default="resnet-18")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default="first-minutes")
    flags = parser.parse_args()
    os.makedirs(flags.folder, exist_ok=True)
    database, log = os.path.join(flags.folder, "new.db"), os.path.join(flags.folder, "latency.tsv")
    for path in [database, database + "-wal", database + "-shm", log]:
        if os.path.exists(path):
            os.remove(path)
    command = [flags.kiln, "tune", f"network:{flags.network}", "--target", flags.target, "--minutes", str(flags.minutes), "--seed",
               str(flags.seed), "--db", database, "--log-file", log]
    begin_s = time.monotonic()
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in job.stdout:
        if "latency about " in line or "noisy" in line:
            print(f"after {time.monotonic() - begin_s:.1f} s: {line.strip()}", flush=True)
    if job.wait() != 0:
        sys.exit(f"first_minutes: {' '.join(command)} failed")
    rounds = rounds_of(log)
    if not rounds:
        sys.exit("first_minutes: a task never had a result")
    final_ms = rounds[-1][1]
    print(f"all tasks had a result after {rounds[0][0]:.1f} s; final total latency {final_ms:.4g} ms, seed {flags.seed}\n")
    print("| after, s | total latency, ms | of the final one |\n|---|---|---|")
    for place_s in PLACES_S:
        known = [ms for seconds, ms in rounds if seconds <= place_s]
        if place_s <= 60 * flags.minutes:
            print(f"| {place_s} | {known[-1]:.4g} | {known[-1] / final_ms:.2f} |" if known else f"| {place_s} | - | - |")


if __name__ == "__main__":
    main()
