#!/usr/bin/python3
"""Random faults in farms of real daemons, with jobs on the device null under way; what must hold is checked.

  chaos.py KILN [--seed S] [--faults N] [--per-farm N] [--shapes SHAPE,...] [--kinds KIND,...] [--longest SECONDS]
           [--folder DIR] [--keep] [--liar PYTHONPATH] [--clock LIBRARY] [--report FILE] [--trials N]

Shapes of farms take turns, each for --per-farm faults:
  plain    two builders and two runners behind proxies of this program, on loopback
  single   the same with one builder and one runner
  farm     `kiln farm up`
  keys     daemons with keys of a farm
  boxes    builder and runner in a network namespace of their own, the database on a disk of 24 MB (root)
The faults are the rows of faults.py that the shape allows. After each fault the program waits for 30 further results,
checks the invariants, and prints a line: what was done, the seconds to the next result, and the longest pause within
the 30 results. At the end it prints a table of these by kind. No time is judged. Exit status 1: an invariant does not
hold, or no result came for two minutes; the folder with all logs is kept then. The same seed draws the same faults.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import faults
import processes
from farm import HandMadeFarm, Place, Shape, SupervisedFarm
from invariants import SET_ASIDE, Invariants
from records import Database

_RESULTS = 30
_PATIENCE_S = 120
_DISK = "24m"


class Sampler:
    """Notes when the newest record changes, in a thread of its own."""

    def __init__(self, path: str) -> None:
        self._database = Database(path)
        self._samples: list[tuple[float, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            try:
                last = self._database.last_id()
            except Exception:  # The database is being made, or is locked while it is recovered.
                continue
            if not self._samples or last != self._samples[-1][1]:
                self._samples.append((time.monotonic(), last))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def pauses(self, since: float) -> tuple[float, float] | None:
        """Seconds to the next result, and the longest pause within the next results; None: they did not come."""
        end = max(since, time.monotonic()) + _PATIENCE_S
        while time.monotonic() < end:
            samples = list(self._samples)
            before = max((id for at, id in samples if at <= since), default=0)
            after = [(at, id) for at, id in samples if at > since]
            if after and after[-1][1] >= before + _RESULTS:
                times = [since] + [at for at, id in after if id <= before + 2 * _RESULTS or at == after[0][0]]
                return times[1] - since, max(b - a for a, b in zip(times, times[1:]))
            time.sleep(0.02)
        return None


@dataclasses.dataclass
class Row:
    """One fault and what followed."""

    number: int
    shape: str
    kind: str
    what: str
    next_s: float
    pause_s: float


class Round:
    """One farm, its jobs, and the faults that it gets."""

    def __init__(self, flags: argparse.Namespace, shape: str, folder: pathlib.Path, rng: random.Random) -> None:
        self.flags, self.shape, self.rng, self.folder = flags, shape, rng, folder
        self.own = set(processes.descendants(os.getpid()))
        self.farm = self._make_farm()
        self.farm.longest_s = flags.longest
        self.invariants = Invariants(self.farm)
        self.sampler = Sampler(self.farm.db)
        self.deck: list[faults.Fault] = []
        # The newest record of each job when the scheduler last died.
        self.at_death: dict[str, int] | None = None

    def _make_farm(self) -> faults.Farm:
        if self.shape == "farm":
            return SupervisedFarm(self.flags.kiln, self.folder)
        shape = Shape(workers=2 if self.shape == "plain" else 1, has_proxies=self.shape in ("plain", "single"),
                      has_keys=self.shape == "keys")
        if self.shape == "boxes":
            shape = dataclasses.replace(shape, head=Place(host="10.78.0.1"), clock_library=self.flags.clock,
                                        box=Place(("nsenter", "-t", str(self.flags.box), "-n"), "10.78.0.2"),
                                        db_folder=str(self.flags.disk))
        farm = HandMadeFarm(self.flags.kiln, self.folder, shape)
        if self.flags.liar:
            farm.environment["PYTHONPATH"] = self.flags.liar
            farm.liar_program = ["/usr/bin/python3", "-B", str(pathlib.Path(__file__).with_name("liar.py"))]
        return farm

    def top_up(self) -> bool:
        """Submits jobs until two are unfinished and enough trials are to come. Returns whether none was unfinished."""
        was_idle = None
        while True:
            states = self.invariants.database.states()
            done = {job: len(self.invariants.database.numbers(job)) for job, row in states.items()
                    if row[0] in ("queued", "running")}
            was_idle = not done if was_idle is None else was_idle
            if len(done) >= 2 and sum(states[job][2] - count for job, count in done.items()) >= self.flags.trials:
                return was_idle
            size = [str(self.rng.randrange(32, 1024, 16)) for _ in range(3)]
            words = ["submit", "matmul", "--args", ",".join(size), "--target", "null", "--policy", "sketch.random",
                     "--trials", str(self.rng.randint(self.flags.trials, 2 * self.flags.trials)), "--cooldown-ms", "4",
                     "--no-warm-start", "--seed", str(self.rng.getrandbits(30)), "--finalists",
                     str(self.rng.choice([0, 0, 3]))]
            self.submit(words)

    def submit(self, words: list[str]) -> None:
        """Submits a job, again and again while the scheduler that a fault ended starts again."""
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            submitted = self.farm.client(*words)
            if submitted.returncode == 0:
                return
            if "cannot reach a scheduler" not in submitted.stderr or time.monotonic() > give_up:
                raise RuntimeError(f"kiln {' '.join(words)}: {submitted.stderr}")
            time.sleep(0.2)

    def resume_set_aside(self) -> int:
        """Goes on with jobs whose scheduler died twice without a result, as their message says."""
        aside = [job for job, row in self.invariants.database.states().items()
                 if row[0] == "failed" and SET_ASIDE in row[1]]
        for job in aside:
            self.farm.client("jobs", "resume", job)
        return len(aside)

    def next_fault(self) -> faults.Fault:
        """Draws a fault; all kinds have their turn before one comes again."""
        if not self.deck:
            allowed, kinds = faults.properties(self.farm), self.flags.kinds.split(",")
            self.deck = [fault for fault in faults.FAULTS
                         if fault.needs <= allowed and (not self.flags.kinds or fault.kind in kinds)]
            self.rng.shuffle(self.deck)
        return self.deck.pop()

    def await_results_of_all(self) -> None:
        """Waits until each job that runs has a result since the scheduler last died."""
        if self.at_death is None:
            return

        def done() -> bool:
            newest = self.invariants.database.newest_of_jobs()
            return all(newest.get(job, 0) > self.at_death.get(job, 0)
                       for job, row in self.invariants.database.states().items() if row[0] == "running")

        processes.wait_until(done, 30, 0.05)

    def one_fault(self, number: int) -> Row:
        fault = self.next_fault()
        self.top_up()
        if fault.ends_scheduler:
            self.await_results_of_all()
        print(f"{time.strftime('%H:%M:%S')} {number:4} {self.shape:6} {fault.kind}: ", end="", flush=True)
        done = fault.run(self.farm, self.rng)
        print(done.what, end="", flush=True)
        if fault.ends_scheduler:
            self.at_death = self.invariants.database.newest_of_jobs()
        if self.top_up():
            # All jobs had ended meanwhile.
            done.since = time.monotonic()
        pauses = self.sampler.pauses(done.since)
        if pauses is None:
            why = "".join(self.farm.client("why", job).stdout for job, row in self.invariants.database.states().items()
                          if row[0] in ("queued", "running"))
            raise RuntimeError(f"no {_RESULTS} results within {_PATIENCE_S} s:\n{why}")
        print(f"; next result {pauses[0]:.2f} s, longest pause {pauses[1]:.2f} s", flush=True)
        if resumed := self.resume_set_aside():
            print(f"     {resumed} jobs were set aside, and go on")
        self.raise_for([f"process {pid} outlived it: {processes.command_of(pid)}" for pid in done.left])
        self.raise_for(self.invariants.after_fault())
        return Row(number, self.shape, fault.kind, done.what, *pauses)

    def end(self) -> None:
        """Waits for the jobs, stops the farm, and checks what is left."""

        def all_ended() -> bool:
            self.resume_set_aside()
            return all(row[0] not in ("queued", "running") for row in self.invariants.database.states().values())

        processes.wait_until(all_ended, 600, 0.2)
        self.raise_for(self.invariants.at_end())
        counts = self.invariants.counts()
        self.sampler.close()
        self.raise_for(self.farm.down())
        self.raise_for(self.invariants.after_stop(self.own))
        print(f"     {self.shape}: {counts}; all invariants hold at the end", flush=True)

    @staticmethod
    def raise_for(wrong: list[str]) -> None:
        if wrong:
            raise RuntimeError("\n".join(wrong))


def _make_boxes(flags: argparse.Namespace, folder: pathlib.Path) -> None:
    """Makes a second network namespace, with a cable to it. Needs a network namespace of this program's own."""
    other = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    flags.box = other.pid
    here = os.readlink("/proc/self/ns/net")
    processes.wait_until(lambda: os.readlink(f"/proc/{other.pid}/ns/net") != here, 10)
    inside = ["nsenter", "-t", str(other.pid), "-n"]
    for words in (["ip", "link", "add", "cable1", "type", "veth", "peer", "name", "cable2"],
                  ["ip", "link", "set", "cable2", "netns", str(other.pid)],
                  ["ip", "link", "set", "lo", "up"], ["ip", "address", "add", "10.78.0.1/24", "dev", "cable1"],
                  ["ip", "link", "set", "cable1", "up"], [*inside, "ip", "link", "set", "lo", "up"],
                  [*inside, "ip", "address", "add", "10.78.0.2/24", "dev", "cable2"],
                  [*inside, "ip", "link", "set", "cable2", "up"]):
        subprocess.run(words, check=True)
    flags.disk = folder / "disk"
    flags.disk.mkdir()


