"""The calls of TVM's autotvm, on templates that ship and on one in a file."""

import contextlib
import io
import json
import os
import unittest

import kiln
import numpy
from kiln import auto_scheduler, autotvm, te
from kiln.autotvm.space import AnnotateEntity, ReorderEntity

FOLDER = os.environ["KILN_TEST_FOLDER"]
OPTION = autotvm.measure_option(
    autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0)
)


def path(name):
    return os.path.join(FOLDER, name)


@autotvm.template("tests/matmul")
def matmul(n, dtype):
    """TVM's tutorial "Writing Tunable Templates", with a fallback and more kinds of knobs."""
    a = te.placeholder((n, n), name="A", dtype=dtype)
    b = te.placeholder((n, n), name="B", dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    k = s[c].op.reduce_axis[0]
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2, filter=lambda entity: entity.size[-1] <= 8)
    cfg.define_reorder("order", [k, x], policy="all")
    cfg.define_annotate("ann", [x], policy="try_unroll_vec")
    cfg.define_knob("unroll", [0, 16])
    cfg.multi_filter(lambda entity: entity["tile_y"].size[-1] * entity["tile_x"].size[-1] <= 64)
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 4])
        cfg["order"] = ReorderEntity([0, 1])
        cfg["ann"] = AnnotateEntity(["vec"])
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, k, yi, xi)
    cfg["order"].apply(s, c, [k, yi])
    cfg["ann"].apply(s, c, [xi])
    s[c].pragma(yo, "auto_unroll_max_step", cfg["unroll"].val)
    return s, [a, b, c]


