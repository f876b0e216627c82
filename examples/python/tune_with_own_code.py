"""Tunes a convolution by Kiln's search, by a cost model in Python, and by a sketch rule in Python.

usage: tune_with_own_code.py [--trials N] [--seed N] [--size N] [--channels N]
                             [--target llvm|cuda] [--device KEY] [--parts builtin,model,rule]

All three have the same trials and seed, and begin without earlier records. The cost model is
gradient boosted trees (XGBoost where that is installed, else the trees below) over the features of
Kiln. The rule is the multi-level tiling of Ansor. A line each: the best time, the time of the
job, and what the calls to Python took a round.
"""

import argparse
import importlib.util
import json
import os
import tempfile
import time

import kiln
import numpy
from kiln import te
from kiln.farm.serving import Applied


class Trees:
    """Boosted regression trees over histograms, in numpy: 40 trees of depth 5, 32 bins."""

    def __init__(self, trees=40, depth=5, bins=32, rate=0.2):
        self.trees, self.depth, self.bins, self.rate = trees, depth, bins, rate
        self.grown = []

    def fit(self, rows, targets, weights):
        quantiles = numpy.linspace(0, 1, self.bins + 1)[1:-1]
        # [edges, features]; a column of one value has equal edges, and is never split.
        self.edges = numpy.quantile(rows, quantiles, axis=0)
        binned = (rows[:, None, :] >= self.edges[None]).sum(1)
        self.base = float(numpy.average(targets, weights=weights))
        found = numpy.full(len(rows), self.base)
        self.grown = []
        for _ in range(self.trees):
            tree, node = self._grow(binned, targets - found, weights)
            self.grown.append(tree)
            found += tree[2][node]

    def _grow(self, binned, residuals, weights):
        # Nodes in the order of a heap: feature (-1 = a leaf), threshold and value of each.
        nodes = 2 ** (self.depth + 1) - 1
        feature, threshold = numpy.full(nodes, -1), numpy.zeros(nodes)
        node = numpy.zeros(len(residuals), int)
        features = binned.shape[1]
        for level in range(self.depth):
            first, count = 2**level - 1, 2**level
            inside = numpy.flatnonzero(node >= first)
            # Sums of weights and residuals by node, feature and bin.
            at = (node[inside, None] - first) * features + numpy.arange(features)
            at = (at * self.bins + binned[inside]).ravel()
            shape = (count, features, self.bins)
            sums = [
                numpy.bincount(at, numpy.repeat(each[inside], features), count * features * self.bins)
                for each in (weights, weights * residuals)
            ]
            weight, total = (each.reshape(shape).cumsum(2) for each in sums)
            all_weight, all_total = weight[:, :, -1:], total[:, :, -1:]
            weight, total = weight[:, :, :-1], total[:, :, :-1]
            gain = (
                total**2 / (weight + 1e-3)
                + (all_total - total) ** 2 / (all_weight - weight + 1e-3)
                - all_total**2 / (all_weight + 1e-3)
            ).reshape(count, -1)
            best = gain.argmax(1)
            for n in numpy.flatnonzero(gain[numpy.arange(count), best] > 1e-6):
                of, edge = divmod(int(best[n]), self.bins - 1)
                here = node == first + n
                feature[first + n], threshold[first + n] = of, self.edges[edge, of]
                node[here] = 2 * (first + n) + 1 + (binned[here, of] > edge)
        value = numpy.bincount(node, weights * residuals, nodes)
        value = self.rate * value / (numpy.bincount(node, weights, nodes) + 1e-3)
        return (feature, threshold, value), node

    def predict(self, rows):
        found = numpy.full(len(rows), getattr(self, "base", 0.0))
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


class XGBoost:
    """The same by the library."""

    def fit(self, rows, targets, weights):
        import xgboost

        settings = {"max_depth": 6, "eta": 0.2, "nthread": 4, "verbosity": 0}
        data = xgboost.DMatrix(rows, targets, weight=weights)
        self.booster = xgboost.train(settings, data, 100)

    def predict(self, rows):
        import xgboost

        return self.booster.predict(xgboost.DMatrix(rows))


class Model:
    """A cost model of programs: trees over a summary of their feature rows."""

    reads_rows, reads_steps = True, False

    def __init__(self):
        self.rows, self.costs_s = {}, {}
        self.trees = None

    @staticmethod
    def summary(programs):
        """Sums, largest and last rows of each program; features are logarithms already."""
        begins, ends = programs.offsets[:-1], programs.offsets[1:]
        sums = numpy.add.reduceat(programs.rows, begins, axis=0)
        most = numpy.maximum.reduceat(programs.rows, begins, axis=0)
        return numpy.concatenate([sums, most, programs.rows[ends - 1]], axis=1)

    def predict(self, programs):
        if self.trees is None:
            return numpy.zeros(len(programs))
        return self.trees.predict(self.summary(programs))

    def update(self, results):
        for number, row, cost in zip(
            results.numbers, self.summary(results.programs), results.costs_s
        ):
            self.rows[number], self.costs_s[number] = row, cost
        costs = numpy.array([self.costs_s[number] for number in self.rows])
        best = numpy.nanmin(costs) if not numpy.isnan(costs).all() else 1.0
        speeds = numpy.nan_to_num(best / costs, nan=0.0)
        trees = XGBoost() if importlib.util.find_spec("xgboost") else Trees()
        # The fast programs matter most.
        trees.fit(numpy.stack(list(self.rows.values())), speeds, 0.05 + speeds)
        self.trees = trees


