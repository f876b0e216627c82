#!/usr/bin/env python3
"""How much faster a farm tunes with several GPUs of one host, and what it does when one goes away.

  several_gpus.py KILN --gpus 1,2 --seconds 120 --network network:resnet-50 [--out DIR]
  several_gpus.py KILN --gpus 1,2 --seconds 120 --op matmul --shape 4096,4096,4096 --dtype float16
  several_gpus.py KILN --gpus 1,2 --seconds 10 --device null --op matmul --shape 256,256,256

For each number of GPUs: `kiln farm up` with so many, in a folder and with a database of its own, and
one job that ends after --seconds. Counts trials and builds a second, the share of the time in which
each device was busy with trials, the CPU seconds of each process with its children, and the total
latency over time. Then, with the largest number: two jobs of users with the weights 1 and 3; and a
job of as many trials as the first one did, in which one runner is killed at a third of the time,
and the last one is stopped, as by a GPU that hangs, at two thirds. Of that job each trial must be
in the records once.

Prints a summary, and writes several_gpus.json and several_gpus.svg into --out. Ends with 1 if a
count is not exact or a job fails. Needs Python 3.10 and nothing else. The device null measures
nothing: it tries this script, not a machine.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

LONG = 10_000_000


def children():
    """The children of each process that there is, and the CPU seconds of each with those of ended children."""
    below, cpu = {}, {}
    tick = os.sysconf("SC_CLK_TCK")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = pathlib.Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        below.setdefault(int(fields[1]), []).append(int(name))
        cpu[int(name)] = sum(map(int, fields[11:15])) / tick
    return below, cpu


def cpu_seconds(pid):
    """The CPU seconds of a process and all below it."""
    below, cpu = children()
    seconds, left = 0.0, [pid]
    while left:
        one = left.pop()
        seconds += cpu.get(one, 0.0)
        left += below.get(one, [])
    return seconds


class Farm:
    """A farm of `kiln farm up` with so many devices, and a client of it."""

    def __init__(self, flags, gpus, folder):
        self.kiln, self.folder = flags.kiln, str(folder)
        devices = ["--device", "null"] * gpus
        if flags.device == "cuda":
            devices = ["--device", "cuda", "--devices", ",".join(map(str, range(gpus)))]
        words = [self.kiln, "farm", "up", "--folder", self.folder, "--json", *devices]
        if flags.workers:
            words += ["--workers", str(flags.workers)]
        up = subprocess.run(words, text=True, capture_output=True)
        if up.returncode != 0:
            raise RuntimeError(f"the farm with {gpus} devices is not up: {up.stderr.strip()}")
        self.state = json.loads(up.stdout)
        for note in self.state["notes"]:
            print(f"note: {note}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes():
            if process["name"].startswith("runner"):
                send(process["pid"], signal.SIGCONT)
        subprocess.run([self.kiln, "farm", "down", "--folder", self.folder], capture_output=True)

    def processes(self):
        status = subprocess.run([self.kiln, "farm", "status", "--folder", self.folder, "--json"],
                                text=True, capture_output=True)
        return json.loads(status.stdout)["processes"] if status.stdout else []

    def runners(self):
        return [process for process in self.processes() if process["name"].startswith("runner")]

    def address(self, name):
        return next(process["addresses"][0] for process in self.state["processes"]
                    if process["name"] == name)

    def words(self, *words):
        return [self.kiln, *words, "--secret-file", f"{self.folder}/secret"]

    def run(self, *words, user=None):
        environment = dict(os.environ)
        if user:
            environment.update(USER=user, LOGNAME=user)
        done = subprocess.run(self.words(*words, "--scheduler", self.address("scheduler")),
                              env=environment, text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"kiln {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def workers(self):
        listed = subprocess.run(self.words("workers", "--json", "--tracker", self.address("tracker")),
                                text=True, capture_output=True)
        return json.loads(listed.stdout)["workers"] if listed.returncode == 0 else []

    def users(self):
        return {user["name"]: user for user in
                map(json.loads, self.run("users", "list", "--json").splitlines())}

    def job(self, job):
        return json.loads(self.run("jobs", job, "--json"))["job"]

    def submit(self, flags, user, seed, *more):
        out = self.run("submit", *job_words(flags), "--trials", str(LONG), "--seed", str(seed),
                       "--no-warm-start", "--json", *more, user=user)
        return json.loads(out.splitlines()[-1])["job"]


def send(pid, number):
    if not pid:
        return
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def job_words(flags):
    words = [flags.network] if flags.network else [flags.op, "--args", flags.shape]
    words += ["--target", flags.device]
    if flags.dtype != "float32":
        words += ["--dtype", flags.dtype]
    if flags.batch:
        words += ["--batch", str(flags.batch)]
    if flags.policy:
        words += ["--policy", flags.policy]
    return words


class Names(threading.Thread):
    """Learns which runner has which id while a farm runs: a runner that is started again has another."""

    def __init__(self, farm):
        super().__init__(daemon=True)
        self.farm, self.names, self.over = farm, {}, threading.Event()

    def look(self):
        names = {address: process["name"] for process in self.farm.processes()
                 for address in process["addresses"]}
        for worker in self.farm.workers():
            if worker["address"] in names:
                self.names[worker["id"]] = names[worker["address"]]

    def run(self):
        while not self.over.wait(1.0):
            self.look()

    def __enter__(self):
        self.look()
        self.start()
        return self.names

    def __exit__(self, *_):
        self.over.set()
        self.join()


def records(farm, job):
    """Of each record of a job its trial, its runner's id, and the seconds that its steps took."""
    found = []
    process = subprocess.Popen(
        farm.words("records", "list", "--json", "--errors", "--job", job, "--scheduler",
                   farm.address("scheduler")), text=True, stdout=subprocess.PIPE)
    for line in process.stdout:
        record = json.loads(line)
        result = record["result"]
        found.append({"trial": record["trial"], "runner": result["runner"], "error": result["error"],
                      "build_s": result["build_s"], "run_s": result["run_s"],
                      "again_s": result["remeasured_run_s"]})
    if process.wait() != 0:
        raise RuntimeError(f"the records of job {job} cannot be listed")
    return found


