#!/usr/bin/python3
"""Schedules that are chosen without measuring against tuned ones, over the operators.

usage: heuristic_schedules.py KILN [--target TARGET] [--trials N] [--rounds N] [--only WORD] [--seed N]
                              [--part I/N] [--folder DIR] [--json FILE]
       heuristic_schedules.py --table FILE...

For each workload: `KILN schedule` chooses a schedule and compiles it, `KILN tune` measures N trials of the default
search, and `KILN bench` runs both programs in turns, --rounds times each; the time of a program is the smallest of its
medians. Prints a Markdown table: the time of both, the speed of the first in units of the second, the CPU time that choosing
took on one core (sketches, pool, lowering, features and ranking), and whether the share is as large as nine in ten
are, by what `KILN schedule` says; geometric means, and the quantiles for each class of operators, at the end. Databases and programs are in
--folder and are used again: a second run tunes nothing. --part 1/4 is every fourth workload from the second on, for one of
several GPUs; --table prints the rows of such runs as one.

A GPU needs a machine with one:  heuristic_schedules.py bazel-bin/client/cli/kiln --target "cuda -arch=sm_90" --trials 512
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys

HEADING = ("| workload | chosen, us | tuned, us | share of the tuned speed | choosing, ms | as expected |\n"
           "|---|---|---|---|---|---|")
# Operator, arguments, epilogue, dtype.
WORKLOADS = [
    ("conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu"),
    ("conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,56,56,64,64,1,1,1,0", "bias,relu"),
    ("conv2d_nhwc", "1,56,56,128,64,3,3,2,1", "bias,relu"),
    ("conv2d_nhwc", "1,56,56,128,64,1,1,2,0", "bias,relu"),
    ("conv2d_nhwc", "1,28,28,128,128,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,28,28,256,128,3,3,2,1", "bias,relu"),
    ("conv2d_nhwc", "1,14,14,256,256,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,14,14,512,256,1,1,2,0", "bias,relu"),
    ("conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "3,7,13,17,5,3,3,1,1", "bias,relu"),
    ("conv2d_nchw", "1,28,28,128,128,3,3,1,1", "bias,relu"),
    ("conv2d_nchw", "3,17,11,23,7,3,3,2,1", ""),
    ("conv2d_nhwc", "1,28,28,64,64,3,3,1,1,groups=4", ""),
    ("conv1d_ncw", "1,256,64,64,3,1,1", ""),
    ("conv3d_ncdhw", "1,8,28,28,32,32,3,3,3,1,1", ""),
    ("conv2d_transpose_nchw", "1,14,14,64,128,4,4,2,1", ""),
    ("conv2d_winograd_nhwc", "1,14,14,256,256", ""),
    ("depthwise_conv2d_nhwc", "1,56,56,128,3,3,1,1", ""),
    ("depthwise_conv2d_nchw", "1,56,56,128,3,3,1,1", ""),
    ("matmul", "512,512,512", ""),
    ("matmul", "1024,1024,1024", ""),
    ("matmul", "127,255,63", "relu"),
    ("dense", "1,1000,512", "bias"),
    ("dense", "128,768,768", ""),
    ("batch_matmul", "12,128,128,64", ""),
    ("conv2d_nhwc", "1,14,14,64,64,3,3,1,1", "bias,relu", "bfloat16"),
    ("dense", "64,256,512", "bias,relu", "float16"),
    ("dense", "64,256,512", "", "int8"),
    ("softmax", "512,1000", ""),
    ("softmax", "7,1009", ""),
    ("layer_norm", "512,1024", ""),
    ("rms_norm", "512,1024", ""),
    ("sum", "512,4096,axis=1", ""),
    ("sum", "13,31,97,axis=0,axis=2", ""),
    ("mean", "1024,512,axis=0", ""),
    ("argmax", "128,1000,axis=1", ""),
    ("max_pool2d_nhwc", "1,112,112,64,3,3,2,1", ""),
    ("max_pool2d_nchw", "1,112,112,64,3,3,2,1", ""),
    ("avg_pool2d_nhwc", "1,28,28,128,2,2,2,0", ""),
    ("global_avg_pool2d_nhwc", "1,7,7,512", ""),
    ("adaptive_avg_pool2d_nchw", "1,28,28,128,4,4", ""),
    ("batch_norm", "1,64,56,56", ""),
    ("relu", "1024,1024", ""),
    ("gelu", "512,1024", ""),
    ("add", "64,56,56,broadcast=0", ""),
    ("transpose", "1024,768", ""),
    ("pad", "64,56,56", ""),
    ("concat", "64,256,with=64", ""),
    ("resize_bilinear_nhwc", "1,28,28,64,56,56", ""),
]


def stop(message):
    sys.exit(f"heuristic_schedules: {message}")


def run(command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Workload:
    def __init__(self, op, args, epilogue="", dtype="float32"):
        self.name = f"{op} {args}" + (f" {dtype}" if dtype != "float32" else "")
        self.name += "".join(f" + {name}" for name in epilogue.split(",") if name)
        self.words = [op, "--args", args, "--dtype", dtype]
        if epilogue:
            self.words += ["--epilogue", epilogue]
        self.file = re.sub(r"[^a-z0-9]+", "_", self.name)


def median_s(kiln, path):
    return json.loads(run([kiln, "bench", path, "--repeat", "5", "--min-repeat-ms", "20", "--json"]))["median_s"]


def measure(workload, flags):
    """The row of one workload."""
    place = os.path.join(flags.folder, workload.file)
    chosen = json.loads(run([flags.kiln, "schedule", *workload.words, "--target", flags.target, "--seed",
                             str(flags.seed), "-o", place + ".chosen.kiln", "--json"]))
    database = place + ".db"
    if not os.path.exists(database):
        run([flags.kiln, "tune", *workload.words, "--target", flags.target, "--trials", str(flags.trials), "--seed",
             str(flags.seed), "--db", database, "--quiet"])
    run([flags.kiln, "compile", *workload.words, "--target", flags.target, "--db", database, "--strict", "-o",
         place + ".tuned.kiln"])
    times = {"chosen": [], "tuned": []}
    for _ in range(flags.rounds):
        for way, readings in times.items():
            readings.append(median_s(flags.kiln, f"{place}.{way}.kiln"))
    chosen_s, tuned_s = min(times["chosen"]), min(times["tuned"])
    share = tuned_s / chosen_s
    expected = chosen["share_of_tuned_speed"]
    within = None if expected is None else share >= expected["low"]
    return {"workload": workload.name, "class": chosen["class"], "chosen_s": chosen_s, "tuned_s": tuned_s,
            "share": share, "choosing_s": chosen["cpu_s"], "within": within, "origin": chosen["origin"]}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def print_row(row):
    within = {None: "-", True: "yes", False: "no"}[row["within"]]
    print(f"| {row['workload']} | {1e6 * row['chosen_s']:.1f} | {1e6 * row['tuned_s']:.1f} | {row['share']:.2f} "
          f"| {1e3 * row['choosing_s']:.0f} | {within} |", flush=True)


def print_ends(rows):
    print(f"\ngeometric mean of {len(rows)}: {geometric_mean([row['share'] for row in rows]):.3f} of the tuned speed, "
          f"chosen in {1e3 * geometric_mean([row['choosing_s'] for row in rows]):.1f} ms "
          f"(at most {1e3 * max(row['choosing_s'] for row in rows):.0f})")
    said = [row["within"] for row in rows if row["within"] is not None]
    if said:
        print(f"as large as was to be expected of nine in ten: {sum(said)} of {len(said)}")
    for kind in sorted({row["class"] for row in rows}):
        shares = [row["share"] for row in rows if row["class"] == kind]
        print(f"{kind}: {len(shares)} workloads, shares {quantile(shares, 0.1):.2f} (a tenth is below), "
              f"{statistics.median(shares):.2f} (median), {quantile(shares, 0.9):.2f} (a tenth is above)")


def print_table(files):
    """The rows of several runs, in the order of the workloads."""
    rows = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows += json.load(file)
    names = [Workload(*row).name for row in WORKLOADS]
    print(HEADING)
    for row in sorted(rows, key=lambda row: names.index(row["workload"])):
        print_row(row)
    print_ends(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln", nargs="?")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="workloads whose name has this")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th workload from I on")
    parser.add_argument("--folder", default="heuristic-schedules")
    parser.add_argument("--json", help="a file for the rows")
    parser.add_argument("--table", nargs="+", help="files of rows")
    flags = parser.parse_args()
    if flags.table:
        return print_table(flags.table)
    if not flags.kiln:
        stop("which KILN is to choose and to tune?")
    os.makedirs(flags.folder, exist_ok=True)
    first, step = map(int, flags.part.split("/"))
    workloads = [workload for workload in (Workload(*row) for row in WORKLOADS) if flags.only in workload.name][first::step]
    if not workloads:
        stop(f"no workload has '{flags.only}'")
    print(HEADING)
    rows = []
    for workload in workloads:
        rows.append(measure(workload, flags))
        print_row(rows[-1])
        if flags.json:
            with open(flags.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    print_ends(rows)


if __name__ == "__main__":
    main()
