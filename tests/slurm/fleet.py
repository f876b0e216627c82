"""Grows and shrinks a fleet of runners on a Slurm of this machine: deploy/check_slurm.sh runs this.

usage: fleet.py KILN FOLDER
"""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

from cluster import Cluster

RUNNERS = "kiln-check-runner"
BUILDERS = "kiln-check-builder"
# The job outlasts the two minutes after which Slurm starts a requeued job again.
TRIALS = 600
TRIALS_OF_SECOND = 200


class Farm:
    """A tracker, a scheduler and the fleet, as processes of the real program."""

    def __init__(self, kiln: str, folder: pathlib.Path, cluster: Cluster) -> None:
        self.kiln, self.folder, self.cluster = kiln, folder, cluster
        self.db = folder / "kiln.db"
        self._daemons: list[subprocess.Popen] = []
        self.fleet: subprocess.Popen | None = None
        self._keys("init")
        self._keys("issue", "daemons", "--role", "work")
        self._keys("issue", "ada", "--role", "operate")
        self._daemon("tracker", "--listen", "0.0.0.0:9190")
        self._daemon("scheduler", "--listen", "0.0.0.0:9290", "--tracker", "login:9190", "--db", str(self.db))

    def start_fleet(self) -> None:
        log = (self.folder / "fleet.log").open("a")
        self.fleet = subprocess.Popen(
            [self.kiln, "fleet", "slurm", "--name", "check", "--runners", "4", "--builders", "1", "--builder-cpus", "2",
             "--device", "cpu", "--runner-arg=--threads=1", "--runner-arg=--canary-seconds=0", "--gres", "device:1",
             "--partition", "main", "--time", "1:00:00", "--tracker", "login:9190", "--scheduler", "login:9290",
             "--keys", "farm-keys/ada", "--worker-keys", "farm-keys/daemons", "--log-folder", str(self.folder),
             "--look-every", "1", "--grow-after", "3", "--shrink-after", "15"], stdout=log, stderr=log)

    def stop_fleet(self, how: int) -> None:
        self.fleet.send_signal(how)
        check(self.fleet.wait(120) == 0, f"the fleet ended with {self.fleet.returncode}")

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait(60)

    def submit(self, seed: int, trials: int) -> str:
        """Returns the id of the new job. Each trial pauses for a second, so that several runners are wanted."""
        printed = self._kiln("submit", "matmul", "--args", "32,32,32", "--target", "llvm", "--trials", str(trials),
                             "--seed", str(seed), "--policy", "sketch.random", "--cooldown-ms", "1000",
                             "--finalists", "0", "--no-warm-start", "--json")
        return json.loads(printed.splitlines()[0])["job"]

    def job(self, job: str) -> dict:
        return json.loads(self._kiln("jobs", job, "--json").splitlines()[0])

    def busy_job(self) -> int | None:
        """Returns the Slurm job of a runner that has a trial in hand."""
        reply = json.loads(self._kiln("workers", "--json").splitlines()[0])
        for worker, busy in zip(reply["workers"], reply.get("busy_slots", [])):
            if worker["kind"] == "RUNNER" and busy:
                return int(worker["id"].rsplit("-", 1)[1])
        return None

    def records(self, job: str) -> list[tuple[int, int]]:
        """Returns trial and error of each record of the job."""
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT trial, error FROM records WHERE job_id = ? ORDER BY trial", [job])
            return rows.fetchall()

    def said(self) -> str:
        return (self.folder / "fleet.log").read_text()

    def _kiln(self, *words: str) -> str:
        return self._printed(*words, "--scheduler", "login:9290", "--keys", "farm-keys/ada")

    def _keys(self, *words: str) -> None:
        self._printed("keys", *words)

    def _printed(self, *words: str) -> str:
        done = subprocess.run([self.kiln, *words], capture_output=True, text=True)
        check(done.returncode == 0, f"kiln {' '.join(words)}: {done.stderr}")
        return done.stdout

    def _daemon(self, *words: str) -> None:
        port = self.folder / f"{words[0]}.port"
        log = (self.folder / f"{words[0]}.log").open("w")
        self._daemons.append(subprocess.Popen(
            [self.kiln, *words, "--port-file", str(port), "--keys", "farm-keys/daemons"], stdout=log, stderr=log))
        wait(f"{words[0]} serves", port.exists)


FARM: Farm | None = None


