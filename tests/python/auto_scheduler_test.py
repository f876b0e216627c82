"""The calls of TVM's auto_scheduler, on this machine's CPU and on the null device."""

import contextlib
import io
import json
import os
import unittest
from unittest import mock

import kiln
import numpy
from kiln import auto_scheduler, te, topi

FOLDER = os.environ["KILN_TEST_FOLDER"]


def path(name):
    return os.path.join(FOLDER, name)


@auto_scheduler.register_workload
def matmul_add(n, l, m, dtype):
    a = te.placeholder((n, l), name="A", dtype=dtype)
    b = te.placeholder((l, m), name="B", dtype=dtype)
    c = te.placeholder((n, m), name="C", dtype=dtype)
    k = te.reduce_axis((0, l), name="k")
    product = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    out = te.compute((n, m), lambda i, j: product[i, j] + c[i, j], name="out")
    # The order of the arguments is not that in which the computation reads them.
    return [c, a, b, out]


ARGS = (16, 24, 8, "float32")


@contextlib.contextmanager
def working_in(folder):
    before = os.getcwd()
    os.makedirs(folder)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def options(trials=4, **named):
    return auto_scheduler.TuningOptions(num_measure_trials=trials, verbose=0, **named)


class Seen(auto_scheduler.PythonBasedMeasureCallback):
    def __init__(self):
        self.inputs, self.results = [], []

    def callback(self, policy, inputs, results):
        self.inputs += inputs
        self.results += results