def follow(farm, flags, seconds, at=(), trials=0):
    """Runs a job for so long, or until it has done so many trials, if that is a number.

    Calls each (part of the seconds, function) of `at` when it is its turn. Returns the job's id, its
    last status, and its rounds as (seconds, trials, total latency).
    """
    budget = ["--trials", str(trials)] if trials else ["--minutes", str(seconds / 60)]
    words = farm.words("tune", *job_words(flags), *budget, "--no-warm-start", "--seed", "1", "--finalists", "0",
                       "--json", "--scheduler", farm.address("scheduler"))
    process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    timers = [threading.Timer(part * seconds, act) for part, act in at]
    for timer in timers:
        timer.start()
    errors = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
    reader.start()
    job, rounds = None, []
    for line in process.stdout:
        event = json.loads(line)
        job = event.get("job", job)
        if event["event"] == "round":
            rounds.append((event["elapsed_s"], event["trials"], event["total_latency_s"]))
    code = process.wait()
    reader.join()
    for timer in timers:
        timer.cancel()
    if job is None:
        raise RuntimeError(f"no job was made: {errors[0].strip()}")
    if code != 0:
        print(f"kiln tune ended with {code}: {errors[0].strip()}")
    return job, farm.job(job), rounds


def cpu_of(farm):
    return {process["name"]: cpu_seconds(process["pid"])
            for process in farm.processes() if process["pid"]}


def counts(found):
    """How many records there are, and which trials are missing or there again."""
    trials = sorted(record["trial"] for record in found)
    missing = len(set(range(len(trials))) - set(trials))
    return {"records": len(trials), "missing": missing, "again": len(trials) - len(set(trials))}


def by_runner(found, names, seconds):
    rows = {}
    for record in found:
        name = names.get(record["runner"], "no runner" if not record["runner"] else record["runner"])
        row = rows.setdefault(name, {"trials": 0, "busy_s": 0.0})
        row["trials"] += 1
        row["busy_s"] += record["run_s"] + record["again_s"]
    for row in rows.values():
        row["busy_share"] = row["busy_s"] / seconds
    return rows


