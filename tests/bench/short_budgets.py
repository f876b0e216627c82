#!/usr/bin/python3
"""Is a program ever slower after a little tuning than without any?

usage: short_budgets.py KILN [--target TARGET] [--minutes N] [--only WORD] [--part I/N] [--budgets LIST]
                        [--rounds N] [--seed N] [--folder DIR] [--json FILE] [--overlap]

For 20 operators and 5 networks, and for each budget, `KILN tune` runs on a new database, `KILN compile` makes a program
with it and another one with an empty database, and `KILN bench` runs both in turns. A budget is a number of trials; `half`
as many trials as the network has tasks, rounded down (networks alone); or `stop`: a job of 200 trials that gets Ctrl-C after
a random time, three of them. The ratio is that of the tuned program's time to the untuned one's: its geometric mean over the
pairs and the 95% interval of that. What is promised holds where the interval has 1.02 or less in it. A pair is repeated, up to
--rounds times, until that is known: at least three times.

Prints a Markdown table, a row for each subject and budget, and what was not measured where --minutes are over (0: no limit);
subjects and budgets come in an order that --seed shuffles, so that a short run is a sample. --part 1/4 is every fourth of them
from the second on, for one of several machines. With --overlap a program is compiled while the one before it is measured:
this is for a GPU, whose measurements do not need the processors. The exit status is 1 where the promise is broken.

On two CPU cores:  short_budgets.py bazel-bin/client/cli/kiln --target llvm --minutes 30
On an H200:        short_budgets.py bazel-bin/client/cli/kiln --target "cuda -arch=sm_90" --minutes 3.5
"""
import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

