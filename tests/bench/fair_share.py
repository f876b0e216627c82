#!/usr/bin/env python3
"""How a farm shares one device between users, as docs/experiments/sharing.md reports it.

  fair_share.py KILN [--seconds 200] [--most-error 0.05]

Starts a farm of its own with a runner of one slot and the device null, on loopback ports that the
system chooses. Two users with weights 1:3 submit jobs that never end. During the window a late
urgent job runs, a user with a limit asks for too much, and a third user's job is paused, looked at
over a restart of the scheduler, and resumed. Prints the device seconds of the two users within the
window, and what else was seen. Fails when the lighter user's share of what both had is further from
a quarter than --most-error of it, or when something else is not as it should be.
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

ENDLESS = 10_000_000


class Farm:
    def __init__(self, kiln, folder):
        self.kiln, self.folder, self.processes = kiln, pathlib.Path(folder), {}

    def start(self, name, *flags, listen="127.0.0.1:0"):
        port_file = self.folder / f"{name}.port"
        port_file.unlink(missing_ok=True)
        log = open(self.folder / f"{name}.log", "a")
        process = subprocess.Popen(
            [self.kiln, name, "--listen", listen, "--port-file", str(port_file), *flags],
            stderr=log)
        self.processes[name] = process
        for _ in range(600):
            if port_file.exists() and port_file.read_text().strip():
                return f"127.0.0.1:{port_file.read_text().split()[0]}"
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{name} does not start: {(self.folder / f'{name}.log').read_text()}")

    def stop(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


class Client:
    def __init__(self, kiln, scheduler):
        self.kiln, self.scheduler = kiln, scheduler

    def run(self, *words, user="admin", check=True):
        command = [self.kiln, *words, "--scheduler", self.scheduler]
        environment = dict(os.environ, USER=user, LOGNAME=user)
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done

    def submit(self, user, trials, *flags, size=256):
        """The id of a new job."""
        done = self.run("submit", "matmul", "--args", f"{size},{size},{size}", "--target", "null",
                        "--policy", "sketch.random", "--trials", str(trials), "--no-warm-start",
                        "--finalists", "0", "--json", *flags, user=user)
        return json.loads(done.stdout.splitlines()[-1])["job"]

    def users(self):
        lines = self.run("users", "list", "--json").stdout.splitlines()
        return {user["name"]: user for user in map(json.loads, lines)}

    def job(self, job):
        return json.loads(self.run("jobs", job, "--json").stdout)["job"]


def wait(what, done, seconds=60):
    """Waits until done(), and returns after how many seconds it was."""
    begin = time.time()
    while not done():
        if time.time() - begin > seconds:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return time.time() - begin


def measure(flags, farm):
    tracker = farm.start("tracker")
    database = ["--tracker", tracker, "--db", str(farm.folder / "kiln.db")]
    address = farm.start("scheduler", *database)
    farm.start("builder", "--tracker", tracker, "--jobs", "2")
    farm.start("runner", "--tracker", tracker, "--device", "null")
    client = Client(flags.kiln, address)
    client.run("users", "set", "ann", "--weight", "1")
    client.run("users", "set", "bob", "--weight", "3")
    client.run("users", "set", "carl", "--trials-per-day", "10")
    jobs = {"ann": client.submit("ann", ENDLESS), "bob": client.submit("bob", ENDLESS, size=320)}

    def had(user):
        return client.users().get(user, {}).get("used_device_s", 0)

    wait("both users have the device", lambda: had("ann") > 0 and had("bob") > 0)
    begin, before = time.time(), client.users()

    def until(part):
        time.sleep(max(0.0, begin + part * flags.seconds - time.time()))

    until(0.2)
    urgent = client.submit("dora", 8, "--priority", "5", size=128)
    submitted = time.time()
    wait("the urgent job has a trial", lambda: client.job(urgent)["trials_done"] > 0)
    print(f"the urgent job had its first result {time.time() - submitted:.1f} s after its submission")
    wait("the urgent job ends", lambda: client.job(urgent)["state"] == "SUCCEEDED")

    until(0.4)
    refused = client.run("submit", "matmul", "--args", "64,64,64", "--target", "null", "--trials",
                         "11", user="carl", check=False)
    print(f"a job beyond the limit: {refused.stderr.strip()}")
    ok = refused.returncode != 0 and "his limit is 10 a day" in refused.stderr

    until(0.5)
    paused = client.submit("eve", ENDLESS, size=192)
    wait("the third user has the device", lambda: client.job(paused)["trials_done"] > 0)
    client.run("jobs", "pause", paused)
    took_s = wait("the paused job holds nothing", lambda: client.users()["eve"]["devices_now"] == 0)
    at_pause = client.job(paused)["trials_done"]
    print(f"the paused job held no device {took_s:.1f} s after the pause, and has {at_pause} trials")

    until(1)
    after, seconds = client.users(), time.time() - begin
    own = {user: after[user]["used_device_s"] - before[user]["used_device_s"]
           for user in ("ann", "bob")}
    share = own["ann"] / sum(own.values())
    print(f"window of {seconds:.1f} s: ann (weight 1) {own['ann']:.1f} device s, bob (weight 3) "
          f"{own['bob']:.1f} device s: shares {share:.4f} and {1 - share:.4f}, "
          f"expected 0.25 and 0.75")
    ok &= abs(share - 0.25) <= flags.most_error * 0.25

    farm.stop("scheduler")
    client.scheduler = farm.start("scheduler", *database)
    kept = client.users()
    print(f"after a restart of the scheduler: ann {kept['ann']['used_device_s']:.1f} device s, before "
          f"it at least {after['ann']['used_device_s']:.1f}")
    ok &= kept["ann"]["used_device_s"] >= after["ann"]["used_device_s"] - 0.01
    job = client.job(paused)
    print(f"the paused job after the restart: {job['state']}, {job['trials_done']} trials")
    ok &= job["state"] == "PAUSED"
    client.run("jobs", "resume", paused)
    wait("the resumed job goes on", lambda: client.job(paused)["trials_done"] > job["trials_done"])
    for one in (*jobs.values(), paused):
        client.run("cancel", one)
    print(client.run("audit", "--limit", "20").stdout)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--most-error", type=float, default=0.05,
                        help="of the lighter user's share")
    flags = parser.parse_args()
    for name in list(os.environ):
        if name.startswith("KILN_"):
            del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(flags.kiln, folder)
        try:
            ok = measure(flags, farm)
        finally:
            for name in list(farm.processes):
                farm.stop(name)
    print("as expected" if ok else "NOT as expected")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
