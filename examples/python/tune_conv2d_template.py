"""TVM's tutorial "Tuning High Performance Convolution" with autotvm, on the template that ships.

usage: tune_conv2d_template.py [--trials N] [--target llvm|cuda] [--channels N] [--log FILE]

The tutorial tunes for a GPU with 20 trials, and advises 1,000: --target cuda --trials 1000.
"""

import argparse

import kiln
import numpy
from kiln import auto_scheduler, autotvm


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--log", default="conv2d.log")
    arguments = parser.parse_args()
    device = "cuda" if arguments.target.startswith("cuda") else "cpu"
    auto_scheduler.use(kiln.local(device=device))

    # The last layer of ResNet: N, H, W, CO, CI, KH, KW, strides, padding.
    channels = arguments.channels
    args = (1, 7, 7, channels, channels, 3, 3, 1, 1)
    task = autotvm.task.create("conv2d_nchw_direct", args=args, target=arguments.target)
    print(task.config_space)

    # Use local device, measure each config several times to reduce variance.
    measure_option = autotvm.measure_option(
        builder=autotvm.LocalBuilder(),
        runner=autotvm.LocalRunner(repeat=3, min_repeat_ms=100, timeout=4),
    )
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(
        n_trial=arguments.trials,
        measure_option=measure_option,
        callbacks=[
            autotvm.callback.progress_bar(arguments.trials),
            autotvm.callback.log_to_file(arguments.log),
        ],
    )

    # Inspect the best config.
    dispatch_context = autotvm.apply_history_best(arguments.log)
    best_config = dispatch_context.query(task.target, task.workload)
    print("Best config:")
    print(best_config)

    # Compile it, and check that it computes what a sum over the taps of the kernel does.
    func = task.compile(best_config)
    data = numpy.random.uniform(size=(1, channels, 7, 7)).astype("float32")
    kernel = numpy.random.uniform(size=(channels, channels, 3, 3)).astype("float32")
    padded = numpy.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(
        numpy.einsum("nchw,fc->nfhw", padded[:, :, y : y + 7, x : x + 7], kernel[:, :, y, x])
        for y in range(3)
        for x in range(3)
    )
    numpy.testing.assert_allclose(func(data, kernel), want, rtol=1e-2)
    times = func.time_evaluator(number=400)(data, kernel)
    print("Time cost of this operator: %f" % times.mean)


if __name__ == "__main__":
    main()
