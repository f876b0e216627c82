#!/usr/bin/python3
"""Do two builds of Kiln make equally fast programs of the same records?

usage: same_records.py KILN BEFORE [--target TARGET] [--set NAME,...] [--trials N] [--minutes N] [--rounds N] [--seed N]
                       [--type TYPE] [--part I/N] [--folder DIR] [--json FILE]

Each workload is tuned once, by BEFORE, on a new database. Both builds then compile the best record of a copy of it, and
`KILN bench` runs the two programs in turns. So the search has no part in the result: a row's ratio is that of the time of
KILN's program to that of BEFORE's, its geometric mean over the rounds with the 95% interval, which takes two rounds at
least. Sets: products, layers, memory (values that an operator reads and writes once), attention. Prints a Markdown
table; a record of which a build makes no program is said in its row, and what did not fit --minutes at the end. The
exit status is 1 where an interval lies above 1.01 entirely, or a record makes no program.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time

from short_budgets import interval, run

EPILOGUE = ["--epilogue", "bias,relu"]
SETS = {
    "products": [("matmul", f"{n},{n},{n}", []) for n in (512, 1024, 1536, 2048, 4096)] + [
        ("dense", "128,768,768", EPILOGUE), ("dense", "128,3072,768", EPILOGUE), ("dense", "128,768,3072", EPILOGUE),
        ("dense", "16,4096,4096", []), ("batch_matmul", "12,128,128,64", [])],
    "layers": [("conv2d_nhwc", row, EPILOGUE) for row in (
        "1,224,224,64,3,7,7,2,3", "1,56,56,64,64,3,3,1,1", "1,56,56,64,64,1,1,1,0", "1,56,56,128,64,3,3,2,1",
        "1,56,56,128,64,1,1,2,0", "1,28,28,128,128,3,3,1,1", "1,28,28,256,128,3,3,2,1", "1,28,28,256,128,1,1,2,0",
        "1,14,14,256,256,3,3,1,1", "1,14,14,512,256,3,3,2,1", "1,14,14,512,256,1,1,2,0", "1,7,7,512,512,3,3,1,1")],
    "memory": [(op, args, []) for op, args in (
        ("relu", "4096,1024"), ("relu6", "4096,1024"), ("add", "4096,1024"), ("gelu", "4096,1024"), ("sigmoid", "4096,1024"),
        ("sum", "4096,1024,axis=1"), ("sum", "4096,1024,axis=0"), ("max", "4096,1024,axis=1"), ("max", "4096,1024,axis=0"),
        ("min", "64,512,128,axis=1"), ("argmax", "4096,1024,axis=1"), ("argmin", "1024,4096,axis=0"),
        ("softmax", "4096,1024"), ("softmax", "512,1000"), ("layer_norm", "4096,1024"), ("rms_norm", "4096,1024"),
        ("max_pool2d_nhwc", "1,112,112,64,3,3,2,1"), ("avg_pool2d_nhwc", "1,112,112,64,3,3,2,1"),
        ("global_avg_pool2d_nchw", "32,512,14,14"), ("transpose", "2048,4096"))],
    "attention": [("attention", "16,1024,64", []), ("attention", "8,1024,128,causal=1", [])],
}


def median_s(kiln, path):
    return json.loads(run([kiln, "bench", path, "--repeat", "5", "--min-repeat-ms", "10", "--json"]))["median_s"]


def refusal(kiln, words, database, program):
    """Compiles the record of a database; returns why the build takes none or makes another schedule, or ""."""
    command = [kiln, "compile", *words, "--strict", "--db", database, "-o", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
    return next((line for line in done.stderr.splitlines() if "can't be compiled here" in line), "")


def measure(flags, number, row):
    op, args, more = row
    workload = " ".join([op, args] + more[1:])
    words = [op, "--args", args, *more] + (["--dtype", flags.type] if flags.type else []) + ["--target", flags.target]
    database = os.path.join(flags.folder, f"{number}.db")
    for path in (database, database + "-wal", database + "-shm"):
        if os.path.exists(path):
            os.remove(path)
    run([flags.before, "tune", *words, "--trials", str(flags.trials), "--seed", str(flags.seed), "--db", database, "--quiet"])
    programs = {}
    for name, kiln in (("now", flags.kiln), ("before", flags.before)):
        copy, programs[name] = f"{database}.{name}.db", os.path.join(flags.folder, f"{number}.{name}")
        shutil.copyfile(database, copy)
        why_not = refusal(kiln, words, copy, programs[name])
        if why_not:
            return {"workload": workload, "refused_by": name, "why": why_not.splitlines()[0]}
    pairs = []
    for turn in range(flags.rounds):
        order = ["now", "before"] if turn % 2 == 0 else ["before", "now"]
        times = {name: median_s(flags.kiln, programs[name]) for name in order}
        pairs.append((times["now"], times["before"]))
    ratio, *ends = interval(pairs)
    return {"workload": workload, "before_s": statistics.median(p[1] for p in pairs),
            "now_s": statistics.median(p[0] for p in pairs), "ratio": ratio,
            "interval": ends if len(pairs) > 1 else None}


def line_of(row):
    if "ratio" not in row:
        return f"| {row['workload']} | no program by {row['refused_by']}: {row['why']} | | | |"
    ends = "{:.3f} to {:.3f}".format(*row["interval"]) if row["interval"] else "-"
    return f"| {row['workload']} | {1e6 * row['before_s']:.2f} | {1e6 * row['now_s']:.2f} | {row['ratio']:.3f} | {ends} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("before")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--set", default=",".join(SETS))
    parser.add_argument("--type", default="", help="of the inputs; as the operators have it")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=7, help="1 or more; of one round there is no interval")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="I/N: every N-th from I on")
    parser.add_argument("--folder", default="same-records")
    parser.add_argument("--json", help="a file for the rows")
    flags = parser.parse_args()
    if flags.rounds < 1:
        parser.error(f"--rounds is {flags.rounds}, expected 1 or more")
    end_s = time.monotonic() + 60 * flags.minutes if flags.minutes > 0 else math.inf
    os.makedirs(flags.folder, exist_ok=True)
    first, step = map(int, flags.part.split("/"))
    work = [row for name in flags.set.split(",") for row in SETS[name]][first::step]
    print(f"seed {flags.seed}, {flags.trials} trials, target {flags.target} {flags.type}\n")
    print("| workload | before, us | now, us | now / before | 95% |\n|---|---|---|---|---|")
    rows = []
    while work and time.monotonic() < end_s:
        rows.append(measure(flags, len(rows), work.pop(0)))
        row = rows[-1]
        print(line_of(row), flush=True)
        if flags.json:
            with open(flags.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    timed = [row for row in rows if "ratio" in row]
    refused = len(rows) - len(timed)
    slower = [row for row in timed if row["interval"] and row["interval"][0] > 1.01]
    print(f"\n{len(timed)} measured, {refused} whose record makes no program, {len(work)} not begun; {len(slower)} slower "
          "by more than 1%")
    if timed:
        print(f"geometric mean of the ratios {math.exp(statistics.fmean(math.log(row['ratio']) for row in timed)):.4f}")
    sys.exit(1 if slower or refused else 0)


if __name__ == "__main__":
    main()