PROMISE = 1.02
LEAST_ROUNDS = 3
STOPPED_TRIALS = 200
# Two-sided 95% points of Student's t, by degrees of freedom.
STUDENT = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13]
OPERATORS = [
    ("conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,28,28,128,128,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,14,14,256,256,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"),
    ("conv2d_nhwc", "1,56,56,64,64,1,1,1,0", "bias,relu"),
    ("conv2d_nchw", "1,28,28,128,128,3,3,1,1", ""),
    ("depthwise_conv2d_nhwc", "1,56,56,128,3,3,1,1", ""),
    ("conv2d_transpose_nchw", "1,14,14,64,128,4,4,2,1", ""),
    ("matmul", "512,512,512", ""),
    ("matmul", "127,255,63", "relu"),
    ("dense", "1,1000,512", "bias"),
    ("dense", "128,768,768", ""),
    ("batch_matmul", "12,128,128,64", ""),
    ("softmax", "512,1000", ""),
    ("layer_norm", "512,1024", ""),
    ("sum", "512,4096,axis=1", ""),
    ("max_pool2d_nhwc", "1,112,112,64,3,3,2,1", ""),
    ("gelu", "512,1024", ""),
    ("transpose", "1024,768", ""),
    ("add", "64,56,56,broadcast=0", ""),
]
NETWORKS = ["resnet-18", "mobilenet", "squeezenet_v1.1", "mlp", "gpt2-small-decode"]


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def run(command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Subject:
    def __init__(self, name, words, is_network):
        self.name, self.words, self.is_network = name, words, is_network
        self.file = re.sub(r"[^a-z0-9]+", "_", name)


def subjects():
    found = []
    for op, args, epilogue in OPERATORS:
        words = [op, "--args", args] + (["--epilogue", epilogue] if epilogue else [])
        found.append(Subject(f"{op} {args}" + "".join(f" + {e}" for e in epilogue.split(",") if e), words, False))
    return found + [Subject(name, [f"network:{name}"], True) for name in NETWORKS]


def budgets_of(subject, names):
    return [name for name in names if name != "half" or subject.is_network]


class Bench:
    def __init__(self, flags):
        self.flags = flags
        self.untuned = {}

    def place(self, subject, name):
        return os.path.join(self.flags.folder, f"{subject.file}.{name}")

    def compile(self, subject, database, path):
        run([self.flags.kiln, "compile", *subject.words, "--target", self.flags.target, "--db", database, "-o", path])
        return path

    def untuned_program(self, subject):
        if subject.file not in self.untuned:
            self.untuned[subject.file] = self.compile(subject, self.place(subject, "none.db"),
                                                      self.place(subject, "untuned.kiln"))
        return self.untuned[subject.file]

    def trials_of(self, subject, budget):
        if budget.startswith("stop"):
            return STOPPED_TRIALS
        if budget == "half":
            tasks = run([self.flags.kiln, "tasks", *subject.words, "--target", self.flags.target, "--json"])
            return max(1, len(tasks.splitlines()) // 2)
        return int(budget)

    def tune(self, subject, budget, database, generator):
        """What was done, for people."""
        trials = self.trials_of(subject, budget)
        if trials == 0:
            return "0 trials"
        command = [self.flags.kiln, "tune", *subject.words, "--target", self.flags.target, "--trials", str(trials), "--seed",
                   str(generator.randrange(1, 1000)), "--db", database, "--quiet"]
        if not budget.startswith("stop"):
            run(command)
            return f"{trials} trials"
        seconds = generator.uniform(0.5, self.flags.stop_s)
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            job.wait(seconds)
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGINT)
            job.wait()
        return f"Ctrl-C after {seconds:.1f} s"

    def median_s(self, path):
        return json.loads(run([self.flags.kiln, "bench", path, "--repeat", "5", "--min-repeat-ms",
                               str(self.flags.reading_ms), "--json"]))["median_s"]

    def prepare(self, pool, subject, budget):
        """Tunes now. The programs are made by `pool`: returns what was done, and the programs to come."""
        generator = random.Random(f"{self.flags.seed} {subject.name} {budget}")
        database = self.place(subject, f"{budget}.db")
        for path in [database, database + "-wal", database + "-shm"]:
            if os.path.exists(path):
                os.remove(path)
        done = self.tune(subject, budget, database, generator)

        def programs():
            return {"tuned": self.compile(subject, database, self.place(subject, f"{budget}.kiln")),
                    "untuned": self.untuned_program(subject)}
        return subject, budget, done, pool.submit(programs)

    def measure(self, subject, budget, done, programs):
        pairs = []
        for number in range(self.flags.rounds):
            order = ["tuned", "untuned"] if number % 2 == 0 else ["untuned", "tuned"]
            times = {way: self.median_s(programs[way]) for way in order}
            pairs.append((times["tuned"], times["untuned"]))
            if number + 1 >= LEAST_ROUNDS and not needs_more(pairs):
                break
        ratio, low, high = interval(pairs)
        return {"subject": subject.name, "budget": budget, "done": done, "untuned_s": statistics.median(p[1] for p in pairs),
                "tuned_s": statistics.median(p[0] for p in pairs), "ratio": ratio, "low": low, "high": high,
                "pairs": len(pairs), "holds": low <= PROMISE}


def interval(pairs):
    """Geometric mean of the ratios and its 95% interval, which one pair leaves open."""
    logs = [math.log(tuned / untuned) for tuned, untuned in pairs]
    mean = statistics.fmean(logs)
    if len(logs) == 1:
        return math.exp(mean), 0.0, math.inf
    half = STUDENT[min(len(logs) - 1, len(STUDENT) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def needs_more(pairs):
    """Is the mean beyond the promise, or the interval too wide to say?"""
    ratio, low, high = interval(pairs)
    return ratio > PROMISE or (high > 1.2 and low <= PROMISE)


def print_row(row):
    print(f"| {row['subject']} | {row['done']} | {1e6 * row['untuned_s']:.1f} | {1e6 * row['tuned_s']:.1f} "
          f"| {row['ratio']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['pairs']} "
          f"| {'yes' if row['holds'] else 'NO'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--budgets", default="0,1,8,64,half,stop1,stop2,stop3")
    parser.add_argument("--stop-s", type=float, default=10, help="Ctrl-C comes within so many seconds")
    parser.add_argument("--reading-ms", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="subjects whose name has this")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th from I on")
    parser.add_argument("--folder", default="short-budgets")
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--json", help="a file for the rows")
    flags = parser.parse_args()
    end_s = time.monotonic() + 60 * flags.minutes if flags.minutes > 0 else math.inf
    os.makedirs(flags.folder, exist_ok=True)
    if not shutil.which(flags.kiln):
        stop(f"there is no program {flags.kiln}")
    work = [(subject, budget) for subject in subjects() if flags.only in subject.name
            for budget in budgets_of(subject, flags.budgets.split(","))]
    random.Random(flags.seed).shuffle(work)
    first, step = map(int, flags.part.split("/"))
    work = work[first::step]
    print(f"seed {flags.seed}, {len(work)} pairs of programs, target {flags.target}\n")
    print("| subject | tuned by | untuned, us | tuned, us | ratio | 95% | pairs | at most 1.02 |\n|---|---|---|---|---|---|---|---|")
    bench, rows, waiting = Bench(flags), [], []

    def measure_first():
        subject, budget, done, programs = waiting.pop(0)
        rows.append(bench.measure(subject, budget, done, programs.result()))
        print_row(rows[-1])
        if flags.json:
            with open(flags.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)

    # One thread makes programs, one after another.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        while work and time.monotonic() < end_s:
            waiting.append(bench.prepare(pool, *work.pop(0)))
            if len(waiting) > (1 if flags.overlap else 0):
                measure_first()
        while waiting:
            measure_first()
    broken = [row for row in rows if not row["holds"]]
    print(f"\n{len(rows) - len(broken)} of {len(rows)} hold; {len(work)} were not measured")
    if rows:
        print(f"geometric mean of the ratios {math.exp(statistics.fmean(math.log(row['ratio']) for row in rows)):.3f}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
