#!/usr/bin/python3
"""How long a scheduler's answers take that a dashboard needs, over a large database.

  query_latency.py KILN --db DB [--messages PYTHONPATH] [--fill] [--calls 200] [--only TEXT] [--json FILE]

DB is one that records_scale.py has filled with imported records. --fill adds jobs to it, once: a small job is tuned on
the device null, and copied into 300 jobs of 1,000 trials, of 20 users, and one of 20,000 trials with 313 rounds.
Every twentieth of their trials has failed; the audit gets 20,000 entries. Then a scheduler of KILN is started on the
file, and each query is asked --calls times over one connection, after one call that is not counted and stands in the
column "first". Prints the median and the 99th percentile of the milliseconds from the call to the last message of its
answer. Needs python3-grpcio, and the package that python/make_protos.sh makes in PYTHONPATH (or --messages).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

JOBS, TRIALS, LONG_TRIALS, USERS, ROUNDS, AUDIT = 300, 1_000, 20_000, 20, 313, 20_000
LONG_JOB = "long0001"
# Trials of the job that is copied, of a computation of 56x56 outputs.
_SEED_TRIALS = 64
_NEVER = 1 << 31


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns that rows are copied by; generated ones are left out."""
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def copy_rows(connection: sqlite3.Connection, table: str, where: str, changed: dict[str, str], join: str = "",
              values: tuple = ()) -> None:
    """Copies the rows of the table; `changed` has an SQL expression for each column that differs."""
    columns = [name for name in columns_of(connection, table) if changed.get(name) != ""]
    wanted = ", ".join(changed.get(name, "t." + name) for name in columns)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {wanted} FROM {table} t {join} WHERE {where}", values)


def copy_job(connection: sqlite3.Connection, seed: str, job: str, user: str, trials: int, ago_s: int) -> None:
    copy_rows(connection, "jobs", "t.id = ?",
              {"number": "", "id": f"'{job}'", "user": f"'{user}'", "trials": str(trials),
               "created_ms": f"t.created_ms - {1000 * ago_s}", "finished_ms": f"t.finished_ms - {1000 * ago_s}"},
              values=(seed,))
    copy_rows(connection, "tasks", "t.job_id = ?", {"job_id": f"'{job}'"}, values=(seed,))
    # A cost that looks random, and differs from trial to trial.
    spread = "(1 + ((n.value * 64 + t.trial) * 7919 % 10007) / 10007.0)"
    failed = "(n.value * 64 + t.trial) % 20 = 7"
    copy_rows(connection, "records", "t.job_id = ? AND n.value * 64 + t.trial < ?",
              {"id": "", "job_id": f"'{job}'", "trial": "n.value * 64 + t.trial",
               "mean_cost_s": f"iif({failed}, NULL, t.mean_cost_s * {spread})",
               "costs_s": f"iif({failed}, '[]', '[' || (t.mean_cost_s * {spread}) || ']')",
               "error": f"iif({failed}, 4 + n.value % 3, 0)",
               "message": f"iif({failed}, 'failed on purpose', '')",
               "timestamp_s": f"t.timestamp_s - {ago_s} + n.value"},
              join="JOIN (WITH RECURSIVE c (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM c WHERE value < "
              f"{trials // _SEED_TRIALS + 1}) SELECT value FROM c) n", values=(seed, trials))


def fill(kiln: str, db: str) -> None:
    tuned = subprocess.run(
        [kiln, "tune", "matmul", "--args", "56,56,64", "--target", "null", "--policy", "sketch.random", "--trials",
         str(_SEED_TRIALS), "--db", db, "--quiet", "--no-warm-start"], capture_output=True, text=True, check=False)
    if tuned.returncode != 0:
        sys.exit(f"kiln tune: {tuned.stderr}")
    connection = sqlite3.connect(db)
    seed = connection.execute("SELECT id FROM jobs WHERE id != 'import' ORDER BY number DESC").fetchone()[0]
    for i in range(JOBS):
        copy_job(connection, seed, f"many{i:04}", f"user{i % USERS:02}", TRIALS, 3600 * (JOBS - i))
    copy_job(connection, seed, LONG_JOB, "user00", LONG_TRIALS, 60)
    connection.execute("DELETE FROM rounds WHERE job_id = ?", (LONG_JOB,))
    for number in range(ROUNDS):
        connection.execute(
            "INSERT INTO rounds (job_id, number, task_index, elapsed_s, trials, total_latency_s, best_s, search_s, "
            "report) VALUES (?, ?, 0, ?, ?, ?, ?, 0.1, ?)",
            (LONG_JOB, number, 10.0 * number, 64 * number, 1e-3 / (number + 1), f"[{1e-3 / (number + 1)}]",
             "round: 64 candidates of 5,000 samples\n" * 20))
    for number in range(USERS):
        connection.execute("INSERT OR IGNORE INTO users (name, device_s) VALUES (?, 1)", (f"user{number:02}",))
    for number in range(AUDIT):
        connection.execute("INSERT INTO audit (at_ms, user, call, subject, refused) VALUES (?, ?, ?, ?, '')",
                           (1_700_000_000_000 + number, f"user{number % USERS:02}", "Scheduler.Submit", "job x"))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


