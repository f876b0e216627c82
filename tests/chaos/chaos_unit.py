"""Tests that the checks see what they are for: a database with each fault in turn, a process that outlives, a proxy."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

import processes
from proxy import Proxy
from records import Database


class RecordsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "kiln.db")
        self.connection = sqlite3.connect(path)
        self.addCleanup(self.connection.close)
        self.connection.executescript(
            "CREATE TABLE jobs (number INTEGER PRIMARY KEY, id, state, message, trials);"
            "CREATE TABLE records (id INTEGER PRIMARY KEY, job_id, task_index, trial, steps, costs_s, error, builder,"
            " runner, measured_as, stopped_early, mean_cost_s, confidence_s, device)")
        self.database = Database(path)

    def add(self, trial: int, cost_s: float, error: int = 0, way: str = "call", early: int = 0,
            confidence_s: float = 0.0) -> None:
        self.connection.execute(
            "INSERT INTO records VALUES (NULL, 'j', 0, ?, '[]', '[1]', ?, 'b', 'r', ?, ?, ?, ?, 'd')",
            (trial, error, way, early, cost_s, confidence_s))
        self.connection.commit()

    def test_the_best_follows_the_order(self) -> None:
        self.assertEqual(self.database.best("j", 0), 0)
        self.add(0, 3.0)
        self.add(1, 1.0, error=4)
        self.add(2, 1.0, early=1)
        self.add(3, 2.0)
        self.add(4, 2.0)
        self.assertEqual(self.database.best("j", 0), 4, "the smaller id of two equal costs")
        self.add(5, 9.0, way="stream")
        self.assertEqual(self.database.best("j", 0), 6, "another way of measuring goes first")

    def test_equal_finalists_give_the_smallest_id(self) -> None:
        self.add(0, 1.02, confidence_s=0.02)
        self.add(1, 1.00, confidence_s=0.01)
        self.add(2, 1.01)
        self.assertEqual(self.database.best("j", 0), 1)
        self.add(3, 0.90, confidence_s=0.01)
        self.assertEqual(self.database.best("j", 0), 4)

    def test_a_changed_trial_has_another_digest(self) -> None:
        self.add(0, 1.0)
        before = self.database.trials()
        self.connection.execute("UPDATE records SET costs_s = '[2]'")
        self.connection.commit()
        self.assertNotEqual(before, self.database.trials())
        self.assertEqual(self.database.numbers("j"), [0])


class ProcessesTest(unittest.TestCase):
    def test_a_process_that_outlives_is_named(self) -> None:
        shell = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"])
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        self.assertTrue(processes.wait_until(lambda: len(processes.descendants(shell.pid)) == 2, 30))
        sleepers = processes.descendants(shell.pid)
        self.assertEqual(processes.all_ended(sleepers[:1], 0), sleepers[:1])
        for pid in sleepers:
            processes.send(pid, signal.SIGKILL)
        self.assertEqual(processes.all_ended(sleepers, 30), [])


class ProxyTest(unittest.TestCase):
    def setUp(self) -> None:
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        threading.Thread(target=self.echo, args=(server,), daemon=True).start()
        self.proxy = Proxy("127.0.0.1", "%s:%d" % server.getsockname())
        self.addCleanup(self.proxy.close)
        host, port = self.proxy.address.split(":")
        self.client = socket.create_connection((host, int(port)))
        self.addCleanup(self.client.close)
        self.client.settimeout(30)

    @staticmethod
    def echo(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(ConnectionError):
            while data := connection.recv(100):
                connection.sendall(data)

    def test_forwards_both_ways_and_holds_back(self) -> None:
        self.client.sendall(b"one")
        self.assertEqual(self.client.recv(100), b"one")
        self.proxy.is_silent = True
        self.client.sendall(b"two")
        self.client.settimeout(0.1)
        with self.assertRaises(TimeoutError):
            self.client.recv(100)
        self.proxy.is_silent = False
        self.client.settimeout(30)
        self.assertEqual(self.client.recv(100), b"two")
        self.proxy.delay_s = 0.05
        begin = time.monotonic()
        self.client.sendall(b"three")
        self.assertEqual(self.client.recv(100), b"three")
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)

    def test_cuts(self) -> None:
        self.client.sendall(b"one")
        self.assertEqual(self.client.recv(100), b"one")
        self.assertEqual(self.proxy.cut(), 1)
        with self.assertRaises(ConnectionResetError):
            self.client.recv(100)


if __name__ == "__main__":
    unittest.main()
