"""Code of the user in a search: cost models, sketch rules and objectives that Python serves."""

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import kiln
import numpy
from kiln import auto_scheduler
from kiln.farm import serving as serving_module
from kiln.farm.builds import Builds
from kiln.farm.serving import Applied

FOLDER = os.environ["KILN_TEST_FOLDER"]
# A job on a device that measures nothing, with quick rounds.
QUICK = {
    "target": "null",
    "trials": 24,
    "trials_per_round": 8,
    "finalists": 0,
    "verbose": 0,
    "parameter": {"evolutionary_search_population": 64, "sample_init_population": 32},
}


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


class Prefers:
    """Scores states by a text in their steps."""

    reads_rows = False
    reads_steps = True

    def __init__(self, text, sign=1):
        self.text = text
        self.sign = sign

    def predict(self, programs):
        return [self.sign * each.count(self.text) for each in programs.steps]

    def update(self, results):
        pass


class Rows:
    """Looks at feature rows, and remembers what it was told."""

    reads_rows = True
    reads_steps = False

    def __init__(self):
        self.seen = []
        self.results = []

    def predict(self, programs):
        self.seen.append(programs)
        return numpy.array([programs.rows_of(i).sum() for i in range(len(programs))])

    def update(self, results):
        self.results.append(results)


class Sevenths:
    """Splits the first loop of the sum into blocks of 7, as no rule of Kiln's does."""

    name = "sevenths"

    def __init__(self, stage):
        self.stage = stage

    def apply(self, task, steps, stage):
        if stage != self.stage:
            return None
        made = json.loads(steps) + [["SP", stage, 0, 64, [7], 1]]
        return Applied([(json.dumps(made), stage - 1)], skip_rest=True)