class CpuTest(unittest.TestCase):
    """A task from its declaration to its calls, on a CPU."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(path("cpu.db"), device="cpu")
        auto_scheduler.use(cls.client)
        cls.task = auto_scheduler.SearchTask(func=matmul_add, args=ARGS, target="llvm")
        cls.log = path("logs/matmul.json")
        cls.seen = Seen()
        record = auto_scheduler.RecordToFile(cls.log)
        runner = auto_scheduler.LocalRunner(min_repeat_ms=10)
        cls.job = cls.task.tune(options(measure_callbacks=[record, cls.seen], runner=runner))

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_calls_of_the_best_program(self):
        function = self.task.apply_best(self.log)
        random = numpy.random.default_rng(1)
        shapes = ((16, 8), (16, 24), (24, 8))
        c, a, b = (random.standard_normal(shape, "float32") for shape in shapes)
        want = a @ b + c
        numpy.testing.assert_allclose(function(c, a, b), want, atol=1e-4)
        out = numpy.empty((16, 8), "float32")
        function(c, a, b, out)
        numpy.testing.assert_allclose(out, want, atol=1e-4)
        timed = function.time_evaluator(function.entry_name, repeat=3, number=2)(c, a, b, out)
        self.assertEqual(len(timed.results), 3)
        self.assertTrue(0 < timed.min <= timed.median <= timed.max and timed.std >= 0)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "2 arrays are given, expected 3"):
            function(c, a)

    def test_the_log_is_one_of_tvm(self):
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(len(lines), 4)
        key, target, hardware, host, layout, inputs = lines[0]["i"][0]
        self.assertEqual(json.loads(key), ["matmul_add", *ARGS])
        self.assertTrue(target.startswith("llvm -"))
        self.assertEqual((len(hardware), host, layout, inputs), (8, "", 0, []))
        self.assertEqual(lines[0]["v"], "v0.6")

    def test_reading_logs(self):
        inputs, results = auto_scheduler.RecordReader(self.log).read_lines()
        self.assertEqual(inputs[0].state, self.seen.inputs[0].state)
        costs = [each.costs for each in self.seen.results]
        self.assertEqual([each.costs for each in results], costs)
        self.assertEqual(len(auto_scheduler.RecordReader(self.log).read_lines(2, 1)[0]), 2)
        self.assertEqual(len(list(auto_scheduler.load_records(self.log))), 4)
        given, result = auto_scheduler.load_best_record(self.log, self.task.workload_key, "llvm")
        self.assertEqual(min(result.costs), min(min(each.costs) for each in results))
        self.assertEqual(given.task.workload_key, self.task.workload_key)
        none = (None, None)
        self.assertEqual(auto_scheduler.load_best_record(self.log, "other", "llvm"), none)
        self.assertEqual(auto_scheduler.load_best_record(self.log, target="cuda"), none)
        near = auto_scheduler.make_workload_key(matmul_add, (32, 24, 8, "float32"))
        self.assertEqual(auto_scheduler.load_best_record(self.log, near, "llvm"), none)
        given, _ = auto_scheduler.load_best_record(self.log, near, "llvm", True)
        history = auto_scheduler.ApplyHistoryBest(self.log, include_compatible=True)
        self.assertEqual(history.query("llvm", near), given.state)
        self.assertIsNone(history.query("cuda", near))
        self.assertIsNone(auto_scheduler.ApplyHistoryBest(self.log).query("llvm", near))
        copy = path("copy.json")
        auto_scheduler.save_records(copy, inputs, results)
        with open(copy, encoding="utf-8") as one, open(self.log, encoding="utf-8") as other:
            self.assertEqual(one.read(), other.read())

    def test_distilling_a_log(self):
        auto_scheduler.distill_record_file(self.log, self.log + ".best.json")
        best = list(auto_scheduler.load_records(self.log + ".best.json"))
        self.assertEqual(best, [auto_scheduler.load_best_record(self.log)])

    def test_the_best_program_as_text(self):
        self.assertIn("s[matmul]", self.task.print_best(self.log))
        self.assertIn("define", self.task.print_best(self.log, "llvm"))

    def test_schedules_of_an_outside_search(self):
        sketch = auto_scheduler.SketchPolicy(self.task).generate_sketches()[0]
        state = sketch.fill([[2, 2, 2], [1, 1, 8], [4]])
        logged = self.seen.inputs[0].state
        wrong = [["SP", 2, 0, 16, [2], 1], ["AN", 9, 0, 3]]
        seen = Seen()
        inputs, results = auto_scheduler.measure(
            self.task, [state, wrong, logged, state], measure_callbacks=[seen]
        )
        steps = [each.state.transform_steps for each in inputs]
        self.assertEqual(steps[:3], [state.transform_steps, wrong, logged.transform_steps])
        self.assertEqual((inputs[3], results[3]), (inputs[0], results[0]))
        self.assertEqual(len(seen.inputs), 2)
        self.assertEqual([each.error_no for each in results], [0, 1, 0, 0])
        self.assertLess(results[0].costs[0], 0.1)
        self.assertIn("of stage 9: the state has", results[1].error_msg)
        log = path("own.json")
        auto_scheduler.save_records(log, inputs, results)
        self.task.apply_best(log)
        built = auto_scheduler.LocalBuilder().build(inputs)
        self.assertEqual([each.error_no for each in built], [0, 1, 0, 0])
        again = auto_scheduler.LocalRunner(min_repeat_ms=1, number=1).run(inputs, built)
        self.assertEqual([each.error_no for each in again], [0, 1, 0, 0])
        for why, lengths in (("1 lists", [[1]]), ("expected 3 of", [[2, 2], [1, 1, 1], [4]]),
                             ("expected 3 of", [[2, 2, 3], [1, 1, 1], [4]]),
                             ("does not divide 16", [[8, 4, 1], [1, 1, 1], [4]])):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                sketch.fill(lengths)

    def test_a_log_without_a_program(self):
        args = (16, 24, 4, "float32")
        other = auto_scheduler.SearchTask(func=matmul_add, args=args, target="llvm")
        with self.assertRaisesRegex(kiln.NotFoundError, "has no program for .*matmul_add"):
            other.apply_best(self.log)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "cannot read /nowhere/log"):
            self.task.apply_best("/nowhere/log")
        bad = path("bad.json")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("# a comment\n{}\n")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "bad.json:2: no line of a log"):
            self.task.apply_best(bad)
        given, result = auto_scheduler.load_best_record(self.log)
        line = json.loads(auto_scheduler.dump_record_to_string(given, result))
        for part, at, value, expected in (
            (line["r"], 0, [], r"found the costs \[\] without an error, expected seconds"),
            (line["r"], 0, [0.0], r"found the costs \[0.0\] without"),
            (line["i"][0], 1, "", "found the target '', expected one"),
        ):
            kept, part[at] = part[at], value
            with open(bad, "w", encoding="utf-8") as file:
                file.write(json.dumps(line))
            part[at] = kept
            for read in (
                lambda: auto_scheduler.load_best_record(bad, target="llvm"),
                lambda: auto_scheduler.ApplyHistoryBest(bad),
                lambda: auto_scheduler.distill_record_file(bad, path("distilled.json")),
            ):
                with self.assertRaisesRegex(kiln.InvalidArgumentError, expected):
                    read()
        other.apply_best(self.log, include_compatible=True)


class HistoryTest(unittest.TestCase):
    """A network with the programs of a log."""

    def test_a_network_is_built_of_a_log(self):
        log = path("mlp.json")
        with kiln.local(path("mlp.db"), device="cpu") as client:
            auto_scheduler.use(client)
            tasks, weights = auto_scheduler.extract_tasks("network:mlp", target="llvm")
            runner = auto_scheduler.LocalRunner(min_repeat_ms=1, number=1)
            record = auto_scheduler.RecordToFile(log)
            tuner = auto_scheduler.TaskScheduler(tasks, weights)
            tuner.tune(options(8, measure_callbacks=[record], runner=runner))
            auto_scheduler.build("network:mlp", "llvm")
        with auto_scheduler.ApplyHistoryBest(log) as history:
            net = auto_scheduler.build("network:mlp", "llvm")
            self.assertEqual({kernel.source for kernel in net.kernels}, {"tuned"})
            self.assertEqual(net(numpy.zeros((1, 784), "float32")).shape, (1, 10))
            key = tasks[0].workload_key
            found = history.query("llvm", key, dag=tasks[0].compute_dag)
            self.assertGreater(len(found.stages), 2)
            self.assertIsNone(history.query("cuda", key))
            others = [each for each in history.pairs if each[0].task.workload_key != key]
            with auto_scheduler.ApplyHistoryBest(others[:1]) as inner:
                # The outer records have the rest.
                self.assertIs(auto_scheduler.DispatchContext.current, inner)
                for runs in inner, history:
                    with self.assertRaisesRegex(kiln.KilnError, "ApplyHistoryBest runs already"):
                        runs.__enter__()
                self.assertIs(auto_scheduler.DispatchContext.current, inner)
                self.assertEqual(inner.query("llvm", key).transform_steps, found.transform_steps)
                auto_scheduler.build("network:mlp", "llvm")
                inner.update("llvm", key, [])
                self.assertEqual(inner.query("llvm", key).transform_steps, [])
        with auto_scheduler.ApplyHistoryBest(history.pairs, n_lines=1):
            self.assertTrue(auto_scheduler.is_auto_scheduler_enabled())
            with self.assertRaisesRegex(kiln.KilnError, "never tuned"):
                auto_scheduler.build("network:mlp", "llvm")
        with auto_scheduler.ApplyHistoryBest([], include_compatible=True):
            auto_scheduler.build("network:mlp", "llvm")
        # A database of the farm has the records as well.
        best = auto_scheduler.ApplyHistoryBest(path("mlp.db"))
        self.assertIsNotNone(best.query("llvm", tasks[1].compute_dag.workload_key()))
        self.assertIsNone(auto_scheduler.FallbackContext().query("llvm", key))
        for context in (best, auto_scheduler.FallbackContext()):
            with self.assertRaisesRegex(kiln.InvalidArgumentError,
                                        "target is '', expected a kind and its options"):
                context.query("", key)
        outermost = auto_scheduler.DispatchContext.current
        self.assertIsInstance(outermost, auto_scheduler.FallbackContext)
        with self.assertRaisesRegex(kiln.KilnError, "FallbackContext runs already"):
            outermost.__enter__()


class NullTest(unittest.TestCase):
    """Policies, options and several tasks, on a device that measures nothing."""

    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(path("null.db"), device="null")
        auto_scheduler.use(cls.client)
        cls.task = auto_scheduler.SearchTask(func=matmul_add, args=ARGS, target="null")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def spec(self, job):
        request = kiln.farm.client.scheduler_pb2.GetJobRequest(job_id=job.id)
        connection = self.client.connection
        return connection.call(connection.scheduler.GetJob, request).spec

    def test_options_reach_the_job(self):
        job = self.task.tune(
            options(
                early_stopping=3,
                builder=auto_scheduler.LocalBuilder(timeout=7),
                runner=auto_scheduler.LocalRunner(
                    timeout=2.5, number=2, repeat=3, min_repeat_ms=4, cooldown_interval=0.001,
                    enable_cpu_cache_flush=True,
                ),
            ),
            auto_scheduler.SketchPolicy(
                self.task, auto_scheduler.RandomModel(), {"max_innermost_split_factor": 16}, seed=5
            ),
        )
        found = self.spec(job).options
        self.assertEqual((found.trials, found.early_stopping, found.seed), (4, 3, 5))
        self.assertEqual((found.policy, found.build_timeout_ms), ("sketch.random", 7000))
        self.assertEqual(dict(found.policy_parameters), {"max_innermost_split_factor": 16})
        measure = found.measure
        self.assertEqual((measure.timeout_ms, measure.number, measure.repeat), (2500, 2, 3))
        self.assertEqual((measure.min_repeat_ms, measure.cooldown_ms), (4, 1))
        self.assertTrue(measure.flush_cache)

    def test_the_empty_policy(self):
        job = self.task.tune(options(), auto_scheduler.EmptyPolicy(self.task))
        self.assertEqual(job.status().trials_done, 1)

    def test_measured_states_of_a_log(self):
        log = path("null.json")
        record = auto_scheduler.RecordToFile(log)
        self.task.tune(options(measure_callbacks=[record]))
        policy = auto_scheduler.SketchPolicy(
            self.task, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)]
        )
        self.assertEqual(self.task.tune(options(), policy).status().state, "SUCCEEDED")

    def test_several_tasks(self):
        other = auto_scheduler.SearchTask(func=matmul_add, args=(8, 8, 8, "float32"), target="null")
        seen = Seen()
        latency = path("total_latency.tsv")
        scheduler = auto_scheduler.TaskScheduler(
            [self.task, other], [3, 1], strategy="round-robin", alpha=0.5, beta=3,
            backward_window_size=4, callbacks=[auto_scheduler.LogEstimatedLatency(latency)],
        )
        job = scheduler.tune(options(8, measure_callbacks=[seen]), "sketch.random")
        spec = self.spec(job)
        self.assertEqual([task.weight for task in spec.tasks], [3, 1])
        found = (spec.options.task_strategy, spec.options.trials_per_round)
        self.assertEqual(found, ("round-robin", 4))
        gradient = (spec.options.task_alpha, spec.options.task_beta, spec.options.task_window)
        self.assertEqual(gradient, (0.5, 3, 4))
        with open(latency, encoding="utf-8") as file:
            self.assertRegex(file.readlines()[-1], r"^ElapsedTime\(s\)\t\d+\tEst.*\tTrials\t8\n$")
        keys = {given.task.workload_key for given in seen.inputs}
        self.assertEqual(keys, {self.task.workload_key, other.workload_key})
        self.assertEqual((scheduler.ct, scheduler.task_trials), (8, [4, 4]))
        self.assertLess(max(scheduler.best_costs), 1)

    def test_tables_and_callbacks_of_rounds(self):
        told = []

        class Told(auto_scheduler.TaskSchedulerCallback):
            def pre_tune(self, task_scheduler, task_id):
                told.append(("pre", task_id))

            def post_tune(self, task_scheduler, task_id):
                told.append(("post", task_id, task_scheduler.task_cts[task_id]))

        said = io.StringIO()
        scheduler = auto_scheduler.TaskScheduler(
            [self.task], callbacks=[Told(), auto_scheduler.PrintTableInfo()]
        )
        with contextlib.redirect_stderr(said):
            scheduler.tune(options(4, num_measures_per_round=2))
        self.assertEqual(told[:2], [("pre", 0), ("post", 0, 1)])
        self.assertIn(("post", 0, 2), told)
        self.assertIn("| ID | Task Description | Latency (ms) | Speed (GFLOPS) | Trials |",
                      said.getvalue())

    def test_policies_of_tasks(self):
        other = auto_scheduler.SearchTask(
            func=matmul_add, args=(8, 8, 8, "float32"), target="null")
        tasks = [self.task, other]
        scheduler = auto_scheduler.TaskScheduler(tasks, callbacks=[])
        job = scheduler.tune(options(4), [auto_scheduler.EmptyPolicy(each) for each in tasks])
        self.assertEqual([task.trials for task in job.status().tasks], [1, 1])
        policy = auto_scheduler.SketchPolicy(self.task, auto_scheduler.RandomModel())
        for wrong, why in (
            ([policy], "1 policies are given, expected 2"),
            ([policy, policy], r"search_policy\[1\] is of <SearchTask out for null>, expected"),
            ([policy, 5], r"search_policy\[1\] is a int"),
        ):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                scheduler.tune(options(4), wrong)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "search_policy is a str"):
            self.task.tune(options(4), "sketch.random")

    def test_hardware_of_a_task(self):
        params = auto_scheduler.HardwareParams(num_cores=3, cache_line_bytes=128)
        task = auto_scheduler.SearchTask(
            func=matmul_add, args=ARGS, target="null", hardware_params=params
        )
        self.assertEqual(task.target, "null -num-cores=3 -cache_line_bytes=128")
        seen = Seen()
        task.tune(options(2, measure_callbacks=[seen]))
        self.assertEqual(seen.inputs[0].task.hardware_params[0], 3)
        self.assertEqual(seen.inputs[0].task.hardware_params[2], 128)
        gpu = auto_scheduler.HardwareParams(
            -1, 8, 128, 1024, 4096, 256, 4, 32, target="cuda -arch=sm_90"
        )
        text = gpu.options("cuda -arch=sm_90")
        self.assertIn("-max_vthread_extent=4", text)
        self.assertIn("-max_local_memory_per_block=4096", text)
        known = kiln.farm.engine.engine().opened("input x: float32[1]\ny[i: 1] = x[i]\n", text)
        self.assertEqual(list(known["hardware"].values()), [128, 4096, 1024, 256, 4, -1, 8, 32])
        whole = auto_scheduler.HardwareParams(target="cuda")
        self.assertEqual((whole.warp_size, whole.max_vthread_extent), (32, 8))

    def test_inputs_of_a_task(self):
        data = numpy.arange(5, 5 + 16 * 24, dtype="float32").reshape(16, 24)
        task = auto_scheduler.SearchTask(
            func=matmul_add, args=ARGS, target="null", task_inputs={"A": data}
        )
        job = task.tune(options(2))
        self.assertIn("@range(5.0, 388.0)", self.spec(job).tasks[0].dag)
        kept = auto_scheduler.get_task_input_buffer(task.workload_key, "A")
        self.assertIs(auto_scheduler.register_task_input_buffer(task.workload_key, "A", 3), kept)
        with self.assertRaisesRegex(kiln.NotFoundError, "B of .* has no buffer"):
            auto_scheduler.SearchTask(func=matmul_add, args=ARGS, target="null", task_inputs=["B"])

    def test_inputs_are_those_of_their_task(self):
        def task(rows, low=None):
            data = None if low is None else {"A": numpy.array([low, low + 1.0], "float32")}
            return auto_scheduler.SearchTask(
                func=matmul_add, args=(rows, *ARGS[1:]), target="null", task_inputs=data
            )

        tasks = [task(4, 2), task(5, -3), task(6)]
        job = auto_scheduler.TaskScheduler(tasks, callbacks=[]).tune(options(3))
        texts = [each.dag for each in self.spec(job).tasks]
        self.assertIn("@range(2.0, 3.0)\ninput A:", texts[0])
        self.assertIn("@range(-3.0, -2.0)\ninput A:", texts[1])
        self.assertNotIn("@range", texts[2])
        declared = kiln.computation("@range(0, 1) input A: float32[2]\nB[i: 2] = A[i] + 1.0\n")
        ranged = auto_scheduler.SearchTask(
            compute_dag=auto_scheduler.ComputeDAG(declared), target="null",
            task_inputs={"A": numpy.array([3, 4], "int32")},
        )
        text = ranged.measured_computation.text
        self.assertTrue(text.startswith("@range(3, 4)\ninput A: float32[2]\nB["), text)
        wrong = auto_scheduler.SearchTask(
            func=matmul_add, args=ARGS, target="null", task_inputs={"Z": numpy.zeros(2)}
        )
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "out has no input Z"):
            wrong.tune(options(2))

    def test_files_of_inputs(self):
        read, write = (
            auto_scheduler.get_task_input_buffer, auto_scheduler.register_task_input_buffer)
        with working_in(path("inputs")):
            kept = numpy.arange(6, dtype="int32").reshape(2, 3)
            write("of_files", "of_file.final", kept, save_to_file=True)
            numpy.save("of_file.final.npy", kept)
            with self.assertRaisesRegex(kiln.NotFoundError, "of_file of .* has no buffer"):
                read("other", "of_file")
            numpy.testing.assert_array_equal(read("other", "of_file.final"), kept)
            write("of_files", "one", numpy.float32(0.5), save_to_file=True)
            self.assertEqual(read("other", "one"), 0.5)
            with open("bad.3_int32.npy", "w", encoding="utf-8") as file:
                file.write("1 2")
            with self.assertRaisesRegex(kiln.InvalidArgumentError, "bad.3_int32.npy is no buffer"):
                read("other", "bad")

    def test_a_model_that_is_kept(self):
        file = path("xgb.model")
        policy = auto_scheduler.SketchPolicy(
            self.task, auto_scheduler.XGBModel(model_file=file, seed=2), seed=2
        )
        seen = Seen()
        self.task.tune(options(40, measure_callbacks=[seen]), policy)
        kept = auto_scheduler.XGBModel()
        kept.load(file)
        states = [given.state for given in seen.inputs[:3]]
        trained = policy.program_cost_model.predict(self.task, states)
        self.assertEqual(kept.predict(self.task, states), trained)
        self.assertNotEqual(auto_scheduler.XGBModel().predict(self.task, states), trained)
        own = auto_scheduler.XGBModel()
        own.update(seen.inputs, seen.results)
        self.assertEqual(len(own.predict_stages(self.task, states)[0]), 3)
        own.save(path("own.model"))
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "learned nothing yet"):
            auto_scheduler.XGBModel().save(path("none.model"))
        log = path("commented.json")
        with open(log, "w", encoding="utf-8") as file:
            file.write("# a comment\n\n")
        auto_scheduler.save_records(log, seen.inputs, seen.results)
        read = []
        with mock.patch.object(
            own, "_learn", lambda log, *_: read.extend(auto_scheduler.load_records(log))
        ):
            own.update_from_file(log, 3)
        # Lines without a record do not count.
        self.assertEqual([each.state for each, _ in read], states)

    def test_a_job_succeeds_without_the_file_of_its_model(self):
        file = path("too_few.model")
        policy = auto_scheduler.SketchPolicy(self.task, auto_scheduler.XGBModel(model_file=file))
        with self.assertLogs("kiln.auto_scheduler", "WARNING") as said:
            job = self.task.tune(options(2), policy)
        self.assertEqual(job.status().state, "SUCCEEDED")
        self.assertIn(f"{file} is not written: ", said.output[0])
        self.assertFalse(os.path.exists(file))

    def test_the_model_says_how_well_it_ranks(self):
        model = auto_scheduler.XGBModel(verbose_eval=2)
        record = kiln.farm.values.Record
        names = {each: None for each in record.__dataclass_fields__}
        events = [
            kiln.farm.values.Event(None, record(**{**names, "score": score, "cost_s": cost}))
            for score, cost in ((0.0, 2.0), (0.9, 1.0))
        ]
        with self.assertLogs("kiln.auto_scheduler", "INFO") as said:
            for event in events:
                model.watch(event)
        self.assertIn("ordered 100% of the pairs", said.output[0])
        self.assertEqual(
            auto_scheduler.XGBModel(adaptive_training=True, seed=4).options()["model_parameter"],
            {"full_growth": 0.2, "step_growth": 1000.0},
        )

    def test_a_model_ranks_after_its_warm_up(self):
        task = auto_scheduler.SearchTask(
            func=matmul_add, args=(40, 24, 8, "float32"), target="null")
        model = auto_scheduler.XGBModel(num_warmup_sample=7)
        policy = auto_scheduler.SketchPolicy(task, model, {
            "evolutionary_search_population": 32, "sample_init_population": 16, "prior_round": 0})
        job = task.tune(options(16, num_measures_per_round=4), policy)
        reports = [event.round.report for event in job.watch() if event.round]
        ranked = ["ranked by xgb" in each for each in reports]
        self.assertEqual(ranked, [False, False, True, True])
        self.assertNotIn("model_parameter", auto_scheduler.XGBModel().options())
        model.load(path("kept.model"))
        self.assertNotIn("model_parameter", model.options())

    def test_tasks_of_a_network(self):
        tasks, weights = auto_scheduler.extract_tasks("network:mlp", target="llvm")
        self.assertEqual(weights, [1, 1, 1, 1])
        self.assertIn("matmul", tasks[0].desc)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "weights that its network packs"):
            tasks[0].apply_best(path("null.json"))

    def test_sketches(self):
        task = auto_scheduler.SearchTask(func=matmul_add, args=ARGS, target="llvm")
        sketches = auto_scheduler.SketchPolicy(task).generate_sketches()
        self.assertEqual(len(sketches), 3)
        self.assertEqual(sketches[0].blanks[0]["extent"], 16)
        self.assertGreater(sketches[0].tile_sizes, 1)

    def test_what_has_no_meaning_is_refused_by_name(self):
        def refuses(why, function, *given, **named):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                function(*given, **named)

        a = auto_scheduler
        refuses("warp_size is 32", a.SearchTask, matmul_add, ARGS, target="null",
                hardware_params=a.HardwareParams(warp_size=32))
        refuses("task_inputs is a int", a.SearchTask, matmul_add, ARGS, target="null",
                task_inputs=1)
        refuses("target_host is", a.SearchTask, matmul_add, ARGS, target="null",
                target_host="llvm")
        refuses("option is 1 .INSERT", a.SearchTask, matmul_add, ARGS, target="null",
                layout_rewrite_option=1)
        refuses("no target", a.SearchTask, matmul_add, ARGS)
        refuses("no computation", a.SearchTask, target="null")
        refuses("build_func is", a.LocalBuilder, build_func="ndk")
        refuses("n_parallel is 0", a.LocalBuilder, n_parallel=0)
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "farm runs already"):
            self.task.tune(options(builder=a.LocalBuilder(n_parallel=77)))
        refuses("device is", a.LocalRunner, device=2)
        with self.assertRaises(kiln.UnavailableError):
            self.task.tune(options(runner=a.RPCRunner("null", "127.0.0.1", 1)))
        refuses("callbacks has a int", a.TaskScheduler, [self.task], callbacks=[3])
        refuses("1 weights|2 weights", a.TaskScheduler, [self.task], [1, 2])
        refuses("program_cost_model is a str", a.SketchPolicy, self.task, "xgb")
        refuses("num_measure_trials is 0", self.task.tune, a.TuningOptions())
        refuses("measure_callbacks has a int", self.task.tune, options(measure_callbacks=[3]))
        refuses("task_alpha", a.TaskScheduler([self.task], alpha=1.5).tune, options())
        refuses("search_policy is 'luck'", a.TaskScheduler([self.task]).tune, options(), "luck")


class WorkloadTest(unittest.TestCase):
    def test_keys(self):
        key = auto_scheduler.make_workload_key("matmul_add", ARGS)
        self.assertEqual(key, '["matmul_add", 16, 24, 8, "float32"]')
        dag = auto_scheduler.ComputeDAG(key)
        self.assertEqual(dag.flop_ct, 2 * 16 * 24 * 8 + 16 * 8)
        self.assertEqual([each.name for each in dag.tensors], ["C", "A", "B", "out"])
        self.assertRegex(dag.workload_key(), r'^\["[0-9a-f]{32}", \[16, 24\]')
        self.assertIn("matmul[i: 16, j: 8]", dag.text)
        self.assertIn("matmul(i, j) += (A[i, k]*B[k, j])", str(dag))
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "other is not registered"):
            auto_scheduler.make_workload_key("other", ())
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "is registered already"):
            auto_scheduler.register_workload("matmul_add", lambda: [])

    def test_tensors_are_arguments(self):
        @auto_scheduler.register_workload("twice")
        def function(x):
            return [x, te.compute(x.shape, lambda *i: x(*i) * 2.0, name="twice")]

        x = te.placeholder((3, 4), "float16")
        key = auto_scheduler.make_workload_key(function, (x,))
        self.assertEqual(key, '["twice", ["TENSOR", [3, 4], "float16"]]')
        self.assertIn("float16[3, 4]", auto_scheduler.ComputeDAG(key).text)


class TopiTest(unittest.TestCase):
    """Operators of topi have the keys that Kiln's operators have."""

    def same(self, declared, operator):
        self.assertEqual(te.create(declared).workload_key, operator.workload_key)

    def test_convolutions(self):
        data = te.placeholder((1, 32, 14, 14), name="p0")
        kernel = te.placeholder((16, 32, 3, 3), name="p1")
        conv = topi.nn.conv2d_nchw(data, kernel, 2, 1)
        self.same(conv, kiln.op("conv2d_nchw", 1, 14, 14, 16, 32, 3, 3, 2, 1))
        data = te.placeholder((1, 14, 14, 32), name="p0")
        kernel = te.placeholder((3, 3, 32, 16), name="p1")
        conv = topi.nn.conv2d_nhwc(data, kernel, (1, 1), (1, 1))
        self.same(conv, kiln.op("conv2d_nhwc", 1, 14, 14, 16, 32, 3, 3, 1, 1))

    def test_products(self):
        a, b = te.placeholder((8, 16), name="p0"), te.placeholder((4, 16), name="p1")
        self.same(topi.nn.dense(a, b), kiln.op("dense", 8, 4, 16))
        b = te.placeholder((16, 4), name="p1")
        self.same(topi.nn.matmul(a, b), kiln.op("matmul", 8, 4, 16))

    def test_operators_of_tensors(self):
        a, row = te.placeholder((8, 16), name="a"), te.placeholder((16,), name="row")
        text = te.text(topi.nn.relu((a + row) * 2.0 - row / a))
        self.assertIn("T_add[ax0: 8, ax1: 16] = a[ax0, ax1] + row[ax1]", text)
        self.assertIn("T_multiply[ax0: 8, ax1: 16] = T_add[ax0, ax1] * 2.0", text)
        self.assertIn("max(T_subtract[i0, i1], float32(0.0))", text)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "shapes .* do not fit"):
            a + te.placeholder((8,), name="b")  # pylint: disable=expression-not-assigned

    def test_shapes_that_do_not_fit(self):
        data = te.placeholder((1, 32, 2, 2), name="p0")
        kernel = te.placeholder((16, 32, 3, 3), name="p1")
        for why, given in (("no room for a kernel", (1, 0)), ("stride and dilation", (0, 1)),
                           ("padding is", (1, (1, 2, 3)))):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                topi.nn.conv2d_nchw(data, kernel, *given)


if __name__ == "__main__":
    unittest.main()
