#!/usr/bin/env python3
"""What a loaded device does to its canary, as docs/device-state.md reports it.

  canary.py KILN [--device cpu|cuda|null] [--period 20] [--threads N]

Starts a farm of its own on loopback, with a runner of the device whose canary is timed every --period
seconds. When the runner knows what is usual, the device gets a load, and a job begins at once:

  cpu   two loops for each core that the runner uses, pinned to it
  cuda  products of large matrices in another process, by PyTorch, or `kiln selftest` again and again
        where there is no PyTorch; no setting of the GPU is touched
  null  none: a file makes its canary slow

Prints when the device was quarantined, with what `kiln workers` and `kiln why` say of it, when it was
well again after the load had ended, and how many records of that time are marked. Fails if the device
was not quarantined within one period and the time of a reading, if it did not become well, or if no
record is marked.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LOOP = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    pass
"""
PRODUCTS = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
while True:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
"""


class Farm:
    def __init__(self, kiln, folder):
        self.kiln, self.folder, self.processes = kiln, pathlib.Path(folder), []

    def start(self, name, *flags):
        """Starts a daemon and returns its address."""
        port_file, log = self.folder / f"{name}.port", self.folder / f"{name}.log"
        process = subprocess.Popen(
            [self.kiln, name, "--listen", "127.0.0.1:0", "--port-file", str(port_file), *flags],
            stderr=open(log, "a"))
        self.processes.append(process)
        for _ in range(600):
            if port_file.exists() and port_file.read_text().strip():
                return f"127.0.0.1:{port_file.read_text().split()[0]}"
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{name} does not start: {log.read_text()}")

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


class Load:
    """Other programs on the device."""

    def __init__(self, device, kiln, cores, canary):
        self.device, self.kiln, self.cores, self.canary, self.processes = device, kiln, cores, canary, []

    def start(self):
        if self.device == "null":
            self.canary.write_text("0.0013\n")
        elif self.device == "cpu":
            for core in self.cores * 2:
                self.processes.append(subprocess.Popen([sys.executable, "-c", LOOP, str(core)]))
        else:
            there = subprocess.run([sys.executable, "-c", "import torch; torch.cuda.init()"],
                                   capture_output=True)
            command = [sys.executable, "-c", PRODUCTS]
            if there.returncode != 0:
                command = ["sh", "-c", 'while "$0" selftest --device cuda >/dev/null 2>&1; do :; done', self.kiln]
            self.processes.append(subprocess.Popen(command, start_new_session=True))

    def stop(self):
        if self.device == "null":
            self.canary.write_text("0.001\n")
        for process in self.processes:
            if self.device == "cuda":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        self.processes = []


def run(command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def wait(what, done, seconds, pause=0.2):
    """Waits until done(), and returns after how many seconds it was."""
    begin = time.time()
    while not done():
        if time.time() - begin > seconds:
            raise RuntimeError(f"{what}: not within {seconds:.0f} s")
        time.sleep(pause)
    return time.time() - begin


def check(flags, farm):
    canary = farm.folder / "canary"
    canary.write_text("0.001\n")
    cores = sorted(os.sched_getaffinity(0))[: flags.threads or None]
    tracker = farm.start("tracker")
    scheduler = farm.start("scheduler", "--tracker", tracker, "--db", str(farm.folder / "kiln.db"))
    farm.start("builder", "--tracker", tracker, "--jobs", "1")
    more = ["--null-canary", str(canary)] if flags.device == "null" else []
    farm.start("runner", "--tracker", tracker, "--device", flags.device, "--threads", str(flags.threads),
               "--canary-seconds", str(flags.period), "--log-level", "info", *more)
    log = farm.folder / "runner.log"

    def runner():
        workers = json.loads(run([flags.kiln, "workers", "--tracker", tracker, "--json"]))["workers"]
        return next(worker for worker in workers if worker["kind"] == "RUNNER")

    wait("a usual time", lambda: "the canary usually takes" in log.read_text(), 60)
    usual = [line for line in log.read_text().splitlines() if "usually takes" in line][-1]
    print(f"{runner()['device']}: {usual[usual.index('the canary'):]}")

    load = Load(flags.device, flags.kiln, cores, canary)
    target = {"cpu": "llvm", "cuda": "cuda", "null": "null"}[flags.device]
    try:
        load.start()
        submitted = run([flags.kiln, "submit", "matmul", "--args", "128,128,128", "--target", target,
                         "--trials", "100000", "--policy", "sketch.random", "--no-warm-start", "--json",
                         "--scheduler", scheduler])
        job = json.loads(submitted.splitlines()[-1])["job"]
        # The load is there from now on; a reading may wait for the trial in hand.
        slow_s = wait("a quarantine", lambda: runner()["mode"] == "WORKER_QUARANTINED", flags.period + 20)
        print(f"quarantined {slow_s:.1f} s after the load came, with a period of {flags.period:g} s")
        print(run([flags.kiln, "workers", "--tracker", tracker]))
        print(run([flags.kiln, "why", job, "--scheduler", scheduler]))

        def records():
            lines = run([flags.kiln, "records", "list", "--errors", "--json", "--scheduler", scheduler])
            return [json.loads(line) for line in lines.splitlines()]

        wait("marks", lambda: any(record["mark"] for record in records()), 30, pause=2)
    finally:
        load.stop()
    well_s = wait("a device that is well", lambda: runner()["mode"] == "WORKER_SERVES", 3 * flags.period + 60)
    print(f"serves again {well_s:.1f} s after the load ended")
    run([flags.kiln, "cancel", job, "--scheduler", scheduler])
    marked = [record for record in records() if record["mark"]]
    print(f"{len(marked)} of {len(records())} records are marked, the first one: {marked[0]['mark']}")
    for drift in runner()["drifts"]:
        print(f"span of {drift['to_s'] - drift['from_s']:.1f} s: {drift['reason']}")
    if slow_s > flags.period + 15:
        raise RuntimeError(f"the quarantine came after {slow_s:.1f} s, expected one within a period")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--device", choices=["cpu", "cuda", "null"], default="cpu")
    parser.add_argument("--period", type=float, default=20)
    parser.add_argument("--threads", type=int, default=0)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(flags.kiln, folder)
        try:
            check(flags, farm)
        except RuntimeError as error:
            sys.exit(f"canary.py: {error}")
        finally:
            farm.stop()


if __name__ == "__main__":
    main()