class NullDeviceTest(unittest.TestCase):
    """What is asked and told, on a device that measures nothing."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(os.path.join(FOLDER, "null.db"), device="null")
        cls.matmul = kiln.op("matmul", 64, 64, 64)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def tune(self, workload=None, **named):
        return self.client.tune(workload or self.matmul, **{**QUICK, "no_warm_start": True, **named})

    def test_a_model_decides_what_is_measured(self):
        def ranked_with(text, sign):
            job = self.tune(served=kiln.Served(cost_model=Prefers(text, sign)))
            ranked = [each for each in job.records() if each.score is not None]
            self.assertGreater(len(ranked), 5)
            return sum(text in each.steps for each in ranked) / len(ranked)

        text = "auto_unroll_max_step$512"
        liked, disliked = ranked_with(text, 1), ranked_with(text, -1)
        self.assertGreater(liked, 0.7)
        self.assertLess(disliked, 0.3)

    def test_a_model_gets_rows_and_results(self):
        model = Rows()
        job = self.tune(served=kiln.Served(cost_model=model))
        self.assertEqual(job.status().state, "SUCCEEDED")
        programs = model.seen[0]
        self.assertEqual((programs.rows.dtype, programs.rows.ndim), (numpy.float32, 2))
        self.assertFalse(programs.rows.flags.writeable)
        self.assertEqual(programs.offsets[0], 0)
        self.assertEqual(programs.offsets[-1], len(programs.rows))
        self.assertEqual(len(programs.offsets), len(programs) + 1)
        self.assertGreater(programs.rows.shape[1], 50)
        for each in (programs, model.results[0].programs):
            self.assertEqual(each.estimates_s.shape, each.rows.shape[:1])
            self.assertEqual(each.estimates_s.dtype, numpy.float32)
            self.assertTrue(((each.estimates_s > 1e-9) & (each.estimates_s < 1)).all())
            # A view of the message, as the rows are.
            self.assertFalse(each.estimates_s.flags.owndata or each.estimates_s.flags.writeable)
        results = model.results[-1]
        self.assertEqual(len(results.costs_s), len(results.programs))
        self.assertTrue(all(0 < each <= 1 for each in results.throughputs))
        self.assertTrue(numpy.isfinite(results.programs.rows).all())
        self.assertEqual(len({n for each in model.results for n in each.numbers}),
                         sum(len(each.numbers) for each in model.results))

    def test_throughputs_are_those_of_one_job(self):
        model = Rows()
        served = kiln.Served(cost_model=model)
        for size in (8, 256, 8):
            model.results = []
            self.tune(kiln.op("matmul", size, size, size), served=served)
            # The best program of this job is the measure of its results, not that of another task.
            self.assertEqual(max(max(each.throughputs) for each in model.results), 1)

    def test_an_objective_leaves_a_task_alone(self):
        tasks = [self.matmul, kiln.op("matmul", 32, 32, 32)]
        job = self.tune(tasks, trials=40, trials_per_round=4,
                        served=kiln.Served(objective=lambda latencies: latencies[1]))
        trials = [task.trials for task in job.status().tasks]
        self.assertLess(trials[0], 15)
        self.assertGreater(trials[1], 25)
        last = [event.round for event in job.watch() if event.round][-1]
        self.assertAlmostEqual(last.total_latency_s, last.best_s[1])

    def test_an_exception_fails_the_job_with_its_text(self):
        class Broken(Rows):
            def update(self, results):
                raise KeyError("conv2d")

        with self.assertRaisesRegex(
            kiln.KilnError,
            r"the cost model of the user raised an error: KeyError: 'conv2d' \(.*serving_test.py:",
        ) as caught:
            self.tune(served=kiln.Served(cost_model=Broken()))
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_a_job_that_failed_goes_on_with_mended_code(self):
        job = self.client.submit(self.matmul, served=kiln.Served(cost_model=Rows()),
                                 **_options())
        broken = Rows()
        broken.predict = lambda programs: [math.nan] * len(programs)
        with self.client.serve(job, kiln.Served(cost_model=broken)):
            with self.assertRaisesRegex(kiln.KilnError, "returned nan for state 0 of"):
                job.wait()
        done = job.status().trials_done
        job.resume()
        with self.client.serve(job, kiln.Served(cost_model=Rows())):
            self.assertEqual(job.wait().state, "SUCCEEDED")
        self.assertGreaterEqual(job.status().trials_done, done)
        self.assertEqual(job.status().trials_done, 24)

    def test_answers_that_do_not_fit_are_refused_by_a_sentence(self):
        class Short(Rows):
            def predict(self, programs):
                return [1.0]

        with self.assertRaisesRegex(kiln.KilnError, r"returned 1 scores for \d+ states"):
            self.tune(served=kiln.Served(cost_model=Short()))

        class Late(Rows):
            def predict(self, programs):
                time.sleep(2)
                return [0.0] * len(programs)

        with self.assertRaisesRegex(kiln.KilnError, "did not answer within 0.5 s"):
            self.tune(served=kiln.Served(cost_model=Late(), timeout_s=0.5))

        class Wrong(Sevenths):
            def apply(self, task, steps, stage):
                return Applied([(json.dumps([["SP", 2, 9, 64, [7], 1]]), stage - 1)])

        with self.assertRaisesRegex(kiln.KilnError, "sketch rule sevenths, stage 2: .*loop 9 does"):
            self.tune(served=kiln.Served(sketch_rules=[Wrong(2)]))

    def test_what_cannot_be_served_is_refused_before_anything_runs(self):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "nothing is served"):
            kiln.Served()
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected a function"):
            kiln.Served(objective="max")
        with self.assertRaisesRegex(kiln.KilnError, "policy sketch.random ranks by no cost model"):
            self.tune(policy="sketch.random", served=kiln.Served(cost_model=Rows()))
        plain = self.tune()
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "no part that a process serves"):
            self.client.serve(plain, kiln.Served(cost_model=Rows()))
        with self.assertRaises(kiln.NotFoundError):
            self.client.serve("nobody", kiln.Served(cost_model=Rows()))

    def test_a_job_of_another_user_is_not_served(self):
        job = self.client.submit(self.matmul, served=kiln.Served(cost_model=Rows()), **_options())
        with self.assertRaisesRegex(kiln.KilnError, "'eve' offers to serve it; only its user may"):
            self.client.serve(job, kiln.Served(cost_model=Rows()), user="eve")
        may_answer = threading.Event()

        class Waits(Rows):
            def predict(self, programs):
                may_answer.wait(20)
                return super().predict(programs)

        served = kiln.Served(cost_model=Waits())
        with self.client.serve(job, served) as serving:
            with self.assertRaisesRegex(kiln.KilnError, "another process serves job"):
                self.client.serve(job, kiln.Served(cost_model=Rows()))
            may_answer.set()
            job.wait()
        self.assertTrue(serving.wait(5))
        self.assertIsNone(serving.error)
        cost = served.costs["predict"]
        self.assertGreater(cost.bytes, 100 * cost.items)
        self.assertGreater(cost.items, cost.calls)

    def test_asyncio(self):
        model = Rows()
        job = asyncio.run(self.client.tune_async(
            self.matmul, served=kiln.Served(cost_model=model), **_options()))
        self.assertEqual(job.status().state, "SUCCEEDED")
        self.assertTrue(model.results)

    def test_tuning_ends_when_serving_does(self):
        def broken(request):
            raise TypeError("no size")

        async def tune_async():
            await self.client.tune_async(
                self.matmul, served=kiln.Served(cost_model=Rows()), **_options())

        for tune in (lambda: self.tune(served=kiln.Served(cost_model=Rows())),
                     lambda: asyncio.run(tune_async())):
            with mock.patch.object(serving_module, "_items", broken):
                with self.assertRaisesRegex(
                    kiln.KilnError, r"serving job \S+ ended: TypeError: no size \("
                ) as caught:
                    tune()
            self.assertIsInstance(caught.exception.__cause__, TypeError)
            self.assertEqual(self.client.jobs(1)[0].state, "CANCELLED")

    def test_closing_while_the_connection_is_made_again(self):
        go, released, opens, may_open = (threading.Event() for _ in range(4))
        asked = []

        class Waits(Rows):
            def predict(self, programs):
                asked.append(programs)
                (go if len(asked) == 1 else released).wait(20)
                return super().predict(programs)

        def late(method, request):
            opens.set()
            may_open.wait(20)
            return open_call(method, request)

        job = self.client.submit(self.matmul, served=kiln.Served(cost_model=Rows()), **_options())
        connection = self.client.connection
        open_call = connection.open
        at_work = self.client.serve(job, kiln.Served(cost_model=Waits()))
        with mock.patch.object(connection, "open", late), mock.patch.object(
            at_work, "_may_come_back", lambda *_: True
        ):
            self.assertTrue(wait_until(lambda: asked))
            at_work._call.cancel()
            go.set()
            self.assertTrue(opens.wait(20))
            at_work.close()
            may_open.set()
            self.assertTrue(at_work.wait(10))
        released.set()
        job.cancel()

    def test_a_job_waits_for_a_process_that_died_and_goes_on_with_the_next(self):
        job = self.client.submit(self.matmul, served=kiln.Served(cost_model=Rows()), **_options())
        self.assertIn("waits for the process that serves its cost model", job.status().phase)
        code = f"""
