"""The calls of TVM's autotvm, on templates that ship and on one in a file."""

import contextlib
import io
import json
import os
import unittest

import kiln
import numpy
from kiln import auto_scheduler, autotvm

FOLDER = os.environ["KILN_TEST_FOLDER"]
OPTION = autotvm.measure_option(
    autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0)
)


def path(name):
    return os.path.join(FOLDER, name)


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
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected a task of create"):
            autotvm.tuner.XGBTuner("dense")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "has not tuned yet"):
            autotvm.tuner.XGBTuner(self.task).best_config()
        with open(path("bad.log"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "bad.log:1: no line of a log"):
            autotvm.apply_history_best(path("bad.log"))
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "cannot read /nowhere"):
            autotvm.apply_history_best("/nowhere")


if __name__ == "__main__":
    unittest.main()
