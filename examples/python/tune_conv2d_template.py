"""TVM's tutorial "Tuning High Performance Convolution" with autotvm.

For a GPU the template is the tutorial's, in Python; for a CPU it is one that Kiln ships.

usage: tune_conv2d_template.py [--trials N] [--target llvm|cuda] [--channels N] [--log FILE]

The tutorial tunes for a GPU with 20 trials, and advises 1,000: --target cuda --trials 1000.
"""

import argparse

import kiln
import numpy
from kiln import auto_scheduler, autotvm, te, topi


@autotvm.template("tutorial/conv2d_no_batching")
def conv2d_no_batching(N, H, W, CO, CI, KH, KW, stride, padding):
    assert N == 1, "Only consider batch_size = 1 in this template"

    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    s = te.create_schedule([conv.op])

    # Space definition.
    n, f, y, x = s[conv].op.axis
    rc, ry, rx = s[conv].op.reduce_axis

    cfg = autotvm.get_config()
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_split("tile_ry", ry, num_outputs=3)
    cfg.define_split("tile_rx", rx, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])

    # Inline padding.
    pad_data = s[conv].op.input_tensors[0]
    s[pad_data].compute_inline()
    data, raw_data = pad_data, data

    output = conv
    OL = s.cache_write(conv, "local")

    # Create cache stages.
    AA = s.cache_read(data, "shared", [OL])
    WW = s.cache_read(kernel, "shared", [OL])
    AL = s.cache_read(AA, "local", [OL])
    WL = s.cache_read(WW, "local", [OL])

    # Tile and bind spatial axes.
    n, f, y, x = s[output].op.axis
    bf, vf, tf, fi = cfg["tile_f"].apply(s, output, f)
    by, vy, ty, yi = cfg["tile_y"].apply(s, output, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, output, x)
    kernel_scope = n  # this is the scope to attach global config inside this kernel

    s[output].bind(bf, te.thread_axis("blockIdx.z"))
    s[output].bind(by, te.thread_axis("blockIdx.y"))
    s[output].bind(bx, te.thread_axis("blockIdx.x"))
    s[output].bind(vf, te.thread_axis("vthread"))
    s[output].bind(vy, te.thread_axis("vthread"))
    s[output].bind(vx, te.thread_axis("vthread"))
    s[output].bind(tf, te.thread_axis("threadIdx.z"))
    s[output].bind(ty, te.thread_axis("threadIdx.y"))
    s[output].bind(tx, te.thread_axis("threadIdx.x"))
    s[output].reorder(n, bf, by, bx, vf, vy, vx, tf, ty, tx, fi, yi, xi)
    s[OL].compute_at(s[output], tx)

    # Tile reduction axes.
    n, f, y, x = s[OL].op.axis
    rc, ry, rx = s[OL].op.reduce_axis
    rco, rcm, rci = cfg["tile_rc"].apply(s, OL, rc)
    ryo, rym, ryi = cfg["tile_ry"].apply(s, OL, ry)
    rxo, rxm, rxi = cfg["tile_rx"].apply(s, OL, rx)
    s[OL].reorder(rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi, n, f, y, x)

    s[AA].compute_at(s[OL], rxo)
    s[WW].compute_at(s[OL], rxo)
    s[AL].compute_at(s[OL], rxm)
    s[WL].compute_at(s[OL], rxm)

    # Cooperative fetching.
    for load in [AA, WW]:
        n, f, y, x = s[load].op.axis
        fused = s[load].fuse(n, f, y, x)
        tz, fused = s[load].split(fused, nparts=cfg["tile_f"].size[2])
        ty, fused = s[load].split(fused, nparts=cfg["tile_y"].size[2])
        tx, fused = s[load].split(fused, nparts=cfg["tile_x"].size[2])
        s[load].bind(tz, te.thread_axis("threadIdx.z"))
        s[load].bind(ty, te.thread_axis("threadIdx.y"))
        s[load].bind(tx, te.thread_axis("threadIdx.x"))

    # Unroll.
    s[output].pragma(kernel_scope, "auto_unroll_max_step", cfg["auto_unroll_max_step"].val)
    s[output].pragma(kernel_scope, "unroll_explicit", cfg["unroll_explicit"].val)

    return s, [raw_data, kernel, conv]


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
    if device == "cuda":
        name, args = "tutorial/conv2d_no_batching", (1, 7, 7, channels, channels, 3, 3, (1, 1), (1, 1))
    else:
        name, args = "conv2d_nchw_direct", (1, 7, 7, channels, channels, 3, 3, 1, 1)
    task = autotvm.task.create(name, args=args, target=arguments.target)
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