import os, signal, sys
import kiln
class Dies:
    reads_rows, reads_steps = True, False
    def predict(self, programs):
        return [0.0] * len(programs)
    def update(self, results):
        if max(results.numbers) >= 6:
            os.kill(os.getpid(), signal.SIGKILL)
client = kiln.connect({self.client.connection.address!r}, {self.client.connection.access.path!r})
client.serve({job.id!r}, kiln.Served(cost_model=Dies())).wait()
"""
        died = subprocess.run([sys.executable, "-c", code], check=False)
        self.assertEqual(died.returncode, -signal.SIGKILL)
        self.assertTrue(wait_until(lambda: job.status().state == "QUEUED"))
        status = job.status()
        self.assertIn("waits for the process that serves its cost model", status.phase)
        self.assertTrue(0 < status.trials_done < 24)
        self.assertTrue(wait_until(
            lambda: all(each.busy_slots == 0 for each in self.client.workers())))
        model = Rows()
        with self.client.serve(job, kiln.Served(cost_model=model)):
            self.assertEqual(job.wait().state, "SUCCEEDED")
        self.assertEqual(job.status().trials_done, 24)
        # The new process is told what was measured before.
        self.assertGreaterEqual(len(model.results[0].numbers), 6)

    def test_ctrl_c_cancels(self):
        code = f"""