class MultiLevelTiling:
    """Tiles a sum that is computed into a cache, and computes the cache inside its reader.

    On a GPU the tiles are S S S R R S R S (blocks, virtual threads, threads, steps in shared memory,
    ...), on a CPU S S R S R S, with the cache inside the first or the second tile.
    """

    name = "multi-level tiling"

    def __init__(self, spatial, reduce, is_gpu):
        # Extents of the axes of the sum.
        self.spatial, self.reduce = spatial, reduce
        self.structure = "SSSRRSRS" if is_gpu else "SSRSRS"
        self.levels = [3] if is_gpu else [1, 2]

    def apply(self, task, steps, stage):
        del task
        done = json.loads(steps)
        # The stage has just been made by a cache write, and nothing else was done to it.
        if not done or done[-1] != ["CHW", stage, "local"] or len(done) > 1:
            return None
        made = []
        for level in self.levels:
            more = self.tiles(stage)
            more += self.follow(stage + 1, len(done), level)
            more.append(["CA", stage, stage + 1, level * len(self.spatial) - 1])
            made.append((json.dumps(done + more), stage - 1))
        return Applied(made, skip_rest=True)

    def tiles(self, stage):
        spatial_pieces, reduce_pieces = self.structure.count("S"), self.structure.count("R")
        steps, position, begins = [], 0, []
        for extent in self.spatial:
            steps.append(["SP", stage, position, extent, [0] * (spatial_pieces - 1), 1])
            begins.append(position)
            position += spatial_pieces
        for extent in self.reduce:
            steps.append(["SP", stage, position, extent, [0] * (reduce_pieces - 1), 1])
            begins.append(position)
            position += reduce_pieces
        order, level = [], {"S": 0, "R": 0}
        for letter in self.structure:
            axes = begins[: len(self.spatial)] if letter == "S" else begins[len(self.spatial) :]
            order += [begin + level[letter] for begin in axes]
            level[letter] += 1
        return [*steps, ["RE", stage, order]]

    def follow(self, stage, first_split, levels):
        axes = range(len(self.spatial))
        steps = [["FSP", stage, axis * (levels + 1), first_split + axis, levels] for axis in axes]
        order = [axis * (levels + 1) + level for level in range(levels + 1) for axis in axes]
        return [*steps, ["RE", stage, order]]


def convolution(size, channels):
    """A convolution of 3 x 3 without a function behind it, padded by one."""
    data = te.placeholder((1, channels, size, size), name="data")
    weights = te.placeholder((channels, channels, 3, 3), name="weights")
    padded = te.compute(
        (1, channels, size + 2, size + 2),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= 1, y < size + 1, x >= 1, x < size + 1), data[n, c, y - 1, x - 1], 0.0
        ),
        name="padded",
    )
    rc, ry, rx = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((channels, "rc"), (3, "ry"), (3, "rx"))
    )
    out = te.compute(
        (1, channels, size, size),
        lambda n, f, y, x: te.sum(
            padded[n, rc, y + ry, x + rx] * weights[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="conv",
    )
    return te.create([data, weights, out])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=56)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--device", default=None)
    parser.add_argument("--parts", default="builtin,model,rule")
    arguments = parser.parse_args()
    is_gpu = arguments.target.startswith("cuda")
    size, channels = arguments.size, arguments.channels
    rule = MultiLevelTiling([1, channels, size, size], [channels, 3, 3], is_gpu)
    served = {
        "builtin": lambda: None,
        "model": lambda: kiln.Served(cost_model=Model()),
        "rule": lambda: kiln.Served(sketch_rules=[rule]),
    }
    best_s = {}
    device = "cuda" if is_gpu else "cpu"
    with (
        tempfile.TemporaryDirectory(prefix="kiln-own-code.") as folder,
        kiln.local(os.path.join(folder, "kiln.db"), device=device) as client,
    ):
        for part in arguments.parts.split(","):
            code = served[part]()
            start = time.monotonic()
            job = client.tune(
                convolution(size, channels),
                target=arguments.target,
                device=arguments.device,
                trials=arguments.trials,
                seed=arguments.seed,
                no_warm_start=True,
                served=code,
                verbose=0,
            )
            took_s = time.monotonic() - start
            best_s[part] = job.best().cost_s
            rounds = sum(1 for event in job.watch() if event.round)
            beside = best_s[part] / best_s.get("builtin", best_s[part])
            print(
                f"{part}: best {best_s[part] * 1e6:.2f} us ({beside:.3f} of the built-in search's), "
                f"{took_s:.1f} s, {rounds} rounds"
            )
            for kind, cost in code.costs.items() if code else ():
                print(
                    f"  {kind}: {cost.calls} calls, {cost.items / rounds:.0f} items, "
                    f"{cost.bytes / rounds / 1e6:.2f} MB and {cost.seconds / rounds * 1e3:.1f} ms "
                    "a round"
                )


if __name__ == "__main__":
    main()