def check(good: bool, what: str) -> None:
    if good:
        return
    if FARM is not None:
        for log in sorted(FARM.folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
        print(FARM.cluster.ask("squeue"))
    raise SystemExit(f"check_slurm: {what}")


def wait(what: str, done, limit_s: float = 300) -> float:
    """Returns the seconds until `done`."""
    begin = time.monotonic()
    while not done():
        check(time.monotonic() - begin < limit_s, f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.2)
    return time.monotonic() - begin


def running(farm: Farm, name: str = RUNNERS) -> set[int]:
    return {job for job, state in farm.cluster.jobs(name).items() if state == "RUNNING"}


def disturb(farm: Farm) -> None:
    """Cancels one runner that works, and requeues another."""
    wait("a runner works", lambda: farm.busy_job() is not None)
    cancelled = farm.busy_job()
    farm.cluster.ask("scancel", str(cancelled))
    took_s = wait("a runner replaces the cancelled one",
                  lambda: cancelled not in running(farm) and len(running(farm)) == 4)
    print(f"runner {cancelled} was cancelled by scancel, and replaced after {took_s:.1f} s")
    wait("another runner works", lambda: farm.busy_job() not in (None, cancelled))
    requeued = farm.busy_job()
    farm.cluster.ask("scontrol", "requeue", str(requeued))
    wait("the runner is requeued", lambda: requeued not in running(farm))
    check(len(farm.cluster.jobs(RUNNERS)) <= 4, "a requeued runner was replaced")
    took_s = wait("the requeued runner runs again", lambda: requeued in running(farm))
    print(f"runner {requeued} was requeued, and ran again after {took_s:.1f} s")


def check_all_trials(farm: Farm, job: str, trials: int) -> None:
    shown = farm.job(job)
    check(shown["job"]["state"] == "SUCCEEDED" and shown["job"]["trials_done"] == trials, f"the job is {shown['job']}")
    check(shown["failed_trials"] == [], f"failed trials: {shown['failed_trials']}")
    records = farm.records(job)
    check([trial for trial, _ in records] == list(range(records[0][0], records[0][0] + trials)),
          f"{len(records)} records, expected each of {trials} trials once")
    check(all(error == 0 for _, error in records), "a record is of a failed trial")
    print(f"{job}: each of {trials} trials is in the database once, and none has failed")


def grow_and_shrink(farm: Farm) -> None:
    job = farm.submit(seed=1, trials=TRIALS)
    took_s = wait("four runners", lambda: len(running(farm)) == 4)
    print(f"from 0 to 4 runners in {took_s:.1f} s after the job was submitted")
    wait("the first trials", lambda: farm.job(job)["job"]["trials_done"] > 0)
    disturb(farm)
    wait("the end of the job", lambda: farm.job(job)["job"]["state"] == "SUCCEEDED", 900)
    took_s = wait("no runner and no builder",
                  lambda: not farm.cluster.jobs(RUNNERS) and not farm.cluster.jobs(BUILDERS))
    print(f"from 4 runners to 0 in {took_s:.1f} s after the end of the job (--shrink-after 15)")
    check_all_trials(farm, job, TRIALS)


def end_while_it_works(farm: Farm) -> None:
    """A fleet that is killed is found again, and one that is asked to end loses nothing."""
    job = farm.submit(seed=2, trials=TRIALS_OF_SECOND)
    wait("four runners", lambda: len(running(farm)) == 4)
    jobs = set(farm.cluster.jobs(RUNNERS))
    farm.fleet.kill()
    farm.fleet.wait()
    farm.start_fleet()
    wait("the next fleet sees them", lambda: farm.said().count("has announced itself") > 0)
    time.sleep(10)
    check(set(farm.cluster.jobs(RUNNERS)) == jobs, "a restarted fleet has other runners")
    print("a fleet that was killed and started again has the same four runners")
    farm.stop_fleet(signal.SIGTERM)
    took_s = wait("no runner", lambda: not farm.cluster.jobs(RUNNERS))
    print(f"the fleet ended by SIGTERM; its last runner was gone {took_s:.1f} s later")
    done = farm.job(job)["job"]["trials_done"]
    check(done < TRIALS_OF_SECOND, "the job was over before the fleet ended")
    farm.start_fleet()
    wait("the end of the job", lambda: farm.job(job)["job"]["state"] == "SUCCEEDED", 900)
    check_all_trials(farm, job, TRIALS_OF_SECOND)
    farm.stop_fleet(signal.SIGTERM)


def main() -> None:
    global FARM
    kiln, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    cluster = Cluster(folder / "slurm")
    cluster.start()
    print(cluster.ask("sinfo", "--version").strip(), "with one node is up")
    farm = Farm(kiln, folder, cluster)
    FARM = farm
    farm.start_fleet()
    grow_and_shrink(farm)
    end_while_it_works(farm)
    farm.stop()
    cluster.stop()
    print("what the fleet printed:")
    print(farm.said())
    print("check_slurm: all is well")


if __name__ == "__main__":
    os.umask(0o022)
    sys.stdout.reconfigure(line_buffering=True)
    main()