import os, signal, threading
import kiln
class Endless:
    reads_rows, reads_steps = True, False
    def predict(self, programs):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        import time
        time.sleep(600)
    def update(self, results):
        pass
client = kiln.connect({self.client.connection.address!r}, {self.client.connection.access.path!r})
try:
    client.tune(kiln.op("matmul", 64, 64, 64), name="ctrl-c",
                served=kiln.Served(cost_model=Endless()), **{_options()!r})
except KeyboardInterrupt:
    os._exit(7)
"""
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], check=False)
        self.assertEqual(done.returncode, 7)
        self.assertLess(time.monotonic() - start, 300)
        job = next(each for each in self.client.jobs() if each.name == "ctrl-c")
        self.assertEqual(job.state, "CANCELLED")


class CpuTest(unittest.TestCase):
    """Programs that run."""

    def test_a_rule_makes_states_that_are_measured_and_checked(self):
        with kiln.local(os.path.join(FOLDER, "cpu.db")) as client:
            job = client.tune(
                kiln.op("matmul", 64, 64, 64), target="llvm", trials=8, finalists=0, verbose=0,
                served=kiln.Served(sketch_rules=[Sevenths(2)]),
            )
            made = [each for each in job.records() if '["SP", 2, 0, 64, [7], 1]' in each.steps]
            self.assertGreater(len(made), 2)
            self.assertTrue(all(each.error == "NO_ERROR" for each in made))


# A product of matrices that follows no schedule, for the interface of proto/cpu_abi.h.
PRODUCT = """
#include <stdint.h>
int32_t kiln_entry(void* context, void* const* args) {
  const float *a = args[%d], *b = args[%d];
  float* c = args[%d];
  for (int i = 0; i < %d; ++i)
    for (int j = 0; j < %d; ++j) {
      float sum = %s;
      for (int k = 0; k < %d; ++k) sum += a[i * %d + k] * b[k * %d + j];
      c[i * %d + j] = sum;
    }
  return 0;
}
"""


def compiled_product(candidate, first="0"):
    """The path of a shared object that computes the candidate's product plus `first`."""
    names = [each.name for each in candidate.arguments]
    at = {each.role: i for i, each in enumerate(candidate.arguments)}
    inputs = [i for i, each in enumerate(candidate.arguments) if each.role == "input"]
    (rows, depth), (_, columns) = (candidate.arguments[i].shape for i in inputs)
    assert len(set(names)) == len(names) and candidate.symbols == ("kiln_entry",)
    folder = tempfile.mkdtemp(dir=FOLDER)
    source, library = os.path.join(folder, "product.c"), os.path.join(folder, "product.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PRODUCT % (*inputs, at["output"], rows, columns, first, depth, depth, columns,
                              columns))
    subprocess.run(["cc", "-O1", "-fPIC", "-shared", source, "-o", library], check=True)
    return library


