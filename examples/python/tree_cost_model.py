"""A cost model of programs in Python: trees that correct an estimate of each program's time.

Kiln's analytic model makes the estimate, which comes with the rows. The estimate needs no
measurement, so it ranks the first round. The trees learn from what is measured by how much it is
off. They are XGBoost's where that is installed, and numpy's else. Kiln's own model
(docs/cost-models.md) is made the same way.
"""

import importlib.util
import math

import numpy

# A result that is slower than the best by this factor counts as slow as this, and so does one that
# failed.
SLOWEST = 100.0
# A slow result weighs at least so much; the best one weighs 1.
LEAST_WEIGHT = 0.03
# With fewer results the estimate ranks alone.
FEW_RESULTS = 16
# Until there are so many results, every other round trusts the trees by half: what is slow beside
# one schedule may be fast beside another.
MANY_RESULTS = 256


class TimeLoss:
    """The logarithm of a program's time, the sum of its rows' times, should be what was measured.

    An output is added to the logarithm of a row's estimate. The loss is the mean square of the
    errors of programs: the objective "time" of Kiln's model (costmodel/boost_input.h). In the pack
    sum of Ansor (Zheng et al., OSDI 2020) outputs add up to a throughput, but only times do add up.
    """

    def __init__(self, estimates, programs, slowdowns):
        # The logarithm of each row's estimate and the number of its program; the time of each
        # program relative to the best of its task.
        self.programs = programs
        self.targets = numpy.log(numpy.minimum(slowdowns, SLOWEST))
        self.weights = numpy.maximum(1 / slowdowns, LEAST_WEIGHT)
        self.failed = slowdowns >= SLOWEST
        # Starts as if all estimates were off by the same factor.
        times = numpy.bincount(programs, numpy.exp(estimates))
        self.base = float(numpy.average(self.targets - numpy.log(times), weights=self.weights))
        self.starts = estimates + self.base

    def __call__(self, outputs):
        """The loss, and its first and second derivative by each row's output."""
        times = numpy.exp(self.starts + outputs)
        totals = numpy.bincount(self.programs, times)
        errors = numpy.log(totals) - self.targets
        errors = numpy.where(self.failed, numpy.minimum(errors, 0), errors)
        shares = self.weights[self.programs] * times / totals[self.programs]
        loss = float(numpy.average(errors**2, weights=self.weights))
        return loss, shares * errors[self.programs], shares


class XGBoost:
    """The trees of the library XGBoost."""

    # One thread: more of them wait for each other by spinning, which is slow on a busy machine.
    settings = {
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.2,
        "gamma": 0.001,
        "min_child_weight": 0,
        "colsample_bynode": 0.3,
        "max_bin": 64,
        "base_score": 0,
        "nthread": 1,
        "verbosity": 0,
    }

    def fit(self, rows, loss, rounds=200):
        """Adds trees until ten of them make the loss less by under one percent."""
        import xgboost

        errors = []

        def derivatives(outputs, _):
            error, gradient, hessian = loss(outputs)
            errors.append(error)
            return gradient, hessian

        data = xgboost.DMatrix(rows, numpy.zeros(len(rows)))
        self.booster = xgboost.Booster(self.settings, [data])
        for number in range(rounds):
            self.booster.update(data, number, derivatives)
            if number >= 10 and number % 10 == 0 and errors[-1] > 0.99 * errors[-11]:
                return

    def predict(self, rows):
        import xgboost

        return self.booster.predict(xgboost.DMatrix(rows), output_margin=True)