def _fresh_disk(flags: argparse.Namespace) -> None:
    """An empty disk for the database."""
    subprocess.run(["umount", str(flags.disk)], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(flags.disk)], check=True)


def _report(rows: list[Row]) -> None:
    """Seconds by kind of fault."""
    print(f"\n{'kind':<24}{'faults':>7}{'next result, median':>21}{'most':>8}{'longest pause, median':>23}{'most':>8}")

    def line(name: str, some: list[Row]) -> None:
        next_s, pause_s = [row.next_s for row in some], [row.pause_s for row in some]
        print(f"{name:<24}{len(some):>7}{statistics.median(next_s):>21.2f}{max(next_s):>8.2f}"
              f"{statistics.median(pause_s):>23.2f}{max(pause_s):>8.2f}")

    for kind in dict.fromkeys(fault.kind for fault in faults.FAULTS):
        if some := [row for row in rows if row.kind == kind]:
            line(kind, some)
    if kills := [row for row in rows if row.kind.startswith("kill")]:
        line("all kills", kills)


def _end_all(own: set[int]) -> None:
    for pid in reversed([pid for pid in processes.descendants(os.getpid()) if pid not in own]):
        processes.send(pid, 9)
    processes.reap()


def run(flags: argparse.Namespace, folder: pathlib.Path, rows: list[Row]) -> None:
    rng = random.Random(flags.seed)
    shapes = flags.shapes.split(",")
    if "boxes" in shapes:
        _make_boxes(flags, folder)
    for number in range((flags.faults + flags.per_farm - 1) // flags.per_farm):
        shape = shapes[number % len(shapes)]
        if shape == "boxes":
            _fresh_disk(flags)
        part = Round(flags, shape, folder / f"{number}-{shape}", random.Random(rng.getrandbits(60)))
        while len(rows) < min(flags.faults, (number + 1) * flags.per_farm):
            rows.append(part.one_fault(len(rows)))
        part.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--per-farm", type=int, default=20)
    parser.add_argument("--shapes", default="plain,single,farm,keys")
    parser.add_argument("--kinds", default="", help="only these kinds of faults, with commas between")
    parser.add_argument("--longest", type=float, default=60, help="seconds that a fault may last")
    parser.add_argument("--trials", type=int, default=800, help="trials of a job, at least")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    parser.add_argument("--liar", default="", help="PYTHONPATH of the messages, for workers that lie")
    parser.add_argument("--clock", default="", help="the library of clock_offset.c")
    parser.add_argument("--report", default=None, help="write a line of JSON for each fault")
    flags = parser.parse_args()
    flags.kiln = os.path.abspath(flags.kiln)
    processes.adopt_orphans()
    own = set(processes.descendants(os.getpid()))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-chaos.", dir=flags.folder))
    rows: list[Row] = []
    print(f"seed {flags.seed}, {flags.faults} faults", flush=True)
    try:
        run(flags, folder, rows)
        ok = True
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"\nFAILED after {len(rows)} faults of seed {flags.seed}: {error}\nThe logs are in {folder}.", flush=True)
        ok = False
    finally:
        _end_all(own)
    if rows:
        _report(rows)
    if flags.report:
        pathlib.Path(flags.report).write_text("".join(json.dumps(dataclasses.asdict(row)) + "\n" for row in rows))
    if hasattr(flags, "disk"):
        subprocess.run(["umount", "--lazy", str(flags.disk)], check=False, stderr=subprocess.DEVNULL)
    if ok and not flags.keep:
        shutil.rmtree(folder)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
