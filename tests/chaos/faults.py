"""The faults: each is one row of FAULTS, which says what it needs and does it.

A fault returns a Done: what it did, and the moment from which the next result counts. That is the kill itself where
something is killed, and the end of the fault where the fault lasts.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

import processes
from farm import HandMadeFarm, SupervisedFarm

Farm = HandMadeFarm | SupervisedFarm
# The children of a killed daemon must be gone after so long.
_CHILDREN_S = 10


@dataclasses.dataclass
class Done:
    """What a fault did."""

    what: str
    since: float
    # Processes that must have ended after it, and did not.
    left: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A kind of fault. `needs` are properties of a farm: see `properties`."""

    kind: str
    needs: frozenset[str]
    run: Callable[[Farm, random.Random], Done]
    # The scheduler dies by it; each running job needs a result before the next such fault.
    ends_scheduler: bool = False


def properties(farm: Farm) -> set[str]:
    """What faults may use of the farm."""
    if isinstance(farm, SupervisedFarm):
        return {"supervisor"}
    found = {"hands"}
    if farm.proxies:
        found.add("proxies")
    if farm.shape.box.words:
        found.add("cable")
    if farm.shape.db_folder:
        found.add("small disk")
    if farm.shape.clock_library:
        found.add("clocks")
    if farm.liar_program:
        found.add("keys and liars" if farm.keys else "liars")
    return found


def _length(farm: Farm, rng: random.Random, choices: tuple[float, ...]) -> float:
    return rng.choice([seconds for seconds in choices if seconds <= farm.longest_s])


def _workers(farm: Farm, kind: str) -> list[str]:
    return [name for name in farm.names if name.startswith(kind)]


def _kill_daemon(kind: str) -> Callable[[Farm, random.Random], Done]:
    def run(farm: Farm, rng: random.Random) -> Done:
        name = rng.choice(_workers(farm, kind))
        below = farm.children(name)
        since = time.monotonic()
        farm.kill(name)
        farm.restart(name)
        return Done(f"kill -9 {name}", since, processes.all_ended(below, _CHILDREN_S))

    return run


def _kill_children(farm: Farm, rng: random.Random) -> Done:
    """Kills a child process of a builder. The runner of the device null has none."""
    name = rng.choice(_workers(farm, "builder"))
    below = farm.children(name)
    chosen = rng.sample(below, rng.randint(1, len(below))) if below else []
    since = time.monotonic()
    for pid in chosen:
        processes.send(pid, signal.SIGKILL)
    return Done(f"kill -9 of {len(chosen)} of {len(below)} processes below {name}", since,
                processes.all_ended(chosen, _CHILDREN_S))


def _kill_all(farm: Farm, rng: random.Random) -> Done:
    names = [name for name in farm.names if name != "supervisor"]
    rng.shuffle(names)
    below = [pid for name in names for pid in farm.children(name)]
    since = time.monotonic()
    for name in names:
        farm.kill(name)
    rng.shuffle(names)
    for name in names:
        farm.restart(name)
    return Done(f"kill -9 of all daemons; started again: {', '.join(names)}", since,
                processes.all_ended(below, _CHILDREN_S))


def _kill_supervisor(farm: Farm, _: random.Random) -> Done:
    below = farm.children("supervisor")
    since = time.monotonic()
    farm.kill("supervisor")
    left = processes.all_ended(below, _CHILDREN_S)
    farm.restart("supervisor")
    return Done("kill -9 supervisor", since, left)


def _kill_watcher(farm: Farm, rng: random.Random) -> Done:
    """Kills clients in the middle of WatchJob."""
    jobs = farm.client("jobs", "--json", "--limit", "2").stdout
    ids = [line.split('"id":"', 1)[1].split('"', 1)[0] for line in jobs.splitlines() if '"id":"' in line]
    clients = [farm.start_client("watch", job) for job in ids]
    time.sleep(rng.uniform(0.05, 1))
    since = time.monotonic()
    for client in clients:
        client.kill()
        client.wait()
    return Done(f"kill -9 of {len(clients)} clients that watch", since)


