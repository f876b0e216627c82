"""Tests the cost model of examples/python/tree_cost_model.py, whose folder is the argument."""

import importlib.util
import sys
import unittest
from unittest import mock

import numpy
from kiln.farm.serving import Programs, Results

sys.path.insert(0, sys.argv.pop())
import tree_cost_model  # noqa: E402

CHANCE = numpy.random.default_rng(1)
# Columns of the rows, of which some say nothing.
COLUMNS = 12
INSTRUCTIONS, STRIDE = 3, 7


def row(instructions, stride=0):
    """A row of features."""
    made = numpy.zeros(COLUMNS, numpy.float32)
    made[INSTRUCTIONS], made[STRIDE] = numpy.log2(1 + instructions), stride
    return made


def programs_of(rows, task=0):
    """Programs of these rows; a program is a list of rows. An instruction is 1 ns by the estimate."""
    offsets = numpy.cumsum([0] + [len(each) for each in rows])
    every = numpy.array([one for each in rows for one in each], numpy.float32)
    every = every.reshape(-1, COLUMNS)
    estimates_s = 1e-9 * (numpy.exp2(every[:, INSTRUCTIONS]) - 1)
    return Programs(task, every, offsets, estimates_s, [], len(rows))


def random_programs(count):
    """Programs of two rows, and their times. The estimate does not know that strides are slow."""
    rows, costs_s = [], []
    for _ in range(count):
        instructions, stride = CHANCE.integers(1000, 20000), CHANCE.integers(0, 2)
        rows.append([row(part, stride) for part in (10, instructions)])
        costs_s.append(1e-9 * instructions * (1 + 3 * stride))
    return rows, costs_s


def order(values):
    """The place of each value among all."""
    return numpy.argsort(numpy.argsort(values))


def correlation(scores, costs_s):
    """Spearman's, of scores and speeds."""
    return numpy.corrcoef(order(scores), order(-numpy.array(costs_s)))[0, 1]


class TreeCostModelTest(unittest.TestCase):
    def learn(self, model, rows, costs_s, task=0, first=0):
        numbers = list(range(first, first + len(rows)))
        model.update(Results(programs_of(rows, task), numbers, list(costs_s), []))

    def test_ranks_before_there_are_results(self):
        rows = [[row(count), row(10)] for count in (4000, 1000, 16000)]
        scores = tree_cost_model.Model().predict(programs_of(rows))
        self.assertEqual(list(numpy.argsort(scores)), [2, 0, 1])
        # Nothing is known beside the estimates.
        numpy.testing.assert_allclose(scores, [-4010e-9, -1010e-9, -16010e-9], rtol=1e-2)

    def test_a_program_without_rows_is_not_measured(self):
        scores = tree_cost_model.Model().predict(programs_of([[], [row(10)], []]))
        self.assertEqual(list(numpy.isneginf(scores)), [True, False, True])

    def check_learns(self):
        model = tree_cost_model.Model()
        rows, costs_s = random_programs(200)
        before = correlation(model.predict(programs_of(rows[100:])), costs_s[100:])
        self.learn(model, rows[:50], costs_s[:50])
        self.learn(model, rows[50:100], costs_s[50:100], first=50)
        after = correlation(model.predict(programs_of(rows[100:])), costs_s[100:])
        self.assertLess(before, 0.9)
        self.assertGreater(after, 0.95)

    def test_trees_of_numpy_learn_what_the_estimate_is_off_by(self):
        with mock.patch.object(importlib.util, "find_spec", lambda name: None):
            self.check_learns()

    @unittest.skipUnless(importlib.util.find_spec("xgboost"), "XGBoost is not installed")
    def test_trees_of_xgboost_learn_what_the_estimate_is_off_by(self):
        self.check_learns()

    def test_failed_programs_rank_last(self):
        model = tree_cost_model.Model()
        rows, costs_s = random_programs(100)
        fails = [each[0][STRIDE] > 0 for each in rows]
        self.learn(model, rows, numpy.where(fails, numpy.nan, costs_s))
        self.learn(model, [], [])
        scores = model.predict(programs_of(rows))
        self.assertLess(numpy.median(scores[fails]), numpy.min(scores[numpy.invert(fails)]))

    def test_tasks_have_their_own_best(self):
        rows, costs_s = random_programs(60)
        model = tree_cost_model.Model()
        # All of the second task takes a thousand times as long, and none of the third ran.
        self.learn(model, rows[:30], costs_s[:30])
        self.learn(model, rows[30:], numpy.array(costs_s[30:]) * 1000, task=1)
        self.learn(model, rows[:5], [numpy.nan] * 5, task=2)
        self.assertEqual(len(model.known), 65)
        scores = model.predict(programs_of(rows))
        self.assertTrue(numpy.isfinite(scores).all())
        self.assertGreater(correlation(scores[:30], costs_s[:30]), 0.8)

    def test_a_number_that_comes_again_corrects(self):
        model = tree_cost_model.Model()
        rows, costs_s = random_programs(3)
        self.learn(model, rows, costs_s)
        self.learn(model, rows[:1], [5.0])
        self.assertEqual([cost_s for _, _, cost_s in model.known.values()], [5.0, *costs_s[1:]])


if __name__ == "__main__":
    unittest.main()
