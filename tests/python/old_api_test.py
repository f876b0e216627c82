"""The table of TVM's old API: each row that says "same" is, and each that differs has a line."""

import os
import sys
import tempfile
import unittest

import kiln
from kiln import auto_scheduler, autotvm, te
from kiln.autotvm.space import AnnotateEntity, InstantiationError, ReorderEntity, SplitEntity

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import old_api  # noqa: E402

_PAGE = os.path.join("docs", "coming-from-tvm.md")


def refused(text, call):
    """Expects an error of Kiln with the text."""
    try:
        call()
    except kiln.KilnError as error:
        assert text in str(error), f"'{error}' has not '{text}'"
    else:
        raise AssertionError(f"not refused, expected '{text}'")


@autotvm.template("old_api")
def scaled(n):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", s[b].op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, b, s[b].op.axis[0])
    return s, [a, b]


def names_of_lines(folder):
    """What the lines of the table use."""
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute(
        (8, 8),
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    dag = auto_scheduler.ComputeDAG([a, b, c])
    state = dag.get_init_state()
    tiled = dag.get_init_state()
    outer, inner = tiled.split(c, tiled[c].iters[1], [2])
    tiled.reorder(c, [outer, tiled[c].iters[0], tiled[c].iters[3], inner])
    task = auto_scheduler.SearchTask(compute_dag=dag, target="llvm")
    empty_log = os.path.join(folder, "empty.json")
    with open(empty_log, "w", encoding="utf-8"):
        pass
    template_task = autotvm.create("old_api", (8,), "llvm")
    return {
        "kiln": kiln,
        "te": te,
        "auto_scheduler": auto_scheduler,
        "autotvm": autotvm,
        "AnnotateEntity": AnnotateEntity,
        "InstantiationError": InstantiationError,
        "ReorderEntity": ReorderEntity,
        "SplitEntity": SplitEntity,
        "refused": refused,
        "dag": dag,
        "state": state,
        "task": task,
        "key": task.workload_key,
        "packed": dag.rewrite_layout_from_state(tiled),
        "empty_log": empty_log,
        "given": auto_scheduler.MeasureInput(task, state),
        "template_task": template_task,
        "config_space": template_task.config_space,
    }


class OldApiTest(unittest.TestCase):
    def test_what_is_the_same_is(self):
        for name, kind, arguments, what, _ in old_api.rows():
            if what == "same":
                with self.subTest(name):
                    self.assertEqual(old_api.mismatch(name, kind, arguments), "")

    def test_what_is_gone_is_not_there_under_its_name(self):
        for name, kind, _, what, _ in old_api.rows():
            found = old_api.found(name)
            if what == "gone" and found is not None:
                # A class may have it of its base, which has a row of its own.
                owner, _, own = name.rpartition(".")
                with self.subTest(name):
                    self.assertEqual(kind, "method")
                    self.assertNotIn(own, vars(old_api.found(owner)))

    def test_each_line_of_what_differs_runs(self):
        listed = {name for name, *_ in old_api.rows()}
        with tempfile.TemporaryDirectory() as folder:
            names = names_of_lines(folder)
            for name, (_, line) in old_api.DIFFERS.items():
                with self.subTest(name):
                    self.assertIn(name, listed)
                    self.assertIsNotNone(old_api.found(name))
                    exec(line, dict(names))  # pylint: disable=exec-used

    def test_four_fifths_are_the_same(self):
        kinds = [what for *_, what, _ in old_api.rows() if what != "gone"]
        self.assertGreaterEqual(kinds.count("same"), 0.8 * len(kinds))

    def test_each_reason_has_a_row(self):
        listed = [name for name, *_ in old_api.rows()]
        for begin in old_api.PLUMBING:
            self.assertTrue(any(name.startswith(begin) for name in listed), begin)

    def test_the_page_has_the_table(self):
        with open(_PAGE, encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page, old_api.page_with_table(page), "run tests/python/old_api.py")


if __name__ == "__main__":
    unittest.main()
