"""TVM's tutorial "Auto-scheduling a Convolution Layer", with the calls in their order.

usage: tune_conv2d_layer.py [--trials N] [--more-trials N] [--target llvm|cuda] [--channels N]
                            [--log FILE]

The tutorial tunes for a GPU with 1,000 trials: --target cuda --trials 1000.
"""

import argparse
import os

import kiln
import numpy
from kiln import auto_scheduler, te, topi


@auto_scheduler.register_workload
def conv2d_layer(N, H, W, CO, CI, KH, KW, stride, padding):
    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    bias = te.placeholder((1, CO, 1, 1), name="bias")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    out = topi.nn.relu(conv + bias)
    return [data, kernel, bias, out]


def convolution(data, kernel, bias):
    """The same in numpy: a product for each of the kernel's positions."""
    _, _, height, width = data.shape
    padded = numpy.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = sum(
        numpy.einsum("nchw,fc->nfhw", padded[:, :, y : y + height, x : x + width], taps)
        for y, rows in enumerate(numpy.moveaxis(kernel, 2, 0))
        for x, taps in enumerate(numpy.moveaxis(rows, 2, 0))
    )
    return numpy.maximum(out + bias, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--more-trials", type=int, default=5)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--log", default="conv2d.json")
    arguments = parser.parse_args()
    auto_scheduler.use(kiln.local(device="cuda" if arguments.target.startswith("cuda") else "cpu"))

    # Create the search task: the last layer of ResNet-50.
    target = arguments.target
    N, H, W, CO, CI, KH, KW, strides, padding = 1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1)
    CO = CI = arguments.channels
    task = auto_scheduler.SearchTask(
        func=conv2d_layer, args=(N, H, W, CO, CI, KH, KW, strides, padding), target=target
    )
    print("Computational DAG:")
    print(task.compute_dag)

    # Set the parameters of the auto-scheduler.
    log_file = arguments.log
    measure_ctx = auto_scheduler.LocalRPCMeasureContext(min_repeat_ms=300)
    tune_option = auto_scheduler.TuningOptions(
        num_measure_trials=arguments.trials,
        runner=measure_ctx.runner,
        measure_callbacks=[auto_scheduler.RecordToFile(log_file)],
        verbose=2,
    )

    # Run the search, and take the best schedule of the log.
    task.tune(tune_option)
    func = task.apply_best(log_file)
    del measure_ctx

    # Check correctness and evaluate performance.
    data_np = numpy.random.uniform(size=(N, CI, H, W)).astype(numpy.float32)
    weight_np = numpy.random.uniform(size=(CO, CI, KH, KW)).astype(numpy.float32)
    bias_np = numpy.random.uniform(size=(1, CO, 1, 1)).astype(numpy.float32)
    out_np = numpy.empty((N, CO, H, W), dtype=numpy.float32)
    func(data_np, weight_np, bias_np, out_np)
    numpy.testing.assert_allclose(out_np, convolution(data_np, weight_np, bias_np), rtol=1e-3)
    evaluator = func.time_evaluator(func.entry_name, min_repeat_ms=500)
    times = evaluator(data_np, weight_np, bias_np, out_np).results
    print("Execution time of this operator: %.3f ms" % (numpy.median(times) * 1000))

    # Use the log: print the program, and go on with the search.
    print("Equivalent python schedule:")
    print(task.print_best(log_file))
    if target.startswith("cuda"):
        print("CUDA source code:")
        print(task.print_best(log_file, print_mode="cuda"))
    cost_model = auto_scheduler.XGBModel()
    search_policy = auto_scheduler.SketchPolicy(
        task,
        cost_model,
        init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log_file)],
    )
    tune_option = auto_scheduler.TuningOptions(
        num_measure_trials=arguments.more_trials,
        measure_callbacks=[auto_scheduler.RecordToFile(log_file)],
    )
    task.tune(tune_option, search_policy=search_policy)
    inputs, _ = auto_scheduler.RecordReader(log_file).read_lines()
    print(f"{len(inputs)} records in {os.path.abspath(log_file)}")


if __name__ == "__main__":
    main()
