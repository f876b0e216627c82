#!/usr/bin/env python3
"""What a scheduler keeps of the memory that its jobs took: its resident size, job after job.

  scheduler_memory.py KILN [--jobs 100] [--trials 64] [--most-growth-mib 100]

Starts a farm of its own with the runner's device null, on loopback ports that the system chooses,
gives the scheduler one job after the other, of six operators in turns,
and prints its resident size and its peak after each round of them. Fails when the size after the
last job is more than --most-growth-mib above that after the first round. A hundred jobs of 64 trials
take some minutes of two cores.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

OPERATORS = [
    ("matmul", "256,256,256", ""),
    ("conv2d_nhwc", "1,28,28,64,64,3,3,1,1", "bias,relu"),
    ("batch_matmul", "12,128,64,128", ""),
    ("softmax", "64,512", ""),
    ("depthwise_conv2d_nhwc", "1,28,28,96,3,3,1,1", "bias,relu"),
    ("dense", "64,512,512", "bias,relu"),
]


def memory_mib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) >> 10
    raise RuntimeError(f"process {pid} has no {field}")


class Farm:
    def __init__(self, kiln, folder):
        self.kiln, self.folder, self.processes = kiln, pathlib.Path(folder), []

    def start(self, name, *flags):
        port_file = self.folder / f"{name}.port"
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen(
            [self.kiln, name, "--listen", "127.0.0.1:0", "--port-file", str(port_file), *flags],
            stderr=log)
        self.processes.append(process)
        for _ in range(600):
            if port_file.exists():
                return process, f"127.0.0.1:{port_file.read_text().split()[0]}"
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{name} does not start: {(self.folder / f'{name}.log').read_text()}")

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def tune(kiln, scheduler, index, trials):
    operator, args, epilogue = OPERATORS[index % len(OPERATORS)]
    command = [kiln, "tune", operator, "--args", args, "--target", "null", "--trials", str(trials),
               "--seed", str(index + 1), "--scheduler", scheduler, "--quiet"]
    if epilogue:
        command += ["--epilogue", epilogue]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--most-growth-mib", type=int, default=100)
    flags = parser.parse_args()
    for name in list(os.environ):
        if name.startswith("KILN_"):
            del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(flags.kiln, folder)
        try:
            _, tracker = farm.start("tracker")
            scheduler, address = farm.start("scheduler", "--tracker", tracker, "--db",
                                            str(farm.folder / "kiln.db"))
            farm.start("builder", "--tracker", tracker, "--jobs", "1")
            farm.start("runner", "--tracker", tracker, "--device", "null")
            print(f"{'jobs':>5} {'resident MiB':>13} {'peak MiB':>9} {'seconds':>8}")
            sizes, start = [], time.time()
            for job in range(flags.jobs):
                tune(flags.kiln, address, job, flags.trials)
                if (job + 1) % len(OPERATORS) == 0 or job + 1 == flags.jobs:
                    # A job's memory is given back when the job has ended.
                    time.sleep(1)
                    sizes.append(memory_mib(scheduler.pid, "VmRSS"))
                    peak = memory_mib(scheduler.pid, "VmHWM")
                    print(f"{job + 1:5} {sizes[-1]:13} {peak:9} {time.time() - start:8.0f}",
                          flush=True)
        finally:
            farm.stop()
    growth = sizes[-1] - sizes[0]
    print(f"growth from the first round to the last: {growth} MiB, at most "
          f"{flags.most_growth_mib} expected")
    return 1 if growth > flags.most_growth_mib else 0


if __name__ == "__main__":
    sys.exit(main())
