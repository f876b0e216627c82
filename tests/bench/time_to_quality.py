#!/usr/bin/python3
"""How fast policies find fast programs: the jobs of databases as a table and plots.

usage: time_to_quality.py report --out FOLDER [--job ID]... DB...
           writes FOLDER/time_to_quality.md, time_to_quality_trials.svg and time_to_quality_seconds.svg
       time_to_quality.py pool --out DB DB...
           one database with the jobs of all: what a warm start learns from

A task's lines are its policies: random, analytic, xgb, and xgb warm-started (a job of sketch.xgb that was not told
--no-warm-start). Jobs of one policy that differ in their seed are one line: the median, with a band from the best to
the worst. Costs are the first readings of each trial. Seconds are since the job began, known at the end of each round.
Of a job of several tasks, such as a network's, the cost is the total latency: the sum over the tasks of weight x best,
once each has one; of tasks that are alternatives the fastest counts. A job that is in several databases counts once.
Jobs that ended otherwise than by succeeding are taken where --job ID... names them, and then none but those.
"""
import argparse
import bisect
import collections
import json
import math
import os
import shutil
import sqlite3
import statistics
import sys

POLICIES = ["random", "analytic", "xgb", "xgb warm-started"]
# The colour-blind can distinguish the colours, and the dashes differ in print.
COLOURS = {"random": "#767676", "analytic": "#0072b2", "xgb": "#d55e00", "xgb warm-started": "#009e73"}
DASHES = {"random": "2 3", "analytic": "7 3", "xgb": "", "xgb warm-started": ""}

# trials: best cost after each; seconds: (s, best).
Job = collections.namedtuple("Job", "id task policy trials seconds device")


# ---- reading ---------------------------------------------------------------------------------