class Trees:
    """The same in numpy: 40 trees of depth 5 over histograms of 32 bins, each of some columns."""

    def __init__(self, trees=40, depth=5, bins=32, rate=0.2, share=0.3):
        self.trees, self.depth, self.bins, self.rate, self.share = trees, depth, bins, rate, share
        self.grown = []

    def fit(self, rows, loss):
        chance = numpy.random.default_rng(0)
        varied = numpy.flatnonzero((rows != rows[0]).any(0))
        quantiles = numpy.linspace(0, 1, self.bins + 1)[1:-1]
        # [edges, varied columns]; equal edges are never split.
        edges = numpy.quantile(rows[:, varied], quantiles, axis=0).astype(rows.dtype)
        binned = numpy.zeros((len(rows), len(varied)), int)
        for place, column in enumerate(varied):
            binned[:, place] = numpy.searchsorted(edges[:, place], rows[:, column], side="right")
        outputs = numpy.zeros(len(rows))
        self.grown = []
        if not len(varied):
            return
        for _ in range(self.trees):
            some = chance.permutation(len(varied))[: math.ceil(self.share * len(varied))]
            _, gradient, hessian = loss(outputs)
            (feature, edge, value), node = self._grow(binned[:, some], gradient, hessian)
            threshold = edges[edge, some[feature]]
            column = numpy.where(feature >= 0, varied[some[feature]], -1)
            self.grown.append((column, threshold, value))
            outputs += value[node]

    def _grow(self, binned, gradient, hessian):
        # Nodes in the order of a heap: feature (-1 = a leaf), edge and value of each.
        nodes = 2 ** (self.depth + 1) - 1
        feature, cut = numpy.full(nodes, -1), numpy.zeros(nodes, int)
        node = numpy.zeros(len(gradient), int)
        features = binned.shape[1]
        for level in range(self.depth):
            first, count = 2**level - 1, 2**level
            inside = numpy.flatnonzero(node >= first)
            # Sums of derivatives by node, feature and bin.
            at = (node[inside, None] - first) * features + numpy.arange(features)
            at = (at * self.bins + binned[inside]).ravel()
            shape = (count, features, self.bins)
            weight, slope = (
                numpy.bincount(at, numpy.repeat(each[inside], features), math.prod(shape))
                .reshape(shape)
                .cumsum(2)
                for each in (hessian, gradient)
            )
            all_weight, all_slope = weight[:, :, -1:], slope[:, :, -1:]
            weight, slope = weight[:, :, :-1], slope[:, :, :-1]
            # The gain of a split and the value of a leaf are those of XGBoost, with lambda = 1.
            gain = (
                slope**2 / (weight + 1)
                + (all_slope - slope) ** 2 / (all_weight - weight + 1)
                - all_slope**2 / (all_weight + 1)
            ).reshape(count, -1)
            best = gain.argmax(1)
            for n in numpy.flatnonzero(gain[numpy.arange(count), best] > 1e-3):
                of, edge = divmod(int(best[n]), self.bins - 1)
                here = node == first + n
                feature[first + n], cut[first + n] = of, edge
                node[here] = 2 * (first + n) + 1 + (binned[here, of] > edge)
        value = -numpy.bincount(node, gradient, nodes)
        value *= self.rate / (numpy.bincount(node, hessian, nodes) + 1)
        return (feature, cut, value), node

    def predict(self, rows):
        found = numpy.zeros(len(rows))
        everyone = numpy.arange(len(rows))
        for feature, threshold, value in self.grown:
            node = numpy.zeros(len(rows), int)
            for _ in range(self.depth):
                of = feature[node]
                goes_on = of >= 0
                right = rows[everyone, numpy.maximum(of, 0)] >= threshold[node]
                node = numpy.where(goes_on, 2 * node + 1 + right, node)
            found += value[node]
        return found


class Model:
    """A cost model for kiln.Served, which keeps all results.

    A score is minus the time of a program, but for a factor that is the same for all of a task: a
    search uses the order of scores alone.
    """

    reads_rows, reads_steps = True, False

    def __init__(self):
        # Rows of each result, the logarithms of their estimates, and seconds, by task and number.
        self.known = {}
        self.trees = None
        self.updates = 0

    @staticmethod
    def logs(programs):
        """The program of each row, and the logarithm of its estimate."""
        numbers = numpy.repeat(numpy.arange(len(programs)), numpy.diff(programs.offsets))
        seconds = programs.estimates_s.astype(float)
        totals = numpy.bincount(numbers, seconds)[numbers]
        # No row takes no time.
        return numbers, numpy.log(numpy.maximum(seconds, numpy.maximum(1e-3 * totals, 1e-12)))

    def predict(self, programs):
        numbers, logs = self.logs(programs)
        if self.trees is not None:
            is_early = len(self.known) < MANY_RESULTS and self.updates % 2 == 1
            logs = logs + (0.5 if is_early else 1.0) * self.trees.predict(programs.rows)
        scores = -numpy.bincount(numbers, numpy.exp(logs), len(programs))
        # Nothing is known of a program without rows.
        return numpy.where(numpy.diff(programs.offsets) > 0, scores, -numpy.inf)

    def update(self, results):
        self.updates += 1
        programs = results.programs
        _, logs = self.logs(programs)
        for index, (number, cost_s) in enumerate(zip(results.numbers, results.costs_s)):
            part = slice(programs.offsets[index], programs.offsets[index + 1])
            if part.start == part.stop:
                continue
            # The rows are a view of the call's message.
            self.known[programs.task, number] = programs.rows[part].copy(), logs[part], cost_s
        if len(self.known) >= FEW_RESULTS:
            self.train()

    def train(self):
        """Trains anew from all results. Programs are compared within their task."""
        best_s = {}
        for (task, _), (_, _, cost_s) in self.known.items():
            best_s[task] = numpy.fmin(cost_s, best_s.get(task, numpy.nan))
        rows, logs, costs_s = zip(*self.known.values())
        units_s = numpy.nan_to_num([best_s[task] for task, _ in self.known], nan=1e-5)
        slowdowns = numpy.nan_to_num(numpy.array(costs_s) / units_s, nan=SLOWEST)
        programs = numpy.repeat(numpy.arange(len(rows)), [len(each) for each in rows])
        estimates = numpy.concatenate(logs) - numpy.log(units_s)[programs]
        trees = XGBoost() if importlib.util.find_spec("xgboost") else Trees()
        trees.fit(numpy.concatenate(rows), TimeLoss(estimates, programs, slowdowns))
        self.trees = trees