class Scheduler:
    """A scheduler of `kiln` on the database, without a tracker."""

    def __init__(self, kiln: str, db: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self._folder.name) / "port"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        self._process = subprocess.Popen(
            [kiln, "scheduler", "--listen", "127.0.0.1:0", "--tracker", "127.0.0.1:9", "--db", db, "--unfinished",
             "none", "--port-file", str(port_file), "--log-level", "error"], env=environment)
        while not port_file.exists() or not port_file.read_text().endswith("\n"):
            if self._process.poll() is not None:
                sys.exit("the scheduler does not start")
            time.sleep(0.01)
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def _first(stream, most: int) -> int:
    """Reads so many records of a stream of events, and gives the rest up."""
    count = 0
    for event in stream:
        count += event.HasField("record")
        if count == most:
            stream.cancel()
            break
    return count


def queries(stub, messages, db: str) -> dict[str, Callable[[], int]]:
    """The queries by name. Each returns the number of what it got."""
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    key, = connection.execute("SELECT workload_key FROM records WHERE id = 4711").fetchone()
    own_id, newest_s = connection.execute(
        "SELECT workload_id, timestamp_s FROM records WHERE job_id = ? ORDER BY trial DESC", (LONG_JOB,)).fetchone()
    connection.close()

    def records(**fields) -> int:
        return sum(1 for _ in stub.ListRecords(messages.ListRecordsRequest(**fields)))

    def watch(from_trial: int, most: int) -> int:
        return _first(stub.WatchJob(messages.WatchJobRequest(job_id=LONG_JOB, from_trial=from_trial)), most)

    def users(**fields) -> int:
        return len(stub.ListUsers(messages.ListUsersRequest(**fields)).users)

    def job(name: str):
        return stub.GetJob(messages.GetJobRequest(job_id=name))

    return {
        "best of an imported key": lambda: len(stub.Best(messages.BestRequest(workload_keys=[key])).records),
        "best 5 of an imported key": lambda: records(workload_keys=[key], top=5),
        "best 5 of a computation of 320,000": lambda: records(workload_id=own_id, top=5),
        "best 5 of all": lambda: records(top=5),
        "best 5 of all for a target": lambda: records(top=5, target="llvm"),
        "best 5 since a day ago": lambda: records(top=5, since_s=newest_s - 86_400),
        "best 5 since 100 days ago": lambda: records(top=5, since_s=newest_s - 100 * 86_400),
        "best 5 of a computation since": lambda: records(workload_id=own_id, top=5, since_s=newest_s - 86_400),
        "jobs, newest 50": lambda: len(stub.ListJobs(messages.ListJobsRequest(limit=50)).jobs),
        "a job of 20,000: tasks, errors": lambda: job(LONG_JOB).trials_done,
        "a job of 1,000: tasks, errors": lambda: job("many0150").trials_done,
        "trials of 20,000: 100 from 0": lambda: watch(0, 100),
        "trials of 20,000: 100 from 10,000": lambda: watch(10_000, 100),
        "trials of 20,000: 100 from 19,900": lambda: watch(19_900, 100),
        "curve of 20,000: its rounds": lambda: watch(_NEVER, 0),
        "best 5 of a job of 20,000": lambda: records(job_id=LONG_JOB, top=5),
        "record by id": lambda: stub.GetRecord(messages.GetRecordRequest(id=500_000)).trial,
        "users' shares": lambda: users(without_sums=True),
        "users' shares with sums": users,
        "one user with sums": lambda: users(name="user07"),
        "audit, newest 100": lambda: len(stub.ListAudit(messages.ListAuditRequest(limit=100)).entries),
    }


def measure(ask: Callable[[], int], calls: int) -> tuple[float, list[float], int]:
    begin = time.perf_counter()
    count = ask()
    first_ms = 1e3 * (time.perf_counter() - begin)
    if first_ms > 2000:
        calls = min(calls, 10)
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        ask()
        times.append(1e3 * (time.perf_counter() - begin))
    return first_ms, sorted(times), count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--db", required=True)
    parser.add_argument("--messages", default="")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--only", default="", help="only queries whose name has this text")
    parser.add_argument("--json", default="")
    flags = parser.parse_args()
    kiln = os.path.abspath(flags.kiln)
    if flags.fill:
        fill(kiln, flags.db)
    if flags.messages:
        sys.path.insert(0, flags.messages)
    import grpc
    from kiln.proto import scheduler_pb2, scheduler_pb2_grpc

    scheduler = Scheduler(kiln, flags.db)
    results = {}
    try:
        with grpc.insecure_channel(scheduler.address, [("grpc.max_receive_message_length", 1 << 28)]) as channel:
            stub = scheduler_pb2_grpc.SchedulerStub(channel)
            print(f"{'query':<40}{'answer':>8}{'first ms':>10}{'p50 ms':>9}{'p99 ms':>9}{'calls':>7}", flush=True)
            for name, ask in queries(stub, scheduler_pb2, flags.db).items():
                if flags.only not in name:
                    continue
                first_ms, times, count = measure(ask, flags.calls)
                p99 = times[min(len(times) - 1, round(0.99 * len(times)))]
                results[name] = {"first_ms": first_ms, "p50_ms": statistics.median(times), "p99_ms": p99}
                print(f"{name:<40}{count:>8}{first_ms:>10.1f}{statistics.median(times):>9.2f}{p99:>9.2f}"
                      f"{len(times):>7}", flush=True)
    finally:
        scheduler.stop()
    if flags.json:
        pathlib.Path(flags.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
