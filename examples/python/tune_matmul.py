"""Five minutes with Kiln: declare a computation, tune it on this machine, look at it, call it.

usage: tune_matmul.py [--trials N] [--size N] [--device cpu|cuda] [--db FILE]
"""

import argparse

import kiln
import numpy
from kiln import te


def declare(n):
    """relu(A @ B + bias), written as it would be for TVM's te."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    bias = te.placeholder((n,), name="bias")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    out = te.compute((n, n), lambda i, j: te.max(product[i, j] + bias[j], 0.0), name="out")
    return te.create([a, b, bias, out], name="dense")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--db", default="kiln.db")
    arguments = parser.parse_args()

    # The declaration is checked here: an index outside of a tensor is an error with its place.
    dense = declare(arguments.size)
    print(dense)
    print(f"{dense.flop_count / 1e6:.1f} million operations, key {dense.workload_key}")

    # The farm: tracker, scheduler, builder and runner of this machine, until the block ends.
    with kiln.local(arguments.db, device=arguments.device) as client:
        job = client.tune(dense, trials=arguments.trials)
        best = job.best()
        print(f"{best.cost_s * 1e6:.2f} us, {best.gflops:.1f} GFLOP/s on {best.device}")
        print(job.show("schedule"))
        for record in client.records(dense, top=3):
            print(f"record {record.id}: {record.cost_s * 1e6:.2f} us, {record.origin}")
        # The file stays; kiln.load("dense.kiln") needs no farm.
        function = job.compile("dense.kiln")

    random = numpy.random.default_rng(1)
    shapes = {tensor.name: tensor.shape for tensor in function.inputs}
    arrays = {name: random.standard_normal(shape, "float32") for name, shape in shapes.items()}
    got = function(**arrays)
    want = numpy.maximum(arrays["A"] @ arrays["B"] + arrays["bias"], 0)
    print(f"largest difference from numpy: {abs(got - want).max():.1e}")
    print(f"a call takes {min(function.bench()) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