def measure(flags, gpus, folder):
    """One job on so many devices."""
    with Farm(flags, gpus, folder) as farm, Names(farm) as names:
        places = {process["name"]: {"device": process["device"], "cores": process["cores"]}
                  for process in farm.processes()}
        before = cpu_of(farm)
        job, status, rounds = follow(farm, flags, flags.seconds)
        after = cpu_of(farm)
        found = records(farm, job)
        seconds = status["elapsed_s"]
        built = [record for record in found if record["build_s"] > 0]
        return {
            "gpus": gpus, "job": job, "state": status["state"], "seconds": seconds,
            "trials": status["trials_done"], "trials_per_s": status["trials_done"] / seconds,
            "builds": len(built), "builds_per_s": len(built) / seconds,
            "build_s": sum(record["build_s"] for record in built),
            "errors": sum(record["error"] != "NO_ERROR" for record in found),
            "busy_share_of_the_job": status["busy_share"], "places": places, "counts": counts(found),
            "runners": by_runner(found, names, seconds),
            "cpu_s": {name: after[name] - before.get(name, 0.0) for name in after},
            "rounds": rounds, "last_latency_s": last_latency(rounds)}


def last_latency(rounds):
    latencies = [latency for _, _, latency in rounds if latency]
    return latencies[-1] if latencies else None


def share(flags, gpus, folder):
    """Two jobs of two users: what each has had of the devices within the window."""
    with Farm(flags, gpus, folder) as farm:
        farm.run("users", "set", "ann", "--weight", "1")
        farm.run("users", "set", "bob", "--weight", "3")
        jobs = [farm.submit(flags, "ann", 1), farm.submit(flags, "bob", 2)]
        end = time.time() + 120

        def had():
            users = farm.users()
            return [users.get(name, {}).get("used_device_s", 0.0) for name in ("ann", "bob")]

        while min(had()) == 0.0 and time.time() < end:
            time.sleep(0.5)
        # A user who comes later is behind at first.
        time.sleep(flags.seconds * 0.1)
        begin, start = had(), time.time()
        time.sleep(flags.seconds)
        last, seconds = had(), time.time() - start
        for job in jobs:
            farm.run("cancel", job)
    own = [b - a for a, b in zip(begin, last)]
    return {"gpus": gpus, "seconds": seconds, "ann_device_s": own[0], "bob_device_s": own[1],
            "share_of_ann": own[0] / sum(own) if sum(own) else None, "expected": 0.25}


def lose(flags, gpus, trials, folder):
    """A runner is killed, and another one stopped, while a job of so many trials runs."""
    events = []
    with Farm(flags, gpus, folder) as farm, Names(farm) as names:
        begin = time.time()

        def act(number, index, what):
            runner = farm.runners()[index]
            send(runner["pid"], number)
            events.append({"at_s": time.time() - begin, "what": f"{runner['name']} is {what}"})

        plan = [(1 / 3, lambda: act(signal.SIGKILL, 0, "killed"))]
        if gpus > 1:
            plan.append((2 / 3, lambda: act(signal.SIGSTOP, -1, "stopped")))
        job, status, _ = follow(farm, flags, flags.seconds, plan, trials)
        found = records(farm, job)
        result = counts(found)
        restarts = {runner["name"]: runner["restarts"] for runner in farm.runners()}
    exact = result == {"records": trials, "missing": 0, "again": 0} and status["trials_done"] == trials
    return {"gpus": gpus, "job": job, "trials": trials, "state": status["state"], "events": events,
            "restarts": restarts, "trials_done": status["trials_done"], "counts": result,
            "exact": exact, "runners": by_runner(found, names, status["elapsed_s"])}


COLOURS = ["#1b6ca8", "#c8553d", "#3d8b37", "#7a4fa3", "#b8860b", "#444444"]