def _kill_submitter(farm: Farm, rng: random.Random) -> Done:
    """Kills a client at any moment of `kiln tune`: its job is there with all of its trials, or is not there."""
    size = rng.randrange(16, 512, 8)
    client = farm.start_client("tune", "matmul", "--args", f"{size},{size},24", "--target", "null", "--policy",
                               "sketch.random", "--trials", "60", "--no-warm-start", "--quiet")
    time.sleep(rng.uniform(0, 1.5))
    since = time.monotonic()
    client.kill()
    client.wait()
    return Done("kill -9 of a client that tunes", since)


def _stop_daemon(kind: str) -> Callable[[Farm, random.Random], Done]:
    def run(farm: Farm, rng: random.Random) -> Done:
        name = rng.choice(_workers(farm, kind))
        # A lease and a worker's place in the tracker's list end after 10 s.
        seconds = _length(farm, rng, (0.3, 1.0, 3.0, 12.0))
        pids = [farm.pid(name)]
        if rng.random() < 0.5:
            pids += farm.children(name)
        for pid in pids:
            processes.send(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            processes.send(pid, signal.SIGCONT)
        return Done(f"SIGSTOP of {name} and {len(pids) - 1} children for {seconds} s", time.monotonic())

    return run


def _with_proxies(say: str, change: Callable[[HandMadeFarm, str, random.Random], Callable[[], None]],
                  seconds: tuple[float, ...]) -> Callable[[Farm, random.Random], Done]:
    """A fault that changes some proxies, and takes the change back after a while."""

    def run(farm: Farm, rng: random.Random) -> Done:
        names = rng.sample(sorted(farm.proxies), rng.randint(1, len(farm.proxies)))
        length = _length(farm, rng, seconds)
        undo = [change(farm, name, rng) for name in names]
        time.sleep(length)
        for function in undo:
            function()
        return Done(f"{say} of {', '.join(names)} for {length} s", time.monotonic())

    return run


def _delay(farm: HandMadeFarm, name: str, rng: random.Random) -> Callable[[], None]:
    proxy = farm.proxies[name]
    proxy.delay_s = rng.choice([0.02, 0.2, 1.0])
    return lambda: setattr(proxy, "delay_s", 0.0)


def _silence(farm: HandMadeFarm, name: str, _: random.Random) -> Callable[[], None]:
    proxy = farm.proxies[name]
    proxy.is_silent = True
    return lambda: setattr(proxy, "is_silent", False)


def _cut(farm: Farm, rng: random.Random) -> Done:
    names = rng.sample(sorted(farm.proxies), rng.randint(1, len(farm.proxies)))
    cut = 0
    for _ in range(rng.randint(1, 5)):
        since = time.monotonic()
        cut += sum(farm.proxies[name].cut() for name in names)
        time.sleep(rng.uniform(0, 0.3))
    return Done(f"{cut} connections to {', '.join(names)} cut", since)


def _cable_down(farm: Farm, rng: random.Random) -> Done:
    seconds = _length(farm, rng, (0.5, 2.0, 5.0, 15.0))
    subprocess.run(["ip", "link", "set", "cable1", "down"], check=True)
    time.sleep(seconds)
    subprocess.run(["ip", "link", "set", "cable1", "up"], check=True)
    return Done(f"the cable to the workers down for {seconds} s", time.monotonic())


def _disk_full(farm: Farm, rng: random.Random) -> Done:
    """Fills the disk of the database to its last byte for a while."""
    seconds = _length(farm, rng, (0.5, 2.0, 6.0))
    path = os.path.join(farm.shape.db_folder, "filler")
    with open(path, "wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass
    time.sleep(seconds)
    os.remove(path)
    return Done(f"the disk of the database full for {seconds} s", time.monotonic())


def _clock_jump(farm: Farm, rng: random.Random) -> Done:
    """Sets clocks back for a while.

    Clocks are not set ahead: gRPC's timers sleep until a time of the kernel's clock, which stays as it is, so that they
    would sleep for as long as the clock is ahead (docs/experiments/chaos.md).
    """
    names = rng.sample(farm.names, rng.randint(1, len(farm.names)))
    offset = rng.choice([-86_400, -3_600, -30])
    for name in names:
        farm.set_clock(name, offset)
    time.sleep(3)
    for name in names:
        farm.set_clock(name, 0)
    return Done(f"the clock of {', '.join(names)} by {offset} s for 3 s", time.monotonic())


def _liar(kind: str, lies: tuple[str, ...]) -> Callable[[Farm, random.Random], Done]:
    """A worker that lies joins the farm for a while."""

    def run(farm: Farm, rng: random.Random) -> Done:
        lie = rng.choice(lies)
        seconds = rng.uniform(3, 6)
        command = [*farm.liar_program, kind, lie, "--tracker", farm.address_for_others("tracker"), "--keys", farm.keys,
                   "--foreign", farm.foreign_keys, "--seed", str(rng.getrandbits(30))]
        log = farm.folder / "liar.log"
        with open(log, "wb") as file:
            liar = subprocess.Popen(command, env=farm.environment, stdout=subprocess.PIPE, stderr=file, text=True)
        told = liar.stdout.readline().strip()
        time.sleep(seconds)
        liar.kill()
        liar.wait()
        calls = log.read_text(errors="replace").count(f"lies: {lie}")
        return Done(f"a {kind} that lies ({lie}) for {seconds:.1f} s, {told or 'which did not start'}; {calls} lies",
                    time.monotonic())

    return run


def _nothing(_: Farm, rng: random.Random) -> Done:
    time.sleep(rng.uniform(0, 1))
    return Done("nothing", time.monotonic())


_RUNNER_LIES = ("impossible", "forged", "foreign", "errors", "garbage", "silent")


def _row(kind: str, needs: str, run: Callable[[Farm, random.Random], Done], ends_scheduler: bool = False) -> Fault:
    return Fault(kind, frozenset(filter(None, needs.split(", "))), run, ends_scheduler)


FAULTS = [
    _row("nothing", "", _nothing),
    *[_row(f"kill {kind}", "", _kill_daemon(kind), kind == "scheduler")
      for kind in ("tracker", "scheduler", "builder", "runner")],
    _row("kill child", "", _kill_children),
    _row("kill all", "", _kill_all, True),
    _row("kill supervisor", "supervisor", _kill_supervisor, True),
    _row("kill client", "", _kill_watcher),
    _row("kill submitter", "", _kill_submitter),
    *[_row(f"stop {kind}", "", _stop_daemon(kind)) for kind in ("tracker", "scheduler", "builder", "runner")],
    _row("stop supervisor", "supervisor", _stop_daemon("supervisor")),
    _row("delay", "proxies", _with_proxies("connections delayed", _delay, (1.0, 4.0))),
    _row("silence", "proxies", _with_proxies("connections silent", _silence, (1.0, 4.0, 15.0))),
    _row("cut", "proxies", _cut),
    _row("cable", "cable", _cable_down),
    _row("full disk", "small disk", _disk_full),
    _row("clock", "clocks", _clock_jump),
    _row("lying runner", "liars", _liar("runner", _RUNNER_LIES)),
    _row("lying builder", "liars", _liar("builder", ("other", "garbage", "errors", "silent"))),
    _row("lying tracker calls", "liars", _liar("tracker", ("steal", "impersonate"))),
    _row("lying runner with keys", "keys and liars", _liar("runner", _RUNNER_LIES)),
    _row("forged signature", "keys and liars", _liar("builder", ("unsigned", "foreign-signature", "other"))),
    _row("stranger", "keys and liars", _liar("stranger", ("impersonate",))),
]
