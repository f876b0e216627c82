"""States: primitives, what they make, and the parts of a search without a job."""

import os
import signal
import threading
import unittest

import kiln
import numpy
from kiln import auto_scheduler, te
from kiln.farm.engine import Engine, engine

FOLDER = os.environ["KILN_TEST_FOLDER"]


def declared():
    a = te.placeholder((64, 32), name="A")
    b = te.placeholder((32, 64), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute(
        (64, 64),
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    d = te.compute((64, 64), lambda i, j: te.max(c[i, j], 0.0), name="D")
    return a, b, c, d


class StateTest(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.c, self.d = declared()
        self.dag = auto_scheduler.ComputeDAG([self.a, self.b, self.d])

    def test_the_computation(self):
        self.assertEqual(
            str(self.dag),
            "A = PLACEHOLDER [64, 32]\nB = PLACEHOLDER [32, 64]\nC(i, j) += (A[i, k]*B[k, j])\n"
            "D(i, j) = max(C[i, j], 0f)\n",
        )
        self.assertEqual(self.dag.flop_ct, 2 * 64 * 32 * 64 + 64 * 64)
        self.assertEqual(len(self.dag.hash_key()), 32)
        self.assertEqual(len(self.dag.ops), 4)

    def test_loops(self):
        state = self.dag.get_init_state()
        i, j, k = state[self.c].iters
        self.assertEqual(
            [(each.name, each.range.extent, each.iter_kind) for each in (i, j, k)],
            [("i", 64, 0), ("j", 64, 0), ("k", 32, 1)],
        )
        parts = state.split(self.c, i, [8, 2])
        self.assertEqual([each.range.extent for each in parts], [4, 8, 2])
        outer, _ = state.split(self.c, j, [4], inner_to_outer=False)
        self.assertEqual(outer.range.extent, 4)
        loops = state[self.c].iters
        state.reorder(self.c, [loops[0], loops[3], *loops[1:3], *loops[4:]])
        fused = state.fuse(self.c, state[self.c].iters[:2])
        self.assertEqual((fused.name, fused.range.extent), ("i.0@j.0@", 16))
        self.assertEqual(state.parallel(self.c, fused).annotation, 3)
        state.unroll(self.c, state[self.c].iters[-1])
        state.pragma(self.c, state[self.c].iters[0], "auto_unroll_max_step$16")
        self.assertEqual(state[self.c].attrs.auto_unroll_max_step, 16)
        x = state[self.d].iters[1]
        _, inner = state.follow_split(self.d, x, 1, 1)
        self.assertEqual(state.vectorize(self.d, inner).annotation, 2)
        self.assertIn("parallel i.0@j.0@ (0,16)", str(state))
        self.assertIn("s[C].parallel(", self.dag.print_python_code_from_state(state))
        shown = state._repr_html_()  # pylint: disable=protected-access
        self.assertIn("<p>9 steps</p><pre>", shown)
        self.assertIn("parallel i.0@j.0@ (0,16)", shown)
        self.assertIn("<pre>A = PLACEHOLDER", self.dag._repr_html_())

    def test_places_and_new_stages(self):
        state = self.dag.get_init_state()
        copy = state.copy()
        local = state.cache_write(self.d, "local")
        self.assertEqual(local.name, "D.local")
        state.compute_at(self.c, local, state[local].iters[0])
        self.assertEqual((state[self.c].compute_at, state[self.c].attach), (2, (3, 0)))
        self.assertIsNone(state[self.c].iters[0].range)
        bound = self.dag.infer_bound_from_state(state)
        self.assertEqual([each.range.extent for each in bound[self.c].iters], [1, 64, 32])
        read = state.cache_read(self.a, "shared", [self.c])
        self.assertEqual(state.stage_ops[1], read)
        state.compute_root(self.c)
        self.assertEqual(state[self.c].compute_at, 0)
        state.compute_inline(local)
        self.assertEqual(state[local].compute_at, 1)
        self.assertEqual(copy.transform_steps, [])
        self.assertNotEqual(copy, state)
        sums = self.dag.get_init_state()
        _, inner = sums.split(self.c, sums[self.c].iters[2], [4])
        self.assertEqual(sums.rfactor(self.c, inner, 2).name, "C.rf")

    def test_gpu(self):
        state = self.dag.get_init_state()
        i, j = state[self.d].iters
        state.split(self.d, i, [4])
        self.assertEqual(state.bind(self.d, state[self.d].iters[0], "blockIdx.x").annotation, 5)
        state.bind(self.d, state[self.d].iters[1], "threadIdx.x")
        shared = state.cache_read(self.c, "shared", [self.d])
        state.storage_align(shared, state[shared].iters[0], 32, 1)
        self.assertEqual(state[shared].attrs.storage_offset, 1)
        state.follow_fused_split(shared, state[shared].iters[1], [0], 0, True)
        self.assertEqual(state[shared].iters[-1].range.extent, 4)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "thread_name 'warp'"):
            state.bind(self.d, j, "warp")

    def test_a_refused_step_leaves_the_state_as_it_was(self):
        state = self.dag.get_init_state()
        k = state[self.c].iters[2]
        state.unroll(self.c, k)
        for why, step in (
            (
                "has no loop x",
                lambda: state.parallel(self.c, auto_scheduler.Iterator("x", None, 0, 0)),
            ),
            ("stage 9 does not exist", lambda: state.compute_inline(9)),
            ("found the stage 'E'", lambda: state.compute_root(te.placeholder((1,), name="E"))),
            ("AN", lambda: state.vectorize(self.c, k)),
            ("CI", lambda: state.compute_inline(self.d)),
            ("expected one of its iters", lambda: state.parallel(self.c, 0)),
        ):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
                step()
        self.assertEqual(state.transform_steps, [["AN", 2, 2, 1]])
        line = auto_scheduler.State(auto_scheduler.StateObject(None, [["AN", 2, 2, 1]]), None)
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "recover_measure_input"):
            print(line.stages)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "BF"):
            self.dag.print_python_code_from_state(
                auto_scheduler.StateObject(self.dag, [["BF", 2, 2]])
            )

    def test_layouts(self):
        state = self.dag.get_init_state()
        j = state[self.c].iters[1]
        state.split(self.c, j, [16])
        i, outer, inner, k = state[self.c].iters
        state.reorder(self.c, [outer, i, k, inner])
        packed = self.dag.rewrite_layout_from_state(state)
        self.assertEqual(packed.rewritten_layouts, {"B": "4j32k16j"})
        shape = auto_scheduler.get_shape_from_rewritten_layout("4j32k16j", ["k", "j"])
        self.assertEqual(shape, [32, 64])
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "has the axis j"):
            auto_scheduler.get_shape_from_rewritten_layout("4j32k", ["k"])
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "expected extents and axes"):
            auto_scheduler.get_shape_from_rewritten_layout("jk", ["k"])
        self.assertNotEqual(packed.workload_key(), self.dag.workload_key())

    def test_the_parts_of_a_search(self):
        task = auto_scheduler.SearchTask(compute_dag=self.dag, target="llvm -num-cores=4")
        policy = auto_scheduler.SketchPolicy(
            task,
            params={"sample_init_population": 12, "evolutionary_search_population": 48},
            seed=3,
        )
        sketches = policy.generate_sketches()
        self.assertIn("(None)", str(sketches[0]))
        sampled = policy.sample_initial_population()
        self.assertEqual(len(set(sampled)), 12)
        self.assertTrue(all(each.state_object.concrete for each in sampled))
        best = policy.evolutionary_search(sampled, 4)
        self.assertEqual(len(best), 4)
        model = auto_scheduler.XGBModel()
        self.assertGreaterEqual(model.predict(task, best)[0], max(model.predict(task, sampled)))
        broken = [["AN", 3, 0, 5]]
        self.assertEqual(model.predict(task, [broken]), [float("-inf")])
        self.assertEqual(model.predict_stages(task, [broken]), [[]])
        rows = auto_scheduler.get_per_store_features_from_states([best[0], broken], task)
        self.assertEqual(
            (rows[0].shape[1], rows[1].shape[0]),
            (len(auto_scheduler.get_per_store_feature_names()), 0),
        )
        self.assertEqual(rows[0].dtype, numpy.float32)

    def test_the_task_of_a_log_is_made_once(self):
        calls = []

        @auto_scheduler.register_workload
        def counted():
            calls.append(0)
            a, b, _, d = declared()
            return [a, b, d]

        folder = os.path.join(FOLDER, "counted")
        os.mkdir(folder)
        log = os.path.join(folder, "log.json")
        state = self.dag.get_init_state()
        state.split(self.c, state[self.c].iters[1], [8])
        states = [self.dag.get_init_state(), state]
        for option in (0, 2):
            task = auto_scheduler.SearchTask(
                func=counted, args=(), target="llvm", layout_rewrite_option=option
            )
            inputs = [auto_scheduler.MeasureInput(task, each) for each in states]
            results = [
                auto_scheduler.MeasureResult([cost], 0, "", cost, 3) for cost in (2.0, 1.0)
            ]
            auto_scheduler.save_records(log, inputs, results)
        calls.clear()
        found = auto_scheduler.get_per_store_features_from_file(log, 100)
        self.assertEqual(len(calls), 2)
        rows, throughputs, tasks = found
        self.assertEqual(throughputs.tolist(), [0.5, 1, 0.5, 1])
        self.assertEqual(tasks.tolist(), [0, 0, 1, 1])
        for each, given in zip(rows[2:], states):
            (expected,) = auto_scheduler.get_per_store_features_from_states([given], task)
            numpy.testing.assert_array_equal(each, expected)
        inputs, results = auto_scheduler.RecordReader(log).read_lines()
        packed = auto_scheduler.recover_measure_input(inputs[2]).task
        self.assertEqual(packed.layout_rewrite_option, 2)
        self.assertEqual(packed.compute_dag.text, task.compute_dag.text)
        calls.clear()
        built = auto_scheduler.LocalBuilder().build(inputs)
        self.assertEqual([each.error_no for each in built], [0] * 4)
        self.assertEqual(len(calls), 2)
        skipped = auto_scheduler.feature.get_per_store_features_from_measure_pairs(
            inputs, results, 3
        )[0]
        self.assertEqual([each.shape[0] > 0 for each in skipped], [False] * 3 + [True])

    def test_schedules_of_states(self):
        state = self.dag.get_init_state()
        state.vectorize(self.d, state.split(self.d, state[self.d].iters[1], [8])[1])
        schedule, tensors = self.dag.apply_steps_from_state(state)
        self.assertIn("vectorize", te.lower(schedule, tensors))
        x = numpy.random.default_rng(1).standard_normal((64, 32), "float32")
        y = numpy.ascontiguousarray(x.T)
        got = te.build(schedule, tensors, "llvm")(x, y)
        numpy.testing.assert_allclose(got, numpy.maximum(x @ y, 0), atol=1e-3)
        with self.assertRaisesRegex(kiln.FailedPreconditionError, "change the state"):
            schedule[self.d].op  # pylint: disable=expression-not-assigned

    def test_a_question_that_is_left_has_no_answer(self):
        asked = Engine()
        asked.opened(self.dag.text, "llvm")
        stdout = asked._process.stdout

        class Interrupted:
            def readline(self):
                raise KeyboardInterrupt

            def close(self):
                stdout.close()

        asked._process.stdout = Interrupted()
        with self.assertRaises(KeyboardInterrupt):
            asked.opened(self.dag.text, "cuda")
        self.assertEqual(asked.ask("dag", self.dag.text, "llvm")["text"], str(self.dag))
        asked.close()

    def test_a_fork_has_a_process_of_its_own(self):
        asked = engine().ask("dag", self.dag.text, "llvm")["text"]
        end_of_child, parent_goes_on = os.pipe()
        # The lock is held as by another thread that asks something.
        with engine()._lock:
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os.close(parent_goes_on)
                try:
                    answer = engine().ask("dag", self.dag.text, "llvm")["text"]
                    engine().close()
                    os.read(end_of_child, 1)
                    os._exit(0 if answer == asked else 3)
                finally:
                    os._exit(4)
        # The parent's process ends though the child lives.
        closing = threading.Thread(target=engine().close, daemon=True)
        closing.start()
        closing.join(10)
        ended = not closing.is_alive()
        os.close(parent_goes_on)
        os.close(end_of_child)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(ended)

    def test_computations_that_are_open_are_bounded(self):
        bounded = Engine(most_tasks=1)
        pids = []
        for target in ("llvm", "cuda", "llvm", "llvm"):
            self.assertEqual(bounded.ask("dag", self.dag.text, target)["text"], str(self.dag))
            self.assertTrue(bounded.opened(self.dag.text, target)["target"].startswith(target))
            pids.append(bounded._process.pid)
        self.assertEqual(len(set(pids)), 3)
        bounded.close()

    def test_serialized_inputs(self):
        task = auto_scheduler.SearchTask(compute_dag=self.dag, target="llvm")
        given = auto_scheduler.MeasureInput(task, self.dag.get_init_state())
        read = auto_scheduler.MeasureInput.deserialize(given.serialize())
        self.assertEqual((read.task.workload_key, read.state), (task.workload_key, given.state))
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "what serialize wrote"):
            auto_scheduler.MeasureInput.deserialize("[]")
        line = auto_scheduler.dump_record_to_string(
            given, auto_scheduler.MeasureResult([1.0], 0, "", 2.0, 3)
        )
        self.assertEqual(auto_scheduler.load_record_from_string(line)[1].costs, [1.0])


if __name__ == "__main__":
    unittest.main()