def plot(results):
    """The total latency over time for each number of devices, as SVG."""
    width, height, left, top, bottom = 760, 420, 80, 40, 50
    curves = [(result["gpus"], [(s, latency * 1e3) for s, _, latency in result["rounds"] if latency])
              for result in results]
    points = [point for _, curve in curves for point in curve]
    if not points:
        return None
    most_s = max(s for s, _ in points)
    low, high = min(ms for _, ms in points), max(ms for _, ms in points)
    # The first latencies are far above all later ones.
    high = min(high, low * 4)
    low, high = low * 0.95, max(high, low * 1.1)

    def at(s, ms):
        x = left + (width - left - 20) * s / most_s
        y = top + (height - top - bottom) * (1 - (min(ms, high) - low) / (high - low))
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="24" font-size="15">Total latency (ms) over seconds of tuning</text>']
    for i in range(5):
        ms, s = low + (high - low) * i / 4, most_s * i / 4
        x, y = at(0, ms).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{width - 20}" y2="{y}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y}" text-anchor="end">{ms:.3g}</text>')
        x = at(s, low).split(",")[0]
        parts.append(f'<text x="{x}" y="{height - bottom + 20}" text-anchor="middle">{s:.0f}</text>')
    for i, (gpus, curve) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(at(s, ms) for s, ms in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{width - 120}" y="{top + 20 + 18 * i}" fill="{colour}">'
                     f'{gpus} device{"" if gpus == 1 else "s"}</text>')
    return "\n".join(parts + ["</svg>\n"])


def say(result):
    latency = result["last_latency_s"]
    print(f"{result['gpus']} device(s): {result['trials']} trials in {result['seconds']:.1f} s, "
          f"{result['trials_per_s']:.2f} trials/s, {result['builds_per_s']:.2f} builds/s, "
          f"{result['errors']} errors, total latency "
          f"{f'{latency * 1e3:.4g} ms' if latency else 'not known'}; {result['counts']}")
    for name, row in sorted(result["runners"].items()):
        print(f"  {name}: {row['trials']} trials, busy {row['busy_share']:.1%}")
    print("  CPU s: " + ", ".join(f"{name} {s:.1f}" for name, s in result["cpu_s"].items()))
    print("  cores: " + ", ".join(f"{name} {place['cores'] or 'any'}"
                                  for name, place in result["places"].items()), flush=True)


def whole(flags, folder):
    numbers = [int(number) for number in flags.gpus.split(",")]
    report = {"command": sys.argv[1:], "cores": os.cpu_count(), "runs": []}
    out = pathlib.Path(flags.out)
    out.mkdir(parents=True, exist_ok=True)

    def keep():
        (out / "several_gpus.json").write_text(json.dumps(report, indent=1) + "\n")

    ok = True
    for gpus in numbers:
        result = measure(flags, gpus, folder / f"farm{gpus}")
        say(result)
        report["runs"].append(result)
        ok &= result["state"] == "SUCCEEDED"
        keep()
    picture = plot(report["runs"])
    if picture:
        (out / "several_gpus.svg").write_text(picture)
    if not flags.no_shares:
        report["shares"] = share(flags, max(numbers), folder / "shares")
        print(f"shares of weights 1 and 3: {report['shares']}", flush=True)
        keep()
    if not flags.no_losses:
        trials = max(run["trials"] for run in report["runs"])
        report["losses"] = lose(flags, max(numbers), trials, folder / "losses")
        print(f"losses: {report['losses']}", flush=True)
        ok &= report["losses"]["exact"] and report["losses"]["state"] == "SUCCEEDED"
        keep()
    print("as expected" if ok else "NOT as expected")
    return 0 if ok else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--gpus", default="1,2", help="numbers of devices, as in 1,2,4")
    parser.add_argument("--seconds", type=float, default=120, help="of each job")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--network", help="network:NAME or a model's file")
    what.add_argument("--op", help="an operator, with --shape")
    parser.add_argument("--shape", help="its arguments")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch", type=int, default=0, help="of a network")
    parser.add_argument("--policy", default="", help="of the search [kiln tune's own]")
    parser.add_argument("--device", default="cuda", choices=["cuda", "null"])
    parser.add_argument("--workers", type=int, default=0, help="builds at a time; 0 = one per core")
    parser.add_argument("--out", default=".", help="folder of the results")
    parser.add_argument("--no-shares", action="store_true", help="leave the two users out")
    parser.add_argument("--no-losses", action="store_true", help="leave the lost runners out")
    flags = parser.parse_args()
    if flags.op and not flags.shape:
        parser.error("--op needs --shape")
    flags.kiln = os.path.abspath(flags.kiln)
    for name in list(os.environ):
        if name.startswith("KILN_"):
            del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        return whole(flags, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
