#!/usr/bin/python3
"""Kernels that people wrote, tuned by each tuner, against the best of their whole spaces.

usage: kernel_tuners.py KILN [--kernels NAME,...] [--trials N] [--whole N] [--seeds N] [--wrong N] [--target TARGET]
                        [--folder DIR] [--json FILE]

For each kernel of examples/kernels (matmul, conv2d; matmul_c is for a CPU): the best of the whole space, or of
--whole points at random where it has more; then --trials trials by each tuner, for each of --seeds seeds. Prints a
Markdown table: the best time, as the final race of the job has it; how much of the speed of the best of the whole that
is; after how many trials a reading within 5% of the tuner's own best was there; what failed. Then --wrong trials of the space without its
restrictions about whole tiles: every configuration that leaves a part of the result out has to be refused as a wrong
answer, and no other one; the script fails where that is not so. Databases are in --folder and are used again.

On a GPU, with the bundle's binary:  tests/bench/kernel_tuners.py ./kiln --folder /tmp/kernels
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

TUNERS = ["template.random", "template.grid", "template.genetic", "template.coordinate", "template.xgb"]
KERNELS_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/kernels")


class Kernel:
    """A source, its space, and which configurations leave nothing out."""

    def __init__(self, source, space, edits, whole_tiles):
        self.source = os.path.join(KERNELS_FOLDER, source)
        self.space = os.path.join(KERNELS_FOLDER, space)
        # Edits of the space, for values that leave something out.
        self.edits = edits
        self.whole_tiles = whole_tiles


KERNELS = {
    "matmul": Kernel(
        "matmul.cu", "matmul.toml",
        [("tile_size_x = [1, 2, 4, 8]", "tile_size_x = [1, 2, 3, 5, 8]")],
        lambda p: 2048 % (p["block_size_x"] * p["tile_size_x"]) == 0
        and 2048 % (p["block_size_y"] * p["tile_size_y"]) == 0),
    "conv2d": Kernel(
        "conv2d.cu", "conv2d.toml", [],
        lambda p: 4096 % (p["block_size_x"] * p["tile_size_x"]) == 0
        and 4096 % (p["block_size_y"] * p["tile_size_y"]) == 0),
    "matmul_c": Kernel(
        "matmul.c", "matmul_c.toml", [],
        lambda p: 256 % p["TILE_I"] == 0 and 256 % p["TILE_J"] == 0),
}


def stop(message):
    sys.exit(f"kernel_tuners: {message}")


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        os.makedirs(arguments.folder, exist_ok=True)

    def run(self, *words):
        done = subprocess.run([self.arguments.kiln, *words], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            stop(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def events(self, name, kernel, space, policy, trials, seed):
        """The events of a job, measured now or by an earlier run of this script."""
        path = os.path.join(self.arguments.folder, name + ".jsonl")
        if not os.path.exists(path):
            words = ["tune", kernel.source, "--space", space, "--policy", policy, "--trials", str(trials),
                     "--seed", str(seed), "--no-warm-start", "--json",
                     "--db", os.path.join(self.arguments.folder, name + ".db")]
            if self.arguments.target:
                words += ["--target", self.arguments.target]
            start = time.monotonic()
            text = self.run(*words)
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text)
                file.write(json.dumps({"event": "wall", "seconds": time.monotonic() - start}) + "\n")
            os.rename(path + ".new", path)
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def space_length(self, kernel):
        return json.loads(self.run("templates", kernel.source, "--space", kernel.space, "--json"))["len"]


class Job:
    """What came of a job."""

    def __init__(self, events):
        end = next(e for e in events if e["event"] == "end")
        task = end["tasks"][0]
        trials = [e for e in events if e["event"] == "trial" and "parameters" in e]
        self.best_s, self.gflops = task["best_cost_s"], task["gflops"]
        self.trials, self.errors = len(trials), end["errors"]
        self.seconds = next(e for e in events if e["event"] == "wall")["seconds"]
        readings = [e["cost_s"] for e in trials if e["cost_s"] and not e["stopped_early"]]
        good = 1.05 * min(readings)
        self.until_good = next(i + 1 for i, e in enumerate(trials)
                               if e["cost_s"] and not e["stopped_early"] and e["cost_s"] <= good)
        self.parameters = next((e["parameters"] for e in trials if e["record"] == task["record"]), None)


def errors_text(errors):
    return ", ".join(f"{count} {kind.lower().removesuffix('_error').replace('_', ' ')}"
                     for kind, count in errors.items() if count) or "none"


def values_text(parameters):
    return " ".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in (parameters or {}).items())


def compare(bench, name, kernel, results):
    arguments = bench.arguments
    length = bench.space_length(kernel)
    if length <= arguments.whole:
        what, policy, trials = f"all {length:,} points", "template.grid", length + 1
    else:
        what, policy, trials = f"{arguments.whole:,} of {length:,} points at random", "template.random", arguments.whole + 1
    whole = Job(bench.events(f"{name}-whole", kernel, kernel.space, policy, trials, 1))
    print(f"\n### {os.path.basename(kernel.source)}: {len(whole.parameters or {})} parameters, {length:,} valid points\n")
    print("| tuner | trials | best us | GFLOP/s | of the best's speed | within 5% of its best after | failed | seconds |")
    print("|---|---|---|---|---|---|---|---|")

    def row(title, jobs):
        best = statistics.median(job.best_s for job in jobs)
        share = statistics.median(whole.best_s / job.best_s for job in jobs)
        print(f"| {title} | {jobs[0].trials} | {1e6 * best:.2f} | {statistics.median(j.gflops for j in jobs):,.0f} | "
              f"{100 * share:.0f}% | {statistics.median(j.until_good for j in jobs):.0f} | {errors_text(jobs[0].errors)} | "
              f"{statistics.median(j.seconds for j in jobs):.0f} |")
        results.append({"kernel": name, "tuner": title, "best_s": best, "share": share,
                        "parameters": jobs[0].parameters})

    row(what, [whole])
    for tuner in TUNERS:
        row(tuner, [Job(bench.events(f"{name}-{tuner}-{seed}", kernel, kernel.space, tuner, arguments.trials + 1, seed))
                    for seed in range(1, arguments.seeds + 1)])
    print(f"\nbest of {what}: {values_text(whole.parameters)}")


def try_wrong_ones(bench, name, kernel):
    """Without what keeps tiles whole, the check has to."""
    with open(kernel.space, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r'^ *"[A-Z] % .*== 0",\n', "", text, flags=re.MULTILINE)
    text = re.sub(r'^restrictions = \[("[A-Z] % [^"]*== 0",? ?)+\]\n', "", text, flags=re.MULTILINE)
    for old, new in kernel.edits:
        if old not in text:
            stop(f"{kernel.space} has no line {old}")
        text = text.replace(old, new)
    # The copy is beside the original, where its computation is looked for.
    folder = os.path.join(bench.arguments.folder, name + "-wrong")
    os.makedirs(folder, exist_ok=True)
    computation = re.search(r'^computation = "(.*)"', text, flags=re.MULTILINE)
    if computation:
        with open(os.path.join(KERNELS_FOLDER, computation[1]), encoding="utf-8") as file:
            declared = file.read()
        with open(os.path.join(folder, computation[1]), "w", encoding="utf-8") as file:
            file.write(declared)
    space = os.path.join(folder, "wrong.toml")
    with open(space, "w", encoding="utf-8") as file:
        file.write(text)
    events = bench.events(f"{name}-wrong", kernel, space, "template.random", bench.arguments.wrong, 1)
    counts = {"whole tiles, right": 0, "parts left out, wrong answer": 0}
    mistakes = []
    for event in events:
        if event["event"] != "trial" or "parameters" not in event:
            continue
        right, whole = event["error"] == "NO_ERROR", kernel.whole_tiles(event["parameters"])
        if right and whole:
            counts["whole tiles, right"] += 1
        elif event["error"] == "WRONG_ANSWER_ERROR" and not whole:
            counts["parts left out, wrong answer"] += 1
        else:
            mistakes.append(f"{values_text(event['parameters'])}: {event['error']} {event['message']}")
    print(f"\nwithout the restrictions about whole tiles, {sum(counts.values()) + len(mistakes)} points at random: " +
          "; ".join(f"{count} {what}" for what, count in counts.items()))
    for mistake in mistakes:
        print(f"  UNEXPECTED {mistake}")
    if mistakes or not all(counts.values()):
        stop(f"{name}: the check did not tell the right configurations from the wrong ones")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--kernels", default="matmul,conv2d")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--whole", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--wrong", type=int, default=60)
    parser.add_argument("--target", default="")
    parser.add_argument("--folder", default="kernel-tuners")
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    results = []
    for name in arguments.kernels.split(","):
        if name not in KERNELS:
            stop(f"there is no kernel {name}, expected some of {', '.join(KERNELS)}")
        compare(bench, name, KERNELS[name], results)
        try_wrong_ones(bench, name, KERNELS[name])
        sys.stdout.flush()
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
