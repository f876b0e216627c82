#!/usr/bin/python3
"""Networks on this CPU: Kiln beside ONNX Runtime and PyTorch, with the same threads, in turns.

usage: cpu_network_peers.py KILN LIBRARY [--networks NAME[:BATCH],...] [--trials N] [--minutes N] [--threads N] [--rounds N]
                            [--folder DIR] [--venv DIR] [--json]

KILN is the program, LIBRARY its libkiln_runtime.so. Each network of the zoo, of one image or of BATCH, is tuned by `KILN
tune network:NAME --target llvm` for --minutes or --trials, whichever ends first (--trials 0: with what FOLDER/NAME.db has), and compiled. The peers
run the same network in PyTorch (tests/bench/peer_networks.py): ONNX Runtime its export to ONNX; PyTorch as it is and
compiled, in both layouts. All three have the threads to themselves in turns: after a pause in which the other's threads fall
asleep and one run that is not timed, as many as fit into half a second, --rounds times. Prints the median of all of a way's runs; the ratio is the faster of the two peers'
over Kiln's, above 1 where Kiln is faster. --json prints one value a line instead, with the readings of each round's median.

The peers come from PyPI, into a virtual environment in --venv (~/.cache/kiln-peers), once: several gigabytes.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["torch", "torchvision", "onnx", "onnxscript", "onnxruntime", "numpy"]
NETWORKS = ["resnet-50", "mobilenet_v2", "squeezenet_v1.1", "inception_v3", "bert-base", "vit-b-16", "resnet-18", "resnet-50:16"]
TURN_S = 0.5
# Pause between the sides. Threads of OpenMP wait for more work in a loop for 0.2 s, and the next
# side begins when they sleep.
SETTLE_S = 0.3


def stop(message):
    sys.exit(f"cpu_network_peers: {message}")


def say(message):
    print(message, file=sys.stderr, flush=True)


def peers_python(venv):
    """The Python of the environment, which is made if it is not there."""
    python, complete = os.path.join(venv, "bin", "python"), os.path.join(venv, "complete")
    if os.path.exists(complete):
        return python
    say(f"installing {', '.join(PACKAGES)} into {venv}; this takes some minutes and gigabytes, once")
    commands = [[python, "-m", "pip", "install", "--no-cache-dir", *PACKAGES]]
    if not os.path.exists(python):
        commands.insert(0, ["/usr/bin/python3", "-m", "venv", venv])
    for command in commands:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")] or done.stdout.splitlines()
            stop(f"{' '.join(command[:4])} failed: {errors[-1]}\nThe peers come from PyPI. Where it "
                 f"cannot be reached, make an environment with {', '.join(PACKAGES)} elsewhere, and name it: --venv DIR")
    with open(complete, "w", encoding="utf-8") as file:
        file.write("\n".join(PACKAGES) + "\n")
    return python


def run(command, what):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        stop(f"{what} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def tuned(kiln, name, arguments):
    """The compiled network, and what `kiln compile` says of it."""
    db, path = [os.path.join(arguments.folder, name.replace(":", "-") + end) for end in (".db", ".kiln")]
    base, _, batch = name.partition(":")
    network = [f"network:{base}", "--batch", batch or "1", "--target", "llvm", "--db", db]
    if arguments.trials > 0:
        say(f"{name}: tuning")
        command = [kiln, "tune", *network, "--trials", str(arguments.trials), "--threads", str(arguments.threads), "--quiet"]
        if arguments.minutes:
            command += ["--minutes", str(arguments.minutes)]
        run(command, f"tuning {name}")
    said = run([kiln, "compile", *network, "-o", path], f"compiling {name}")
    say(f"{name}: {said.strip().splitlines()[-1]}")
    return path


class Worker:
    """A process with one side's ways to run a network."""

    def __init__(self, python, arguments, environment):
        self.process = subprocess.Popen([python, os.path.join(HERE, "cpu_network_worker.py"), *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.name = arguments[0]
        self.ways = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            stop(f"the process of {self.name} has ended: its error is above")
        return json.loads(line)

    def turn(self, way):
        self.process.stdin.write(json.dumps({"way": way, "seconds": TURN_S}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(python, name, path, arguments):
    """By (side, way): the median of each round, in seconds."""
    onnx = os.path.join(arguments.folder, name.replace(":", "-") + ".onnx")
    environment = {**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "..", "python"), "KILN_RUNTIME": arguments.library,
                   "OMP_NUM_THREADS": str(arguments.threads)}
    if not os.path.exists(onnx):
        run([python, os.path.join(HERE, "cpu_network_worker.py"), "export", name, onnx], f"exporting {name}")
    threads = str(arguments.threads)
    say(f"{name}: measuring")
    workers = []
    try:
        for words in (["kiln", path, threads], ["onnxruntime", onnx, threads], ["torch", name, threads]):
            workers.append(Worker(python, words, environment))
        medians = {(worker.name, way): [] for worker in workers for way in worker.ways}
        for _ in range(arguments.rounds):
            for worker in workers:
                for way in worker.ways:
                    time.sleep(SETTLE_S)
                    medians[worker.name, way].append(statistics.median(worker.turn(way)))
    finally:
        for worker in workers:
            worker.close()
    return medians


def summary(name, medians):
    """One row: milliseconds of each side, the faster peer's over Kiln's in each round, and their median."""
    def best(side):
        ways = [(statistics.median(seconds), way, seconds) for (of, way), seconds in medians.items() if of == side]
        return min(ways)

    ours, ort, torch = best("kiln"), best("onnxruntime"), best("torch")
    peer = min(ort, torch)
    ratios = [theirs / own for theirs, own in zip(peer[2], ours[2])]
    return {
        "network": name, "kiln_ms": ours[0] * 1e3, "onnxruntime_ms": ort[0] * 1e3, "torch_ms": torch[0] * 1e3,
        "torch_way": torch[1], "ratio": statistics.median(ratios),
        "rounds_s": {f"{of} {way}" if of == "torch" else of: seconds for (of, way), seconds in medians.items()},
    }


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def table(rows):
    lines = ["| network | Kiln ms | ONNX Runtime ms | PyTorch ms | its best way | faster peer / Kiln |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['network']} | {row['kiln_ms']:.2f} | {row['onnxruntime_ms']:.2f} | {row['torch_ms']:.2f} | "
                     f"{row['torch_way']} | {row['ratio']:.2f} |")
    return lines + [f"| geometric mean | | | | | {geometric_mean([row['ratio'] for row in rows]):.2f} |"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("library")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", default="cpu_network_peers")
    parser.add_argument("--venv", default=os.path.expanduser("~/.cache/kiln-peers"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = arguments.networks.split(",")
    for name in names:
        if name.partition(":")[0] not in NETWORKS:
            stop(f"there is no peer of {name}; there are {', '.join(NETWORKS)}")
    for path in (arguments.kiln, arguments.library):
        if not os.path.exists(path):
            stop(f"there is no {path}: bazel build //client/cli:kiln //runtime:libkiln_runtime.so")
    kiln, arguments.library = [os.path.abspath(path) for path in (arguments.kiln, arguments.library)]
    os.makedirs(arguments.folder, exist_ok=True)
    python = peers_python(arguments.venv)

    rows = []
    for name in names:
        path = tuned(kiln, name, arguments)
        rows.append(summary(name, measure(python, name, path, arguments)))
        say(table(rows)[-2])
        if arguments.json:
            print(json.dumps(rows[-1]), flush=True)
    if arguments.json:
        print(json.dumps({"geometric_mean": geometric_mean([row["ratio"] for row in rows])}))
    else:
        print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
