"""Jobs of a local farm, from Python: tuned, watched, asked about, compiled, called, and ended."""

import asyncio
import contextlib
import dataclasses
import io
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock
from xml.etree import ElementTree

import kiln
import numpy
from kiln import release, te
from kiln.farm import access, program
from kiln.farm.options import TuneOptions
from kiln.farm.progress import Progress

FOLDER = os.environ["KILN_TEST_FOLDER"]
# A job that takes no more than it must.
SHORT = {"trials": 6, "finalists": 0, "verbose": False}


def path(name):
    return os.path.join(FOLDER, name)


def processes(mark):
    """Ids of processes with these words in their command line."""
    found = []
    for each in os.listdir("/proc"):
        try:
            with open(f"/proc/{each}/cmdline", "rb") as file:
                if each.isdecimal() and mark.encode() in file.read():
                    found.append(int(each))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def folders():
    """Folders of local farms."""
    return [name for name in os.listdir(FOLDER) if name.startswith("kiln-cluster")]


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


class NullDeviceTest(unittest.TestCase):
    """What jobs and records are, on a device that measures nothing and is fast."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(path("null.db"), device="null")
        cls.matmul = kiln.op("matmul", 64, 64, 64)
        cls.job = cls.client.tune(cls.matmul, target="null", **SHORT)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_a_job_that_has_ended(self):
        status = self.job.status()
        self.assertEqual((status.state, status.ending), ("SUCCEEDED", "TRIALS_USED_UP"))
        self.assertEqual((status.trials_done, status.trials, status.errors), (6, 6, {}))
        self.assertTrue(status.is_final)
        task = status.tasks[0]
        self.assertEqual(task.description, "matmul 64,64,64")
        self.assertEqual(task.workload_key, self.matmul.workload_key)
        self.assertEqual(task.best_record, self.job.best().id)
        self.assertEqual(self.client.job(self.job.id).wait().state, "SUCCEEDED")
        self.assertIn(self.job.id, [each.id for each in self.client.jobs()])

    def test_watching_shows_each_record_once(self):
        events = list(self.client.watch(self.job))
        trials = [event.record.trial for event in events if event.record]
        self.assertEqual(sorted(trials), list(range(6)))
        rounds = [event.round for event in events if event.round]
        self.assertEqual(rounds[-1].trials, 6)
        self.assertEqual(rounds[-1].best_s[0], rounds[-1].total_latency_s)
        self.assertTrue(events[-1].status.is_final)

    def test_watching_may_be_left(self):
        for event in self.job.watch():
            self.assertEqual(event.status.id, self.job.id)
            break

    def test_watching_in_asyncio(self):
        async def count():
            return len([event async for event in self.job.watch_async() if event.record])

        self.assertEqual(asyncio.run(count()), 6)
        self.assertEqual(asyncio.run(self.job.wait_async()).state, "SUCCEEDED")

    def test_lines_of_trials_and_rounds(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.client.tune(self.matmul, target="null", seed=9, **{**SHORT, "verbose": 2})
        lines = re.findall(r"trial +\d+  task 0  .* GFLOP/s, best", said.getvalue())
        self.assertEqual(len(lines), 6)
        self.assertRegex(said.getvalue(), r"round \d+  trials 6/6  \d")

    def test_a_task_that_is_known_is_not_tuned_again(self):
        again = self.client.tune(self.matmul, target="null", **SHORT)
        status = again.status()
        self.assertEqual((status.state, status.trials_done), ("SUCCEEDED", 0))
        self.assertEqual(again.best().id, self.job.best().id)
        self.assertEqual(list(self.client.records(job=again.id)), [])

    def test_what_is_asked_as_it_is_deployed(self):
        best = self.job.best()
        self.assertEqual(best.equal_ids, ())
        self.assertEqual(self.client.best(self.matmul, "null").measured_as, best.measured_as)
        self.assertIsNone(self.client.best(self.matmul, "null", as_deployed="stream"))
        with self.assertRaisesRegex(kiln.KilnError, "measured as stream, only "):
            self.client.schedule(self.matmul, "null", as_deployed="stream")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected graph or stream"):
            self.client.best(self.matmul, as_deployed="tram")

    def test_a_terminal_shows_one_line(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        shown = Terminal()
        with Progress(1, shown) as progress:
            for event in self.job.watch():
                progress(event)
        self.assertEqual(shown.getvalue().count("\n"), 1)
        self.assertRegex(shown.getvalue(), r"^\rround 1  .*\rround \d+  trials 6/6  [^\r]*\n$")

    def test_asyncio_cancels_a_job(self):
        async def tune():
            task = asyncio.create_task(
                self.client.tune_async(self.matmul, target="null", trials=1_000_000)
            )
            await asyncio.sleep(1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            job = await self.client.tune_async(
                self.matmul, target="null", trials=2, finalists=0, seed=11
            )
            return self.client.jobs(2)[1], job.status()

        cancelled, done = asyncio.run(tune())
        self.assertTrue(wait_until(lambda: self.client.status(cancelled.id).state == "CANCELLED"))
        self.assertEqual((done.state, done.trials_done), ("SUCCEEDED", 2))

    def test_curves_and_tables(self):
        points = self.job.curve()
        self.assertEqual(points[-1].trials, 6)
        self.assertEqual(points[-1].total_latency_s, self.job.best().cost_s)
        for shown in (self.job._repr_html_(), self.job.status()._repr_html_()):
            self.assertIn("<td>matmul 64,64,64</td><td>1.0</td><td>6</td>", shown)
            self.assertIn("6 of 6 trials", shown)

    def test_plots(self):
        (point,) = self.job.roofline()
        best = self.job.best()
        self.assertEqual(point.gflops, best.gflops)
        self.assertEqual(point.intensity, self.matmul.flop_count / self.matmul.bytes)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "found plot 'pie', expected some of"):
            self.job.plot("pie")
        try:
            import matplotlib
        except ImportError:
            self.check_svg_plots()
            return
        matplotlib.use("Agg")
        titles = ["convergence", "total latency", "roofline"]
        drawn = self.job.plot()
        self.assertEqual([axes.get_title() for axes in drawn], titles)
        fastest = max(line.get_ydata()[-1] for line in drawn[0].lines)
        self.assertAlmostEqual(fastest, max(each.gflops for each in self.job.records()))
        self.assertEqual(drawn[1].lines[0].get_ydata()[-1], best.cost_s * 1e3)
        self.assertEqual(len(drawn[2].collections), 1)
        self.assertIs(self.job.plot("latency", axes=drawn[0]), drawn[0])
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "3 axes are given, expected 1"):
            self.job.plot("latency", axes=drawn)

    def check_svg_plots(self):
        """Where matplotlib is not installed, plots are pictures in SVG with the same numbers."""
        panels = self.job.plot()
        titles = ["convergence", "total latency", "roofline"]
        for axes, title in zip(panels, titles, strict=True):
            picture = axes._repr_svg_()
            texts = [element.text for element in ElementTree.fromstring(picture).iter()]
            self.assertIn(title, texts)
            self.assertIn(picture, panels._repr_html_())
        latency = self.job.plot("latency")
        (line,) = latency._lines[:1]
        self.assertEqual(line.pairs[-1], (6.0, self.job.best().cost_s * 1e3))

    def test_limits_of_devices(self):
        (runner,) = [each for each in self.client.workers() if each.kind == "RUNNER"]
        (builder,) = [each for each in self.client.workers() if each.kind == "BUILDER"]
        self.assertEqual((builder.peak_gflops, builder.memory_gb_s), (None, None))
        gpu = {"compute_capability": 90, "multiprocessors": 132, "clock_mhz": 1980,
               "memory_clock_mhz": 3201, "memory_bus_bits": 6144}
        h200 = dataclasses.replace(runner, model=gpu)
        self.assertAlmostEqual(h200.peak_gflops, 66908.16)
        self.assertAlmostEqual(h200.memory_gb_s, 4916.736)
        cpu = dataclasses.replace(runner, model={"cores": 2, "gflops_per_core": 120})
        self.assertEqual((cpu.peak_gflops, cpu.memory_gb_s), (240, None))

    def test_values_show_in_notebooks(self):
        best = self.job.best()
        shown = best._repr_html_()
        self.assertIn(f"<td>{best.id}</td><td>{best.job}/{best.trial}</td>", shown)
        self.assertIn("[&quot;", shown)
        self.assertIn("<pre>input p0: float32[64, 64]", self.matmul._repr_html_())

    def test_cost_models(self):
        records = {"trials": 40, "finalists": 0, "verbose": False, "seed": 3}
        self.client.tune(self.matmul, target="null", **records)
        model = self.client.train_model("mine", target="null", computation=self.matmul)
        self.assertEqual([each.name for each in self.client.models()], ["mine"])
        self.assertGreater(model.bytes, 0)
        self.assertIsInstance(model.info, dict)
        with self.assertRaisesRegex(kiln.KilnError, "mine"):
            self.client.train_model("mine", target="null")
        self.client.tune(self.matmul, target="null", model="mine", **SHORT)
        self.client.delete_model("mine")
        self.assertEqual(self.client.models(), [])
        with self.assertRaises(kiln.NotFoundError):
            self.client.delete_model("mine")

    def test_records(self):
        records = list(self.job.records())
        self.assertEqual(len(records), 6)
        best = self.job.best()
        self.assertEqual(best.cost_s, min(record.cost_s for record in records))
        self.assertEqual(self.client.record(best.id), best)
        self.assertAlmostEqual(best.gflops, 2 * 64**3 / best.cost_s / 1e9)
        self.assertEqual(best.workload_key, self.matmul.workload_key)
        self.assertIsInstance(best.step_list, list)
        self.assertEqual(self.client.best(self.job), best)
        self.assertLessEqual(self.client.best(self.matmul).cost_s, best.cost_s)
        self.assertEqual(len(list(self.client.records(self.matmul, job=self.job.id, top=2))), 2)
        self.assertIsNone(self.client.best(kiln.op("matmul", 8, 8, 8)))
        self.assertEqual(list(self.client.records(kiln.op("matmul", 8, 8, 8))), [])

    def test_records_as_a_table(self):
        try:
            import pandas
        except ImportError:
            with self.assertRaisesRegex(kiln.KilnError, "pandas, which is not installed"):
                self.job.records().to_pandas()
            return
        self.assertIsInstance(self.job.records().to_pandas(), pandas.DataFrame)

    def test_logs_out_and_in(self):
        log = path("log.json")
        self.job.export(log)
        with open(log, encoding="utf-8") as file:
            lines = file.readlines()
        self.assertTrue(lines)
        done = self.client.import_records(log)
        self.assertEqual((done.imported + done.duplicates, done.refused), (len(lines), 0))
        with open(log, "w", encoding="utf-8") as file:
            file.write("nonsense\n" + lines[0].replace("null", "llvm"))
        done = self.client.import_records(log)
        self.assertEqual((done.imported, done.refused), (1, 1))
        self.assertRegex(done.errors[0], "line 1: ")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "cannot read /nowhere/log"):
            self.client.import_records("/nowhere/log")

    def test_why_a_job_has_ended(self):
        (reason,) = self.job.why()
        self.assertEqual((reason.kind, reason.details), ("succeeded", ()))
        self.assertEqual(str(reason), f"{reason.text}\n{reason.remedy}")
        self.assertIn(self.job.id, reason.text)

    def test_deleting_records(self):
        job = self.client.tune(self.matmul, target="null", seed=5, no_warm_start=True, **SHORT)
        ids = [record.id for record in job.records()]
        self.assertEqual(self.client.delete_records(ids[:2]), 2)
        self.assertEqual(len(list(job.records())), 4)

    def test_programs_as_text(self):
        for form, text in (("steps", '[["'), ("schedule", "s[T_matmul_NN]"), ("dag", "input p0")):
            self.assertIn(text, self.job.show(form))
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "--as"):
            self.job.show("poem")

    def test_schedule_without_search(self):
        schedule = self.client.schedule(self.matmul, "llvm -mcpu=x86-64-v3 -num-cores=2")
        self.assertEqual(schedule.source, "SAMPLE")
        self.assertGreater(schedule.predicted_s, 0)
        self.assertIn("SP", schedule.steps)

    def test_workers(self):
        workers = self.client.workers()
        self.assertEqual(sorted(each.kind for each in workers), ["BUILDER", "RUNNER"])
        runner = next(each for each in workers if each.kind == "RUNNER")
        self.assertIn("null", runner.keys)

    def test_several_tasks_and_callbacks(self):
        a = te.placeholder((32, 32), name="A")
        double = te.compute((32, 32), lambda i, j: a[i, j] * 2.0, name="double")
        seen = []
        job = self.client.tune(
            [self.matmul, te.create(double)], TuneOptions(target="null", weights=(2, 1)),
            callbacks=[seen.append], **{**SHORT, "trials": 8},
        )
        tasks = job.status().tasks
        self.assertEqual([task.weight for task in tasks], [2, 1])
        self.assertEqual(len([event for event in seen if event.record]), job.status().trials_done)
        self.assertEqual(job.best(1).task, 1)
        with self.assertRaisesRegex(kiln.NotFoundError, "task 7 of job"):
            job.best(7)

    def test_a_callback_that_fails_cancels_the_job(self):
        def fail(event):
            if event.record:
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.client.tune(self.matmul, target="null", trials=100_000, callbacks=[fail],
                             verbose=False)
        newest = self.client.jobs(1)[0]
        self.assertTrue(wait_until(lambda: self.client.status(newest.id).state == "CANCELLED"))
        (reason,) = self.client.why(newest.id)
        self.assertEqual(reason.kind, "cancelled")
        self.assertIn(f"kiln tune --resume {newest.id}", reason.remedy)
        self.client.resume(newest.id)
        self.client.cancel(newest.id)
        self.assertTrue(wait_until(lambda: self.client.status(newest.id).state == "CANCELLED"))

    def test_a_job_pauses_and_goes_on(self):
        job = self.client.submit(self.matmul, target="null", trials=100_000)
        self.assertTrue(wait_until(lambda: job.status().trials_done > 0))
        job.pause()
        paused = job.status()
        self.assertEqual((paused.state, paused.is_final), ("PAUSED", False))
        self.client.pause(job)
        job.resume()
        self.assertTrue(wait_until(lambda: job.status().trials_done > paused.trials_done + 8))
        job.cancel()
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "already cancelled"):
            job.pause()

    def test_a_process_that_dies_is_started_again(self):
        job = self.client.submit(self.matmul, target="null", trials=40, finalists=0, seed=10)
        events = job.watch()
        next(events)
        for mark in ("\0scheduler\0", "\0runner\0"):
            pids = [pid for pid in processes("cluster-child") if pid in processes(mark)
                    and pid in processes(os.path.dirname(self.client.connection.access.path))]
            self.assertEqual(len(pids), 1)
            os.kill(pids[0], signal.SIGKILL)
        last = [event.status for event in events][-1]
        self.assertEqual((last.state, last.trials_done), ("SUCCEEDED", 40))

    def test_what_does_not_fit_is_refused(self):
        for error, why, function in (
            (kiln.NotFoundError, "no job zz", lambda: self.client.status("zz")),
            (kiln.NotFoundError, "no job zz", lambda: self.client.job("zz")),
            (kiln.NotFoundError, "no job zz", lambda: list(self.client.watch("zz"))),
            (kiln.NotFoundError, "no job zz", lambda: self.client.cancel("zz")),
            (kiln.NotFoundError, "no job zz", lambda: self.client.why("zz")),
            (kiln.NotFoundError, "99999", lambda: self.client.record(99999)),
            (kiln.InvalidArgumentError, "a whole number", lambda: self.client.record(-1)),
            (kiln.InvalidArgumentError, "a text that is not empty", lambda: self.client.status("")),
            (kiln.InvalidArgumentError, "no option is called trial",
             lambda: self.client.submit(self.matmul, trial=3)),
            (kiln.InvalidArgumentError, "^trials",
             lambda: self.client.submit(self.matmul, trials=-3)),
            (kiln.KilnError, "^weights has 2 numbers for 1 task",
             lambda: self.client.submit(self.matmul, weights=[1, 2])),
            (kiln.KilnError, "^layout_rewrite pretransformed is for networks",
             lambda: self.client.submit(self.matmul, layout_rewrite="pretransformed")),
            (kiln.InvalidArgumentError, "trials is .* expected a number",
             lambda: self.client.submit(self.matmul, trials=object())),
            (kiln.KilnError, "unknown target 'x86'",
             lambda: self.client.submit(self.matmul, target="x86")),
            (kiln.KilnError, "policy", lambda: self.client.submit(self.matmul, policy="luck")),
            (kiln.InvalidArgumentError, "'matmul' is no network",
             lambda: self.client.submit("matmul")),
            (kiln.InvalidArgumentError, "workload of type int", lambda: self.client.submit(3)),
            (kiln.InvalidArgumentError, "no computation", lambda: self.client.submit([])),
        ):
            with self.subTest(why), self.assertRaisesRegex(error, why):
                function()


class CpuTest(unittest.TestCase):
    """From a declaration to a call."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(path("cpu.db"), device="cpu")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_declare_tune_compile_call(self):
        a = te.placeholder((32, 48), name="A")
        b = te.placeholder((48, 16), name="B")
        bias = te.placeholder((16,), name="bias")
        k = te.reduce_axis((0, 48), name="k")
        c = te.compute((32, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        d = te.compute((32, 16), lambda i, j: te.max(c[i, j] + bias[j], 0.0), name="D")
        job = self.client.tune(te.create([a, b, bias, d], name="dense"), **SHORT)
        self.assertEqual(job.status().tasks[0].description, "dense.te")
        random = numpy.random.default_rng(1)
        x, y, z = (random.standard_normal(shape, "float32") for shape in ((32, 48), (48, 16), 16))
        want = numpy.maximum(x @ y + z, 0)
        kept = path("dense.kiln")
        for function in (job.compile(), job.compile(kept), kiln.load(kept),
                         self.client.compile(job.best())):
            numpy.testing.assert_allclose(function(A=x, B=y, bias=z), want, atol=1e-4)
        self.assertEqual(function.kernels[0].source, "tuned")
        with mock.patch("kiln.farm.job.load") as load:
            job.compile(gpu=2)
        self.assertEqual(load.call_args.kwargs, {"gpu": 2})

    def test_a_computation_that_was_never_tuned(self):
        function = self.client.compile(kiln.op("matmul", 8, 8, 8))
        x = numpy.eye(8, dtype="float32")
        numpy.testing.assert_array_equal(function(x, x), x)
        with self.assertRaises(kiln.KilnError):
            self.client.compile(kiln.op("matmul", 8, 8, 9), strict=True)

    def test_compile_gives_a_callable_on_a_device(self):
        product = kiln.op("matmul", 8, 8, 8)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "gives a callable; kiln.export"):
            self.client.compile(product, form="tvm-ffi")
        kept, database = path("other.kiln"), path("other.db")
        for call in (
            lambda **named: self.client.compile(product, **named),
            lambda **named: self.client.compile(product, kept, **named),
            lambda **named: kiln.compile(product, target="llvm", db=database, **named),
        ):
            for named, gpu in (({"gpu": 3}, 3), ({}, 0)):
                with mock.patch("kiln.farm.job.load") as load:
                    self.assertIs(call(**named), load.return_value)
                self.assertEqual(load.call_args.kwargs, {"gpu": gpu})


class PlaceTest(unittest.TestCase):
    def test_a_farm_by_its_address_and_keys(self):
        with kiln.local(path("place.db"), device="null") as here:
            address, keys = here.connection.address, here.connection.access.path
            with kiln.connect(address, keys=keys) as client:
                self.assertEqual(client.jobs(), [])
                self.assertEqual(len(client.workers()), 2)
            for call in client.jobs, lambda: list(client.records()), lambda: client.import_records(
                __file__
            ):
                with self.assertRaisesRegex(kiln.CancelledError, "the client of .* is closed"):
                    call()
            other = path("other.secret")
            with open(os.open(other, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write("0123456789abcdef\n")
            with self.assertRaises(kiln.UnauthenticatedError):
                kiln.connect(address, keys=other)
            os.chmod(other, 0o644)
            with self.assertRaisesRegex(kiln.FailedPreconditionError, "mode 0644.*chmod 600"):
                kiln.connect(address, keys=other)
            with self.assertRaises(kiln.UnauthenticatedError):
                kiln.connect(address)

    def start_daemon(self, name, *flags):
        """Starts `kiln NAME`. Returns its address."""
        port = path(f"{name}-{time.monotonic_ns()}.port")
        process = subprocess.Popen(
            [program.program_path(), name, "--listen", "127.0.0.1:0", "--port-file", port, *flags],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: os.path.exists(port)))
        with open(port, encoding="utf-8") as file:
            return f"127.0.0.1:{file.read().strip()}"

    def test_a_farm_with_keys(self):
        folder, other = path("farm-keys"), path("other-keys")
        for authority, names in (
            (folder, {"box1": "work", "alice": "submit", "rita": "read"}), (other, {"eve": "admin"})
        ):
            program.run(["keys", "init", "--authority", authority])
            for name, role in names.items():
                program.run(["keys", "issue", name, "--role", role, "--authority", authority])
        alice, mine = os.path.join(folder, "alice"), ["--keys", os.path.join(folder, "box1")]
        tracker = self.start_daemon("tracker", *mine)
        self.start_daemon("builder", "--tracker", tracker, *mine)
        self.start_daemon("runner", "--device", "null", "--tracker", tracker, *mine)
        address = self.start_daemon(
            "scheduler", "--tracker", tracker, "--db", path("keys.db"), *mine
        )
        with kiln.connect(address, keys=alice) as client:
            self.assertEqual(asyncio.run(asyncio.to_thread(client.jobs)), [])
            self.assertTrue(wait_until(lambda: len(client.workers()) == 2))
            self.assertEqual(client.connection.environment()["KILN_KEYS"], os.path.abspath(alice))
        with mock.patch.dict(os.environ, {"KILN_KEYS": os.path.join(folder, "rita")}):
            with kiln.connect(address) as client:
                self.assertEqual(client.jobs(), [])
                with self.assertRaisesRegex(kiln.PermissionDeniedError, "rita has the role read"):
                    client.cancel("1f740d66")
        with self.assertRaisesRegex(kiln.UnauthenticatedError, "asks for a certificate of its farm"):
            kiln.connect(address)
        with self.assertRaisesRegex(kiln.UnauthenticatedError, "no certificate of a daemon of this"):
            kiln.connect(address, keys=os.path.join(other, "eve"))
        plain = self.start_daemon("scheduler", "--db", path("plain.db"))
        with self.assertRaisesRegex(kiln.UnauthenticatedError, "makes no connection of TLS"):
            kiln.connect(plain, keys=alice)
        self.check_changes_of_keys(address, folder)
        os.chmod(os.path.join(alice, "identity.pem"), 0o640)
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "mode 0640.*chmod 600"):
            kiln.connect(address, keys=alice)

    def check_changes_of_keys(self, address, folder):
        """A client goes over to new keys, and leaves a scheduler that is revoked."""
        def change(*words):
            program.run(["keys", *words, "--authority", folder])

        def error_of_call():
            try:
                client.jobs()
            except kiln.KilnError as error:
                return error
            return None

        with kiln.connect(address, keys=os.path.join(folder, "alice")) as client:
            self.assertEqual(client.jobs(), [])
            # The certificate that the client has shown so far is revoked.
            change("issue", "alice", "--role", "submit", "--replace")
            time.sleep(access.LOOK_EVERY_S)
            self.assertTrue(wait_until(lambda: error_of_call() is None))
            time.sleep(access.LOOK_EVERY_S)
            self.assertIsNone(error_of_call())
            change("revoke", "box1")
            self.assertTrue(wait_until(
                lambda: isinstance(error_of_call(), kiln.UnauthenticatedError)))
            self.assertRegex(str(error_of_call()), "the certificate of the server at .* was revoked"
                             ".*kiln keys issue NAME --role work")
            change("issue", "box1", "--role", "work")
            self.assertTrue(wait_until(lambda: error_of_call() is None))

    def test_no_farm(self):
        with self.assertRaisesRegex(kiln.UnavailableError, "cannot reach a scheduler at 127.0.0.1:9"
                                    ".*Connection refused; start one with `kiln scheduler`"):
            kiln.connect("127.0.0.1:9")
        for address in ("box", "box:", "box:0", "box:99999", ":9", ""):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected the scheduler's HOST"):
                kiln.connect(address)
        with self.assertRaisesRegex(kiln.KilnError, "cannot read the secret in /nowhere/farm"):
            kiln.connect("127.0.0.1:9", keys="/nowhere/farm")

    def test_a_local_farm_that_cannot_start(self):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "found device 'tpu'"):
            kiln.local(device="tpu")
        with self.assertRaisesRegex(kiln.KilnError, "the local farm ended: .*nowhere"):
            kiln.local("/nowhere/kiln.db", device="null").workers()
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "threads: .*-1.* in range"):
            kiln.local(path("threads.db"), device="null", threads=-1).workers()
        self.assertTrue(wait_until(lambda: not processes("/nowhere/kiln.db")))

    def test_a_closed_client_starts_again(self):
        client = kiln.local(path("again.db"), device="null")
        client.close()
        self.assertEqual(len(client.workers()), 2)
        client.close()
        client.close()
        self.assertEqual(processes(path("again.db")), [])

    def test_nothing_is_left_when_python_ends(self):
        before = folders()
        for ending in ("", "raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)",
                       "import os; os._exit(1)", "client.close()"):
            db = path("left.db")
            start = f"import kiln; client = kiln.local({db!r}, device='null'); client.jobs(); "
            run_python(start + ending)
            self.assertTrue(wait_until(lambda: not processes(db)), ending)
            self.assertEqual(folders(), before, ending)

    def test_a_child_of_python_does_not_keep_the_farm_alive(self):
        db = path("forked.db")
        child = int(run_python(f"""
import kiln, os, time
client = kiln.local({db!r}, device="null")
client.jobs()
child = os.fork()
if child == 0:
    os.close(1), os.close(2)
    time.sleep(60)
print(child, flush=True)
os._exit(0)
""").stdout)
        self.assertTrue(wait_until(lambda: not processes("--db=" + db)))
        self.assertTrue(wait_until(lambda: not processes("--db\0" + db)))
        os.kill(child, signal.SIGKILL)

    def test_ctrl_c_cancels_and_keeps_records(self):
        db = path("interrupted.db")
        code = f"""
import kiln, sys
def told(event):
    if event.record: print("record", flush=True)
client = kiln.local({db!r}, device="null")
client.tune(kiln.op("matmul", 64, 64, 64), target="null", trials=1000000, callbacks=[told])
"""
        python = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(python.stdout.readline(), "record\n")
        os.killpg(python.pid, signal.SIGINT)
        _, said = python.communicate(timeout=30)
        self.assertIn("KeyboardInterrupt", said)
        self.assertTrue(wait_until(lambda: not processes(db)))
        with kiln.local(db, device="null") as client:
            job = client.jobs()[0]
            self.assertEqual((job.state, job.ending), ("CANCELLED", "CANCELLED_BY_REQUEST"))
            self.assertGreater(len(list(client.records(job=job.id))), 0)

    def test_a_fork_leaves_the_farm_to_its_parent(self):
        with kiln.local(path("fork.db"), device="null") as client:
            client.jobs()
            code = os.fork()
            if code == 0:
                os.environ.clear()
                client._close()  # pylint: disable=protected-access
                os._exit(0)
            os.waitpid(code, 0)
            self.assertEqual(len(client.workers()), 2)