def fields(message):
    """Numbers and values of the fields of a protobuf message; only what job specs have."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            value, at = message[at:at + 8], at + 8
        elif kind == 2:
            length = varint()
            value, at = message[at:at + length], at + length
        elif kind == 5:
            value, at = message[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def policy_of(spec):
    """Of a JobSpec (proto/scheduler.proto): options = 5; there policy = 3 and no_warm_start = 26."""
    policy, cold = "sketch.xgb", False
    for number, value in fields(spec):
        if number != 5:
            continue
        for option, content in fields(value):
            if option == 3:
                policy = content.decode() or policy
            elif option == 26:
                cold = content != 0
    name = policy.removeprefix("sketch.")
    return "xgb warm-started" if name == "xgb" and not cold else name


# alternative_of: None, or an index; network: "" for a task outside of networks.
Task = collections.namedtuple("Task", "index description weight alternative_of network")


def columns(db, schema, table):
    return [row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")]


def read_tasks(db, job_id):
    # Databases of older versions have no networks.
    network = "alternative_of, network" if "network" in columns(db, "main", "tasks") else "NULL, ''"
    rows = db.execute(f"SELECT task_index, description, weight, {network} FROM tasks WHERE job_id = ? ORDER BY task_index",
                      (job_id,))
    return [Task(index, text, 1.0 if weight is None else weight, *more) for index, text, weight, *more in rows]


def title_of(tasks, job_name):
    networks = {task.network for task in tasks}
    if len(networks) == 1 and "" not in networks:
        return networks.pop() + ", total latency"
    return tasks[0].description if len(tasks) == 1 else job_name + ", total latency"


def total_so_far(tasks, costs):
    """The sum of weight x best after each of (task, cost), infinite until each task has a cost."""
    # Alternatives name an earlier task.
    stands_for = {}
    for task in tasks:
        stands_for[task.index] = task.index if task.alternative_of is None else stands_for[task.alternative_of]
    weights = {task.index: task.weight for task in tasks if stands_for[task.index] == task.index}
    best = {index: math.inf for index in weights}
    out = []
    for index, cost in costs:
        task = stands_for[index]
        best[task] = min(best[task], cost)
        out.append(sum(weight * best[task] for task, weight in weights.items()))
    return out


def read_job(db, job_id, name, spec):
    """None: no program of some task is known to be right."""
    costs, device = [], ""
    for task, error, early, text, on in db.execute(
            "SELECT task_index, error, stopped_early, costs_s, device FROM records WHERE job_id = ? ORDER BY id", (job_id,)):
        readings = json.loads(text)
        counts = error == 0 and not early and readings
        costs.append((task, statistics.fmean(readings) if counts else math.inf))
        device = device or on
    tasks = read_tasks(db, job_id)
    best = total_so_far(tasks, costs)
    if not tasks or not best or not math.isfinite(best[-1]):
        return None
    seconds = []
    for elapsed, trials in db.execute("SELECT elapsed_s, trials FROM rounds WHERE job_id = ? ORDER BY number", (job_id,)):
        if elapsed is not None and 0 < trials <= len(best):
            seconds.append((elapsed, best[trials - 1]))
    return Job(job_id, title_of(tasks, name), policy_of(spec), best, seconds, device)


def read_jobs(path, wanted=()):
    if not os.path.exists(path):
        sys.exit(f"time_to_quality: there is no {path}")
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    jobs = []
    for job_id, name, state, spec in db.execute("SELECT id, name, state, spec FROM jobs ORDER BY number").fetchall():
        chosen = any(job_id.startswith(w) for w in wanted) if wanted else state == "succeeded"
        job = read_job(db, job_id, name, spec) if chosen and spec else None
        if job is not None:
            jobs.append(job)
    db.close()
    return jobs


def read_all(paths, wanted=()):
    """By task, then policy."""
    tasks, seen = {}, set()
    for path in paths:
        for job in read_jobs(path, wanted):
            if job.id not in seen:
                seen.add(job.id)
                tasks.setdefault(job.task, {}).setdefault(job.policy, []).append(job)
    return tasks


# ---- pooling ---------------------------------------------------------------------------------


def pool(sources, out):
    shutil.copyfile(sources[0], out)
    db = sqlite3.connect(out)
    for source in sources[1:]:
        db.execute("ATTACH ? AS other", (source,))
        db.execute("INSERT OR IGNORE INTO main.dags (digest, text) SELECT digest, text FROM other.dags")
        for table, own in (("jobs", "number"), ("tasks", ""), ("records", "id"), ("rounds", ""), ("computations", "")):
            names = [c for c in columns(db, "other", table) if c != own and c in columns(db, "main", table)]
            # The database is of an older version, which has no such table.
            if not names:
                continue
            values = ", ".join(
                "(SELECT m.id FROM main.dags m JOIN other.dags o USING (digest) WHERE o.id = t.dag_id)"
                if c == "dag_id" else f"t.{c}" for c in names)
            db.execute(f"INSERT OR IGNORE INTO main.{table} ({', '.join(names)}) SELECT {values} FROM other.{table} t")
        db.commit()
        db.execute("DETACH other")
    db.close()


# ---- figures ---------------------------------------------------------------------------------

# A reading is repeated until its median is known to this share (docs/runner.md).
READING_ERROR = 0.005


def first_at_most(values, bound):
    """How many values until one is at most `bound`; values fall. None: none is."""
    at = bisect.bisect_left([-v for v in values], -bound)
    return at + 1 if at < len(values) else None


def seconds_until(job, bound):
    for elapsed, best in job.seconds:
        if best <= bound:
            return elapsed
    return None


def format_s(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def reached(values, text):
    """The median of those jobs that got there, and how many did if not all."""
    there = [v for v in values if v is not None]
    if not there:
        return f"none of {len(values)}"
    share = "" if len(there) == len(values) else f" ({len(there)} of {len(values)})"
    return text(statistics.median(there)) + share


def table(tasks):
    lines = []
    devices = sorted({j.device for policies in tasks.values() for jobs in policies.values() for j in jobs if j.device})
    if devices:
        lines += [f"Device: {', '.join(devices)}.", ""]
    lines += [
        "| task | policy | jobs | trials | best | against random | trials until as good as random | seconds until |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |"
    ]
    for task, policies in tasks.items():
        random = policies.get("random")
        bound = statistics.median(job.trials[-1] for job in random) if random else None
        for policy in sorted(policies, key=order):
            jobs = policies[policy]
            best = statistics.median(job.trials[-1] for job in jobs)
            cells = [task, policy, len(jobs), max(len(job.trials) for job in jobs), format_s(best)]
            if bound is None:
                cells += ["-", "-", "-"]
            else:
                as_good = bound * (1 + READING_ERROR)
                cells += [f"x{bound / best:.2f}",
                          reached([first_at_most(j.trials, as_good) for j in jobs], lambda v: f"{v:.0f}"),
                          reached([seconds_until(j, as_good) for j in jobs], lambda v: f"{v:.1f}")]
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    lines += [
        "",
        "Best: the median over the jobs of a policy, which differ in their seed; first readings. Against random: how "
        "many times faster than the best of all random trials. The last two columns: the median of the trials, and of "
        "the seconds since the job began, after which a job was as good as that, within what a reading is known to "
        f"({READING_ERROR:.1%}), over the jobs that ever were; in brackets how many, where not all. Seconds are "
        "counted at the end of a round.",
        ""
    ]
    return "\n".join(lines)


def order(policy):
    return (POLICIES.index(policy) if policy in POLICIES else len(POLICIES), policy)


# ---- plots -----------------------------------------------------------------------------------

WIDTH, HEIGHT, PER_ROW = 340, 250, 3
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 30, 38


def curve_of_trials(job):
    """Where the best changes, and the end."""
    points = [(i + 1, b) for i, b in enumerate(job.trials)
              if math.isfinite(b) and (i == 0 or b < job.trials[i - 1] or i + 1 == len(job.trials))]
    return points


def curve_of_seconds(job):
    return [(s, b) for s, b in job.seconds if math.isfinite(b) and s > 0]


def at(points, x):
    """The best at x; None before the first."""
    place = bisect.bisect_right([p[0] for p in points], x)
    return points[place - 1][1] if place > 0 else None


def merged(curves):
    """x, least, median, largest, wherever one of the curves has a point and all have begun, until the first ends."""
    curves = [c for c in curves if c]
    if not curves:
        return []
    begin, end = max(c[0][0] for c in curves), min(c[-1][0] for c in curves)
    xs = sorted({p[0] for c in curves for p in c if begin <= p[0] <= end} | {begin})
    out = []
    for x in xs:
        values = sorted(at(c, x) for c in curves)
        out.append((x, values[0], statistics.median(values), values[-1]))
    return out


def ticks(low, high):
    """Round numbers on a logarithmic axis: as many as fit."""
    for steps in ((1, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [s * 10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for s in steps
                 if low <= s * 10.0**e <= high]
        if len(found) <= 6:
            return found
    return found[::math.ceil(len(found) / 6)]


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text_at(x, y, text, anchor="middle", size=11, colour="#333", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{colour}">{escape(text)}</text>')


class Panel:
    """One task: lines of its policies on logarithmic axes."""

    def __init__(self, x, y, title, lines):
        self.x, self.y, self.title, self.lines = x, y, title, lines
        xs = [p[0] for points in lines.values() for p in points]
        ys = [v for points in lines.values() for p in points for v in (p[1], p[3])]
        self.x_low, self.x_high = min(xs), max(max(xs), 1.01 * min(xs))
        # The first readings of a search are much slower than the best one, so the axis ends at 8
        # times the best.
        self.y_low = min(ys) * 0.93
        self.y_high = max(min(max(ys), 8 * min(ys)), 1.2 * min(ys)) * 1.04

    def px(self, x):
        part = math.log(x / self.x_low) / math.log(self.x_high / self.x_low)
        return self.x + LEFT + part * (WIDTH - LEFT - RIGHT)

    def py(self, y):
        part = math.log(min(y, self.y_high) / self.y_low) / math.log(self.y_high / self.y_low)
        return self.y + HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def steps(self, points, column):
        """A staircase: the best stays until it is beaten."""
        out, last = [], None
        for point in points:
            if last is not None:
                out.append((self.px(point[0]), last))
            last = self.py(point[column])
            out.append((self.px(point[0]), last))
        return out

    def draw(self, x_label):
        left, right = self.x + LEFT, self.x + WIDTH - RIGHT
        top, bottom = self.y + TOP, self.y + HEIGHT - BOTTOM
        out = [text_at(self.x + WIDTH / 2, self.y + 18, self.title, size=min(12, round(540 / len(self.title), 1)),
                       weight="bold")]
        for value in ticks(self.x_low, self.x_high):
            px = self.px(value)
            out.append(f'<path d="M{px:.1f} {top}V{bottom}" stroke="#e4e4e4"/>')
            out.append(text_at(px, bottom + 14, f"{value:g}"))
        for value in ticks(self.y_low, self.y_high):
            py = self.py(value)
            out.append(f'<path d="M{left} {py:.1f}H{right}" stroke="#e4e4e4"/>')
            out.append(text_at(left - 5, py + 4, format_s(value), anchor="end"))
        out.append(f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#888"/>')
        out.append(text_at((left + right) / 2, bottom + 30, x_label))
        for policy in sorted(self.lines, key=order):
            points, colour = self.lines[policy], COLOURS.get(policy, "#cc79a7")
            if any(p[1] != p[3] for p in points):
                ring = self.steps(points, 1) + self.steps(points, 3)[::-1]
                path = "L".join(f"{x:.1f} {y:.1f}" for x, y in ring)
                out.append(f'<path d="M{path}Z" fill="{colour}" fill-opacity="0.13"/>')
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in self.steps(points, 2))
            dash = f' stroke-dasharray="{DASHES[policy]}"' if DASHES.get(policy) else ""
            out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}><title>'
                       f'{escape(policy)}: {format_s(points[-1][2])} at {points[-1][0]:g} {x_label}</title></path>')
        return out


def plot(tasks, curve_of, x_label, title):
    panels = []
    for task, policies in tasks.items():
        lines = {policy: merged([curve_of(job) for job in jobs]) for policy, jobs in policies.items()}
        lines = {policy: points for policy, points in lines.items() if points}
        if lines:
            panels.append((task, lines))
    across = min(PER_ROW, max(1, len(panels)))
    width, height = across * WIDTH, 52 + HEIGHT * math.ceil(len(panels) / across)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="Helvetica, Arial, sans-serif">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           text_at(12, 20, title, anchor="start", size=13)]
    x = 12
    for policy in sorted({p for _, lines in panels for p in lines}, key=order):
        dash = f' stroke-dasharray="{DASHES[policy]}"' if DASHES.get(policy) else ""
        out.append(f'<path d="M{x} 38H{x + 24}" stroke="{COLOURS.get(policy, "#cc79a7")}" stroke-width="2"{dash}/>')
        out.append(text_at(x + 29, 42, policy, anchor="start"))
        x += 48 + 7 * len(policy)
    for i, (task, lines) in enumerate(panels):
        out += Panel(WIDTH * (i % across), 48 + HEIGHT * (i // across), task, lines).draw(x_label)
    return "\n".join(out + ["</svg>", ""])


# ---- the command line ------------------------------------------------------------------------


def report(paths, out, wanted):
    tasks = read_all(paths, wanted)
    if not tasks:
        which = f"no job {', '.join(wanted)} with" if wanted else "no job that succeeded, with"
        sys.exit(f"time_to_quality: {which} a correct program of each task, in these databases")
    os.makedirs(out, exist_ok=True)
    files = {
        "time_to_quality.md": table(tasks),
        "time_to_quality_trials.svg": plot(tasks, curve_of_trials, "trials", "Best latency so far by trials"),
        "time_to_quality_seconds.svg": plot(tasks, curve_of_seconds, "seconds", "Best latency so far by seconds"),
    }
    for name, text in files.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(files["time_to_quality.md"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("command", choices=["report", "pool"])
    parser.add_argument("--out", required=True)
    parser.add_argument("--job", action="append", default=[])
    parser.add_argument("db", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "report":
        report(arguments.db, arguments.out, arguments.job)
    else:
        pool(arguments.db, arguments.out)


if __name__ == "__main__":
    main()