class BuildTest(unittest.TestCase):
    """A function of the user that makes the binaries."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(os.path.join(FOLDER, "builds.db"), device="cpu")
        cls.matmul = kiln.op("matmul", 32, 24, 16)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_what_the_function_makes_is_measured_and_checked(self):
        """Right binaries are timed; others fail their trials, and the job goes on."""
        kinds, seen, lock = {}, [], threading.Lock()
        order = ["right", "raises", "garbage", "wrong", "number", "nothing", "slow"]

        def build(candidate):
            with lock:
                kind = order[len(kinds)] if len(kinds) < len(order) else "right"
                kinds[candidate.steps] = kind
                seen.append(candidate)
            if kind == "raises":
                raise ValueError("no flags for it")
            if kind == "garbage":
                return b"\x7fELF and no more"
            if kind == "number":
                return 7
            if kind == "nothing":
                return b""
            if kind == "slow":
                time.sleep(4)
            library = compiled_product(candidate, "1" if kind == "wrong" else "0")
            if len(kinds) % 2:
                return library
            with open(library, "rb") as file:
                return file.read()

        served = kiln.Served(build=build, build_jobs=2)
        job = self.client.tune(self.matmul, target="llvm", trials=12, finalists=0, verbose=0,
                               build_timeout_ms=2500, served=served)
        self.assertEqual(job.status().state, "SUCCEEDED")
        records = list(self.client.records(job=job.id, errors=True))
        self.assertEqual(len(records), 12)
        expected = {
            "right": ("NO_ERROR", "^(busy machine: .*)?$"),
            "raises": ("COMPILE_HOST_ERROR", r"raised an error: ValueError: no flags for it "
                                             r"\(.*serving_test.py:\d+\)"),
            "garbage": ("COMPILE_DEVICE_ERROR", "."),
            "wrong": ("WRONG_ANSWER_ERROR", "."),
            "number": ("COMPILE_HOST_ERROR", "returned int, expected bytes or the path of a file"),
            "nothing": ("COMPILE_HOST_ERROR", "returned no bytes, expected a shared object"),
            "slow": ("BUILD_TIMEOUT_ERROR", "made no binary within 2.5 s"),
        }
        for record in records:
            error, message = expected[kinds[record.steps]]
            self.assertEqual(record.error, error, f"{kinds[record.steps]}: {record.message}")
            self.assertRegex(record.message, message)
        self.assertEqual(set(kinds.values()), set(expected))
        # The slow one may still be at it.
        for _ in range(100):
            if served.costs["build"].calls == 12:
                break
            time.sleep(0.1)
        self.assertEqual(served.costs["build"].calls, 12)
        candidate = seen[0]
        self.assertRegex(candidate.target, "^llvm .*-mcpu=")
        self.assertIn("define", candidate.source)
        self.assertIn("@kiln_entry(", candidate.source)
        self.assertEqual([(each.name, each.dtype, each.shape, each.role)
                          for each in candidate.arguments[:3]],
                         [("p0", "float32", (32, 16), "input"), ("p1", "float32", (16, 24), "input"),
                          ("T_matmul_NN", "float32", (32, 24), "output")])
        self.assertEqual((candidate.is_cuda, candidate.architecture), (False, ""))

    def test_calls_that_were_given_up_keep_their_places(self):
        """Slow calls do not pile up: what finds no place in time fails by a sentence."""
        may_return, lock = threading.Event(), threading.Lock()
        began, at_once = [], [0, 0]

        def build(candidate):
            with lock:
                began.append(candidate.steps)
                is_slow = len(began) <= 2
                at_once[0] += 1
                at_once[1] = max(at_once)
            if is_slow:
                may_return.wait(120)
            made = compiled_product(candidate)
            with lock:
                at_once[0] -= 1
            return made

        def look(event):
            if event.record is not None and "earlier calls" in event.record.message:
                may_return.set()

        # More trials than wait for a place at once.
        job = self.client.tune(self.matmul, target="llvm", trials=24, finalists=0, verbose=0,
                               build_timeout_ms=4000, no_warm_start=True, callbacks=[look],
                               served=kiln.Served(build=build, build_jobs=2))
        self.assertEqual(job.status().state, "SUCCEEDED")
        self.assertEqual(at_once[1], 2)
        records = list(self.client.records(job=job.id, errors=True))
        self.assertEqual(len(records), 24)
        errors = {each.steps: (each.error, each.message) for each in records}
        for steps in began[:2]:
            self.assertEqual(errors[steps][0], "BUILD_TIMEOUT_ERROR", errors[steps])
        refused = [each for each in records if each.error == "COMPILE_HOST_ERROR"]
        self.assertTrue(refused)
        for each in refused:
            self.assertIn("2 earlier calls of the build function still run, so this one did not "
                          "begin within 3.6 s; give", each.message)
            self.assertNotIn(each.steps, began)
        # The places are free again once the slow calls have returned.
        self.assertIn("NO_ERROR", [each.error for each in records])

    def test_python_waits_at_its_end_for_calls_that_have_begun(self):
        job = self.client.submit(self.matmul, target="llvm", trials=8, finalists=0,
                                 no_warm_start=True, build_timeout_ms=100_000,
                                 served=kiln.Served(build=len, build_jobs=1))
        code = f"""
import sys, threading
import kiln
began, told = threading.Event(), threading.Event()
class Errors:
    def write(self, text):
        sys.__stderr__.write(text)
        if "waits for" in text:
            told.set()
    def flush(self):
        sys.__stderr__.flush()