class VersionTest(unittest.TestCase):
    def test_a_farm_of_another_version(self):
        with kiln.local(path("version.db"), device="null") as here:
            address, keys = here.connection.address, here.connection.access.path
            with mock.patch("kiln.release.PROTOCOL", 2):
                with self.assertRaisesRegex(
                    kiln.FailedPreconditionError,
                    "the scheduler at 127.0.0.1:.* is kiln 1 of protocol 1, this package is kiln 1 "
                    "of protocol 2; install the same kiln at both ends",
                ):
                    kiln.connect(address, keys=keys)

    def test_a_program_of_another_version(self):
        other = path("other-kiln")
        for says, why in (
            ('{"version":"0"}', "KILN_PROGRAM names, is kiln 0 of protocol 0, this package"),
            ("hello", "does not tell its version, expected a program kiln"),
            ("[]", "does not tell its version, expected a program kiln"),
        ):
            with open(other, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho '{says}'\n")
            os.chmod(other, 0o755)
            for call in "kiln.op('matmul', 1, 1, 1)", "kiln.local('other.db').jobs()":
                said = run_python(f"import kiln; {call}", KILN_PROGRAM=other).stdout
                self.assertIn("FailedPreconditionError: ", said)
                self.assertIn(why, said)

    def test_the_package_says_the_version_of_its_program(self):
        (told,) = program.run_json(["version"])
        self.assertEqual(told["version"], release.VERSION)
        self.assertEqual(told["protocol"], str(release.PROTOCOL))
        self.assertEqual(kiln.__version__, release.VERSION)


class PackageTest(unittest.TestCase):
    def test_says_what_is_missing(self):
        said = run_python("import kiln, sys; sys.modules['grpc'] = None; kiln.local()").stdout
        self.assertIn("KilnError: kiln.local tunes, and needs grpc, which is not installed", said)
        said = run_python("import kiln; kiln.op('matmul', 1, 1, 1)", KILN_PROGRAM="/nowhere").stdout
        self.assertIn("cannot run the program kiln: /nowhere is no program", said)
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            kiln.nothing  # pylint: disable=pointless-statement

    def test_the_command_line(self):
        code = "import sys, kiln.farm.program; sys.argv = ['kiln', 'ops', 'matmul']; "
        self.assertIn("summed extent", run_python(code + "kiln.farm.program.main()").stdout)
        self.assertIn("connect", dir(kiln))


if __name__ == "__main__":
    unittest.main()