class TemplateTest(unittest.TestCase):
    """Templates that are written in Python."""

    def test_from_a_template_to_a_program(self):
        task = autotvm.task.create("tests/matmul", args=(32, "float32"), target="llvm")
        self.assertIn("1 tile_x: Split(policy=factors, product=32, num_outputs=2) len=4",
                      str(task.config_space))
        self.assertEqual(task.config_space.range_length, 6 * 4 * 2 * 3 * 2)
        self.assertLess(len(task.config_space), task.config_space.range_length)
        log = path("python.log")
        monitor = autotvm.callback.Monitor()
        with kiln.local(path("template.db"), device="cpu") as client:
            auto_scheduler.use(client)
            tuner = autotvm.tuner.GridSearchTuner(task)
            tuner.tune(8, OPTION, callbacks=[autotvm.callback.log_to_file(log), monitor])
            measured = autotvm.create_measure_batch(task, OPTION)(
                [autotvm.MeasureInput("llvm", task, tuner.best_config)]
            )
        self.assertEqual(measured[0].error_no, 0)
        self.assertEqual(max(monitor.trial_scores()), tuner.best_flops)
        a = numpy.random.default_rng(1).standard_normal((32, 32), "float32")
        with autotvm.apply_history_best(log):
            schedule, tensors = matmul(32, "float32")
        self.assertEqual(schedule.steps(), json.loads(tuner.best_config.steps))
        numpy.testing.assert_allclose(te.build(schedule, tensors)(a, a), a @ a, atol=1e-4)
        pairs = list(autotvm.record.load_from_file(log))
        self.assertEqual(pairs[0][0].task.workload, ("tests/matmul", 32, "float32"))
        best = path("python.best.log")
        autotvm.record.pick_best(log, best)
        self.assertEqual(len(list(autotvm.record.load_from_file(best))), 1)

    def test_without_a_record_the_template_says_it(self):
        schedule, _ = matmul(16, "float32")
        task = autotvm.task.create("tests/matmul", args=(16, "float32"), target="llvm")
        values = {"tile_y": [-1, 4], "tile_x": [-1, 1], "order": [0, 1], "ann": ["vec"],
                  "unroll": 0}
        index = task.config_space.index_of(values)
        self.assertEqual(schedule.steps(), json.loads(task.config_space.get(index).steps))
        with autotvm.ApplyConfig(task.config_space.get(index)):
            self.assertEqual(matmul(16, "float32")[0].steps(), schedule.steps())
        reference = [(autotvm.MeasureInput("llvm", task, task.config_space.get(index)), None)]
        fallback = autotvm.FallbackConfigEntity()
        fallback.define_split("tile_y", 24, num_outputs=2)
        fallback.define_split("tile_x", 24, num_outputs=2)
        fallback.define_knob("unroll", [0, 16])
        fallback.fallback_with_reference_log(reference)
        self.assertEqual(fallback.entities()[0], ["tile_y", "sp", [-1, 4]])

    def test_points_by_their_numbers(self):
        space = autotvm.task.create("tests/matmul", args=(8, "float32"), target="llvm").config_space
        self.assertEqual(space.knob2point(space.point2knob(37)), 37)
        index = space.get_rand_index(to_exclude=[0])
        self.assertTrue(space.is_index_valid(space.random_walk(index)))
        self.assertGreater(space.get_next_index(0), 0)
        self.assertIsNone(space.get_next_index(0, -1))
        self.assertEqual(len(set(space.sample_ints(5))), 5)
        config = space.get(index)
        self.assertEqual(autotvm.ConfigEntity.from_json_dict(config.to_json_dict()).entity[0],
                         list(config.entity[0]))
        self.assertEqual(config.get_other_option(), {"unroll": config["unroll"].val})

    def test_schedules_by_hand(self):
        a = te.placeholder((16, 32), name="A")
        row = te.reduce_axis((0, 32), name="k")
        total = te.compute((16,), lambda i: te.sum(a[i, row], axis=row), name="total")
        out = te.compute((16,), lambda i: total[i] * 2.0, name="out")
        s = te.create_schedule(out.op)
        partial = s[total].split(row, factor=4)
        parts = s.rfactor(total, partial[1])
        s[parts].compute_root()
        outer, inner = s[out].split(out.op.axis[0], nparts=4)
        s[out].parallel(outer)
        s[total].compute_at(s[out], inner)
        data = numpy.random.default_rng(1).standard_normal((16, 32), "float32")
        program = te.build(s, [a, out], "llvm")
        numpy.testing.assert_allclose(program(data), 2 * data.sum(1), atol=1e-4)
        self.assertIn("total_rf", te.lower(s))
        state = auto_scheduler.State(
            auto_scheduler.StateObject(s.dag, s.steps()), s.dag
        )
        again, tensors = s.dag.apply_steps_from_state(state)
        numpy.testing.assert_allclose(te.build(again, tensors)(data), 2 * data.sum(1), atol=1e-4)

    def test_mistakes_of_templates_are_named(self):
        def refuses(why, function):
            name = f"tests/{why[:12]}"
            autotvm.template(name, function)
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                autotvm.create(name, (8,), "llvm")

        def twice(write):
            def function(n):
                a = te.placeholder((n,), name="A")
                b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
                s = te.create_schedule(b.op)
                write(autotvm.get_config(), s, b, s[b].op.axis[0])
                return s, [a, b]

            return function

        def branch(cfg, s, b, i):
            cfg.define_knob("vec", [0, 1])
            if cfg["vec"].val:
                s[b].vectorize(i)

        refuses("Python cannot branch", twice(branch))
        refuses("no knob tile is defined", twice(lambda cfg, s, b, i: cfg["tile"]))
        refuses("expected one of factors", twice(
            lambda cfg, s, b, i: cfg.define_split("t", i, policy="dice", num_outputs=2)))
        refuses("has no loop", twice(lambda cfg, s, b, i: s[b].vectorize("j")))
        refuses("no such step", twice(lambda cfg, s, b, i: s[b].tensorize(i, None)))
        refuses("is too small", twice(lambda cfg, s, b, i: cfg.raise_error("8 is too small")))
        refuses("expected a schedule", lambda n: None)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "outside of a function"):
            autotvm.get_config()


class AutotvmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = kiln.local(path("autotvm.db"), device="cpu")
        auto_scheduler.use(cls.client)
        cls.task = autotvm.task.create("dense", (16, 32, 8), "llvm")
        cls.log = path("dense.log")
        cls.said = io.StringIO()
        cls.tuner = autotvm.tuner.XGBTuner(cls.task, seed=3)
        callbacks = [autotvm.callback.progress_bar(6), autotvm.callback.log_to_file(cls.log)]
        with contextlib.redirect_stderr(cls.said):
            cls.job = cls.tuner.tune(6, OPTION, callbacks=callbacks)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_the_space(self):
        space = self.task.config_space
        self.assertIn("0 tile_i: Split(policy=factors, product=16, num_outputs=3)", str(space))
        self.assertEqual(space.knobs[0]["name"], "tile_i")
        self.assertEqual(len(space), numpy.prod([knob["len"] for knob in space.knobs]))
        config = space.get(100)
        self.assertEqual((config.index, config.entity[0][1]), (100, "sp"))
        self.assertEqual(config.values["tile_i"][0], -1)
        with self.assertRaises(kiln.KilnError):
            space.get(10**9)
        self.assertEqual(self.task.flop, 2 * 16 * 32 * 8)

    def test_the_log_is_one_of_autotvm(self):
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertGreaterEqual(len(lines), 4)
        self.assertEqual(lines[0]["input"][1:], ["dense", [16, 32, 8], {}])
        self.assertEqual(lines[0]["config"]["entity"][0][0], "tile_i")
        done = self.client.import_records(self.log)
        self.assertEqual((done.refused, done.imported), (0, len(lines)))

    def test_a_line_for_each_trial(self):
        lines = self.said.getvalue().splitlines()
        self.assertRegex(lines[0], r"Current/Best: +[\d.]+/ +[\d.]+ GFLOPS .*\(1/6\).*tile_i=\[-1")

    def test_the_best_configuration_runs(self):
        best = autotvm.apply_history_best(self.log).query("llvm", self.task.workload)
        self.assertIsNotNone(best)
        function = self.task.compile(best)
        self.assertIn(function.network.kernels[0].source, ("tuned", "reused"))
        a, b = numpy.ones((16, 8), "float32"), numpy.full((32, 8), 2, "float32")
        numpy.testing.assert_array_equal(function(a, b), a @ b.T)
        self.assertIsNone(autotvm.apply_history_best(self.log).query("cuda", self.task.workload))
        self.assertIsNone(autotvm.apply_history_best(self.log).query("llvm", ("dense", 1)))
        with autotvm.apply_history_best(self.log) as context:
            self.assertIs(autotvm.DispatchContext.current, context)
            with self.assertRaisesRegex(kiln.KilnError, "the block of this ApplyHistoryBest runs"):
                with context:
                    self.fail("it stands in itself")
            context.update("llvm", self.task.workload, self.task.config_space.get(1))
            self.assertEqual(context.query("llvm", self.task.workload).index, 1)
            fallback = context.query("llvm", ("dense", 1))
            self.assertIsInstance(fallback, autotvm.FallbackConfigEntity)

    def test_tuners(self):
        with kiln.local(path("tuners.db"), device="null") as client:
            auto_scheduler.use(client)
            task = autotvm.task.create("dense", kiln.op("matmul", 16, 16, 16), "null")
            for kind in (autotvm.tuner.GATuner, autotvm.tuner.RandomTuner,
                         autotvm.tuner.GridSearchTuner, autotvm.tuner.CoordinateDescentTuner):
                job = kind(task).tune(3, OPTION)
                self.assertEqual(job.status().state, "SUCCEEDED")
        auto_scheduler.use(self.client)

    def test_what_does_not_fit_is_refused(self):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "no template 'dance' for llvm"):
            autotvm.task.create("dance", (1,), "llvm")
        for given, why in (
            (("remote", "local"), "builder is 'remote', expected 'local' or a LocalBuilder"),
            (("local", None), "runner is None, expected 'local' or a LocalRunner"),
            (("local", autotvm.LocalBuilder()), "runner is <"),
        ):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                autotvm.measure_option(*given)
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                auto_scheduler.TuningOptions(1, builder=given[0], runner=given[1]).options()
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected a task of create"):
            autotvm.tuner.XGBTuner("dense")
        self.assertIsNone(autotvm.tuner.XGBTuner(self.task).best_config)
        with open(path("bad.log"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "bad.log:1: no line of a log"):
            autotvm.apply_history_best(path("bad.log"))
        for target, costs, expected in (
            ("", "[1.0]", "found the target ''"),
            ("llvm", "[]", r"found the costs \[\]"),
        ):
            with open(path("bad.log"), "w", encoding="utf-8") as file:
                file.write(
                    f'{{"input": ["{target}", "dense", [], {{}}], "config": {{"index": 0, '
                    f'"code_hash": null, "entity": []}}, "result": [{costs}, 0, 1.0, 1.0]}}\n'
                )
            with self.assertRaisesRegex(kiln.InvalidArgumentError, expected):
                autotvm.record.pick_best(path("bad.log"), path("best.log"))
            with self.assertRaisesRegex(kiln.InvalidArgumentError, expected):
                autotvm.apply_history_best(path("bad.log"))
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "cannot read /nowhere"):
            autotvm.apply_history_best("/nowhere")


if __name__ == "__main__":
    unittest.main()