sys.stderr = Errors()
def build(candidate):
    print("began", flush=True)
    began.set()
    is_told = told.wait(60)
    print("returned", is_told, threading.main_thread().is_alive(), flush=True)
    raise ValueError("no binary")
client = kiln.connect({self.client.connection.address!r}, {self.client.connection.access.path!r})
client.serve({job.id!r}, kiln.Served(build=build, build_jobs=1))
assert began.wait(60)
"""
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["began", "returned True False"])
        self.assertIn("kiln: Python waits for 1 call of the build function to return\n", done.stderr)
        job.cancel()

    def test_the_builders_of_tvms_calls_take_a_function(self):
        auto_scheduler.use(self.client)
        task = auto_scheduler.SearchTask(
            compute_dag=auto_scheduler.ComputeDAG(self.matmul), target="llvm")
        built = []

        def build(candidate):
            built.append(candidate.steps)
            return compiled_product(candidate)

        builder = auto_scheduler.LocalBuilder(build_func=build, n_parallel=2)
        task.tune(auto_scheduler.TuningOptions(num_measure_trials=2, builder=builder, verbose=0))
        self.assertGreaterEqual(len(built), 2)
        built.clear()
        states = [[], [["SP", 2, 0, 32, [4], 1]]]
        _, results = auto_scheduler.measure(task, states, builder)
        self.assertEqual([each.error_no for each in results], [0, 0])
        self.assertEqual(sorted(map(json.loads, built)), states)
        built.clear()
        inputs = [auto_scheduler.MeasureInput(task, auto_scheduler.State(
            auto_scheduler.StateObject(task.compute_dag, each), task.compute_dag))
                  for each in states]
        results = auto_scheduler.LocalRunner().run(inputs, builder.build(inputs))
        self.assertEqual([each.error_no for each in results], [0, 0])
        self.assertEqual(len(built), 2)

    def test_what_is_no_function_is_refused(self):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "build is 'cc', expected a function"):
            kiln.Served(build="cc")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "build_jobs is 257, expected 0 to"):
            kiln.Served(build=len, build_jobs=257)


class BuildsTest(unittest.TestCase):
    """The places of the calls of a build function."""

    def setUp(self):
        self.builds = Builds(1)
        self.sent, self.refused, self.may_return = [], [], threading.Event()
        self.addCleanup(self.may_return.set)

    def start(self, name, within_s=60):
        def call():
            if name == "slow":
                self.may_return.wait(60)
            if name == "raises":
                raise SystemExit(1)
            return name

        self.builds.start(call, self.sent.append, self.refused.append, within_s)

    def test_a_call_waits_for_a_place(self):
        self.start("slow")
        self.start("next")
        self.start("late", within_s=0.01)
        self.assertTrue(wait_until(lambda: self.refused))
        self.assertEqual(self.sent, [])
        self.may_return.set()
        self.assertTrue(wait_until(lambda: len(self.sent) == 2))
        self.assertEqual(self.sent, ["slow", "next"])
        self.assertEqual(self.refused, [
            "1 earlier call of the build function still runs, so this one did not begin within "
            "0.01 s; give what the function runs a time limit, or raise build_jobs"])

    def test_a_call_that_raises_gives_its_place_back(self):
        self.start("raises")
        self.start("next")
        self.assertTrue(wait_until(lambda: self.sent))
        self.assertEqual((self.sent, self.refused), (["next"], []))

    def test_no_call_begins_after_the_main_thread(self):
        code = """
import threading
from kiln.farm.builds import Builds
builds, may_return = Builds(1), threading.Event()
def second():
    print("second")
def first():
    may_return.wait(60)
    threading.main_thread().join()
    print("first")
