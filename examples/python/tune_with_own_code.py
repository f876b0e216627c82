"""Tunes a convolution by Kiln's search, by a cost model in Python, and by a sketch rule in Python.

usage: tune_with_own_code.py [--trials N] [--seed N] [--size N] [--channels N]
                             [--target llvm|cuda] [--device KEY] [--parts builtin,model,rule]

All three have the same trials and seed, and begin without earlier records. The cost model is that
of tree_cost_model.py: boosted trees that correct the analytic model's estimates (XGBoost's where
that is installed, else numpy's). The rule is the multi-level tiling of Ansor. A line each: the best time,
the time of the job, and what the calls to Python took a round.
"""

import argparse
import json
import os
import tempfile
import time

import kiln
from kiln import te
from kiln.farm.serving import Applied
from tree_cost_model import Model


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
