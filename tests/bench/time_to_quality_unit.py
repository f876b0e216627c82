"""Tests of time_to_quality.py on databases made here."""
import json
import math
import os
import sqlite3
import tempfile
import unittest
import xml.dom.minidom

import time_to_quality as ttq


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def spec(policy, cold):
    # trials 64, policy
    options = b"\x08\x40" + b"\x1a" + varint(len(policy)) + policy.encode()
    if cold:
        options += varint(26 << 3) + b"\x01"
    # name, options
    return b"\x0a\x01x" + b"\x2a" + varint(len(options)) + options


class Database:
    """As store/sqlite_store.cc makes them, as far as it is read."""

    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.executescript("""
            CREATE TABLE dags (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
            CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, state TEXT, spec BLOB);
            CREATE TABLE tasks (job_id TEXT, task_index INTEGER, description TEXT, dag_id INTEGER, weight REAL,
                                alternative_of INTEGER, network TEXT DEFAULT '', PRIMARY KEY (job_id, task_index));
            CREATE TABLE records (id INTEGER PRIMARY KEY, job_id TEXT, task_index INTEGER, trial INTEGER, dag_id INTEGER,
                                  costs_s TEXT, error INTEGER, stopped_early INTEGER, device TEXT,
                                  UNIQUE (job_id, trial));
            CREATE TABLE rounds (job_id TEXT, number INTEGER, elapsed_s REAL, trials INTEGER,
                                 PRIMARY KEY (job_id, number));""")

    def job(self, job_id, task, policy, costs, cold=False, state="succeeded", dag="text"):
        """A round each two trials, a second each."""
        return self.network(job_id, [(task, None, None)], policy, [(0, cost) for cost in costs], cold, state, dag)

    def network(self, job_id, tasks, policy, costs, cold=False, state="succeeded", dag="text", network=""):
        """Of tasks (description, weight, alternative_of) and trials (task, cost)."""
        self.db.execute("INSERT OR IGNORE INTO dags (digest, text) VALUES (?, ?)", ("d" + dag, dag))
        dag_id = self.db.execute("SELECT id FROM dags WHERE text = ?", (dag,)).fetchone()[0]
        self.db.execute("INSERT INTO jobs (id, name, state, spec) VALUES (?, ?, ?, ?)",
                        (job_id, f"job {job_id}", state, spec(policy, cold)))
        for i, (task, weight, other) in enumerate(tasks):
            self.db.execute("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)",
                            (job_id, i, task, dag_id, weight, other, network))
        for i, (task, cost) in enumerate(costs):
            self.db.execute(
                "INSERT INTO records (job_id, task_index, trial, dag_id, costs_s, error, stopped_early, device) "
                "VALUES (?, ?, ?, ?, ?, ?, 0, 'gpu')",
                (job_id, task, i, dag_id, json.dumps([cost] if cost else []), not cost))
        for i in range(len(costs) // 2):
            self.db.execute("INSERT INTO rounds VALUES (?, ?, ?, ?)", (job_id, i, i + 1.0, 2 * i + 2))
        self.db.commit()
        return self


class TimeToQualityTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def open(self, name):
        return Database(os.path.join(self.folder.name, name))

    def test_policies_of_specs(self):
        self.assertEqual(ttq.policy_of(spec("sketch.random", False)), "random")
        self.assertEqual(ttq.policy_of(spec("sketch.xgb", True)), "xgb")
        self.assertEqual(ttq.policy_of(spec("sketch.xgb", False)), "xgb warm-started")
        # Nothing is set, so the defaults count.
        self.assertEqual(ttq.policy_of(b"\x2a\x02\x08\x40"), "xgb warm-started")

    def test_a_job_is_its_best_so_far(self):
        db = self.open("a.db").job("j", "matmul", "sketch.random", [4e-3, 0, 2e-3, 3e-3])
        job, = ttq.read_jobs(db.path)
        self.assertEqual(job.trials, [4e-3, 4e-3, 2e-3, 2e-3])
        self.assertEqual(job.seconds, [(1.0, 4e-3), (2.0, 2e-3)])
        self.assertEqual((job.task, job.policy, job.device), ("matmul", "random", "gpu"))

    def test_jobs_that_say_nothing_are_left_out(self):
        db = self.open("a.db").job("failed", "m", "sketch.random", [0, 0]).job("runs", "m", "sketch.random", [1e-3],
                                                                              state="running")
        self.assertEqual(ttq.read_jobs(db.path), [])
        with self.assertRaises(SystemExit):
            ttq.read_jobs(os.path.join(self.folder.name, "none.db"))

    def test_a_networks_cost_is_its_total_latency(self):
        tasks = [("conv", 3.0, None), ("conv winograd", 3.0, 0), ("dense", None, None)]
        db = self.open("a.db").network("j", tasks, "sketch.xgb", [(0, 4.0), (2, 0), (2, 2.0), (1, 3.0), (0, 3.5), (2, 1.0)])
        job, = ttq.read_jobs(db.path)
        self.assertEqual(job.trials, [math.inf, math.inf, 14.0, 11.0, 11.0, 10.0])
        self.assertEqual(job.seconds, [(1.0, math.inf), (2.0, 11.0), (3.0, 10.0)])
        self.assertEqual(ttq.curve_of_seconds(job), [(2.0, 11.0), (3.0, 10.0)])
        self.assertEqual(job.task, "job j, total latency")
        db.network("k", tasks[2:], "sketch.xgb", [(0, 4.0)], network="network:mlp")
        self.assertEqual(ttq.read_jobs(db.path)[1].task, "network:mlp, total latency")

    def test_a_network_with_a_task_that_has_no_program_is_left_out(self):
        db = self.open("a.db").network("j", [("conv", 3.0, None), ("dense", 1.0, None)], "sketch.xgb", [(0, 4.0)])
        self.assertEqual(ttq.read_jobs(db.path), [])

    def test_jobs_that_are_named_count_however_they_ended(self):
        db = self.open("a.db").job("one", "m", "sketch.random", [1e-3]).job("two", "m", "sketch.random", [1e-3],
                                                                          state="cancelled")
        self.assertEqual([job.id for job in ttq.read_jobs(db.path, ["tw"])], ["two"])

    def test_trials_until_as_good(self):
        self.assertEqual(ttq.first_at_most([5, 3, 3, 1], 3), 2)
        self.assertEqual(ttq.first_at_most([5, 3, 3, 1], 1), 4)
        self.assertEqual(ttq.first_at_most([5, 3], 5), 1)
        self.assertIsNone(ttq.first_at_most([5, 3], 2))
        self.assertEqual(ttq.first_at_most([math.inf, 3], 3), 2)

    def test_the_table(self):
        db = self.open("a.db")
        db.job("r", "matmul", "sketch.random", [4e-3, 3e-3, 3e-3, 2e-3])
        db.job("x1", "matmul", "sketch.xgb", [3e-3, 1e-3], cold=True)
        db.job("x2", "matmul", "sketch.xgb", [3e-3, 3e-3, 1e-3, 1e-3], cold=True)
        db.job("w", "matmul", "sketch.xgb", [3e-3, 3e-3])
        # The same job again.
        again = self.open("b.db").job("w", "matmul", "sketch.xgb", [3e-3, 3e-3])
        rows = [[cell.strip() for cell in line.split("|")[1:-1]]
                for line in ttq.table(ttq.read_all([db.path, again.path])).splitlines() if line.startswith("| matmul")]
        self.assertEqual(rows, [
            ["matmul", "random", "1", "4", "2 ms", "x1.00", "4", "2.0"],
            ["matmul", "xgb", "2", "4", "1 ms", "x2.00", "2", "1.5"],
            ["matmul", "xgb warm-started", "1", "2", "3 ms", "x0.67", "none of 1", "none of 1"],
        ])

    def test_without_random_nothing_is_compared(self):
        db = self.open("a.db").job("x", "m", "sketch.xgb", [1e-3, 1e-3])
        self.assertIn("| m | xgb warm-started | 1 | 2 | 1 ms | - | - | - |", ttq.table(ttq.read_all([db.path])))

    def test_lines_are_medians(self):
        jobs = [ttq.Job("", "", "", best, [], "") for best in ([4, 2, 2], [6, 6, 3], [9, 1, 1])]
        points = ttq.merged([ttq.curve_of_trials(job) for job in jobs])
        self.assertEqual(points, [(1, 4, 6, 9), (2, 1, 2, 6), (3, 1, 2, 3)])
        self.assertEqual(ttq.merged([[], []]), [])

    def test_plots_are_self_contained(self):
        db = self.open("a.db")
        for i, policy in enumerate(["sketch.random", "sketch.analytic", "sketch.xgb"]):
            db.job(f"{i}", "a < b & c", policy, [4e-3, 3e-3, 1e-3 * (i + 1), 1e-3])
        db.job("short", "one", "sketch.random", [1e-3])
        tasks = ttq.read_all([db.path])
        for curve in (ttq.curve_of_trials, ttq.curve_of_seconds):
            text = ttq.plot(tasks, curve, "trials", "title")
            svg = xml.dom.minidom.parseString(text)
            drawn = [e.firstChild.data for e in svg.getElementsByTagName("text")]
            self.assertIn("a < b & c", drawn)
            for policy in ("random", "analytic", "xgb warm-started"):
                self.assertIn(policy, drawn)
            # The name space.
            self.assertEqual(text.count("http"), 1)
            self.assertNotIn("nan", text)
            self.assertNotIn("inf", text)

    def test_a_pool_has_the_jobs_of_all(self):
        a = self.open("a.db").job("a", "one", "sketch.xgb", [1e-3, 2e-3], dag="first")
        b = self.open("b.db").job("b", "two", "sketch.xgb", [3e-3], dag="other").job("c", "one", "sketch.xgb", [4e-3],
                                                                                  dag="first")
        out = os.path.join(self.folder.name, "pool.db")
        ttq.pool([a.path, b.path], out)
        pooled = sqlite3.connect(out)
        found = pooled.execute("SELECT r.job_id, r.trial, d.text FROM records r JOIN dags d ON d.id = r.dag_id "
                               "ORDER BY r.job_id, r.trial").fetchall()
        self.assertEqual(found, [("a", 0, "first"), ("a", 1, "first"), ("b", 0, "other"), ("c", 0, "first")])
        self.assertEqual(len(ttq.read_jobs(out)), 3)

    def test_ticks_are_round_and_few(self):
        self.assertEqual(ttq.ticks(1, 1000), [1, 10, 100, 1000])
        self.assertEqual(ttq.ticks(10, 45), [10, 20, 30, 40])
        for low, high in ((1e-6, 2e-6), (3e-5, 3.2e-5), (1, 1e9)):
            self.assertLessEqual(len(ttq.ticks(low, high)), 6)


if __name__ == "__main__":
    unittest.main()