builds.start(first, print, print, 60)
builds.start(second, print, print, 60)
may_return.set()
"""
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                              text=True)
        self.assertEqual(done.stdout.splitlines(), ["first", "None"])


class AutoSchedulerTest(unittest.TestCase):
    """The calls of TVM: states of tasks, and functions of them."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(os.path.join(FOLDER, "calls.db"), device="null")
        auto_scheduler.use(cls.client)
        # A task of its own for rules, because a job begins with the records of its task.
        cls.task, cls.other, cls.of_rules = (
            auto_scheduler.SearchTask(
                compute_dag=auto_scheduler.ComputeDAG(kiln.op("matmul", size, size, size)),
                target="null",
            )
            for size in (64, 32, 40)
        )

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    @staticmethod
    def options(**named):
        return auto_scheduler.TuningOptions(**{
            "num_measure_trials": 12, "num_measures_per_round": 4, "verbose": 0, **named})

    def policy(self, model=None, *callbacks):
        task = self.of_rules if callbacks else self.task
        params = QUICK["parameter"]
        return auto_scheduler.SketchPolicy(
            task, model, params, init_search_callbacks=list(callbacks))

    def test_a_model_of_states(self):
        class Model(auto_scheduler.PythonBasedModel):
            asked, told = [], []

            def predict(self, task, states):
                self.asked.append((task, states))
                return [float(len(each.transform_steps)) for each in states]

            def update(self, inputs, results):
                self.told += zip(inputs, results)

        model = Model()
        job = self.task.tune(self.options(), self.policy(model))
        self.assertEqual(job.status().trials_done, 12)
        task, states = model.asked[0]
        self.assertIs(task, self.task)
        self.assertGreater(len(states[0].stages), 2)
        given, result = model.told[0]
        self.assertIs(given.task, self.task)
        self.assertTrue(given.state.transform_steps)
        self.assertTrue(0 < result.costs[0] < 1)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "Model ranks within a job"):
            self.policy(model).evolutionary_search([states[0]], 1)

    def test_a_model_of_rows(self):
        class Model(auto_scheduler.PythonBasedModel):
            throughputs = []

            def predict_rows(self, task, programs):
                return programs.rows[programs.offsets[:-1]].sum(1)

            def update_rows(self, task, results):
                self.throughputs += results.throughputs

        model = Model()
        self.task.tune(self.options(), self.policy(model))
        self.assertEqual(max(model.throughputs), 1)

    def test_a_rule_of_states(self):
        rule = auto_scheduler.PreloadCustomSketchRule
        levels = []

        def meet(policy, state, stage_id):
            state = auto_scheduler.State(state, policy.search_task.compute_dag)
            levels.append(stage_id)
            is_sum = any(loop.iter_kind == 1 for loop in state.stages[stage_id].iters)
            return rule.APPLY_AND_SKIP_REST if is_sum else rule.PASS

        def apply(policy, state, stage_id):
            state = auto_scheduler.State(state, policy.search_task.compute_dag)
            i, j, _ = state.stages[stage_id].iters
            state.split(stage_id, i, [7])
            state.split(stage_id, j, [None, 2])
            return [[state.state_object, stage_id - 1]]

        def tune(meet, apply):
            return self.of_rules.tune(self.options(), self.policy(None, rule(meet, apply)))

        job = tune(meet, apply)
        made = [each for each in job.records() if '["SP", 2, 0, 40, [7], 1]' in each.steps]
        self.assertGreater(len(made), 2)
        self.assertEqual(levels, [2, 1, 0])

        def illegal(policy, state, stage_id):
            state = auto_scheduler.State(state, policy.search_task.compute_dag)
            state.fuse(stage_id, state.stages[stage_id].iters[:1] * 2)

        with self.assertRaisesRegex(kiln.KilnError, "the sketch rules of the user raised an error"):
            tune(meet, illegal)
        with self.assertRaisesRegex(kiln.KilnError, "returned 5, expected PASS"):
            tune(lambda *_: 5, apply)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected a function"):
            rule(None, apply)

    def test_an_objective(self):
        tuner = auto_scheduler.TaskScheduler(
            [self.task, self.other], objective_func=lambda costs: costs[1], callbacks=[])
        job = tuner.tune(self.options(num_measure_trials=40), "sketch.random")
        trials = [task.trials for task in job.status().tasks]
        self.assertLess(trials[0], 15)
        self.assertGreater(trials[1], 25)


def _options():
    return {**{k: v for k, v in QUICK.items() if k != "verbose"}, "no_warm_start": True}


if __name__ == "__main__":
    unittest.main(verbosity=2)
