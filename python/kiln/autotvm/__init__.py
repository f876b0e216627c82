"""The calls of TVM's autotvm, under their names: templates in Python, and those of Kiln.

    from kiln import autotvm, te

    @autotvm.template("matmul")
    def matmul(N, L, M, dtype):
        A = te.placeholder((N, L), name="A", dtype=dtype)
        B = te.placeholder((L, M), name="B", dtype=dtype)
        k = te.reduce_axis((0, L), name="k")
        C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        s = te.create_schedule(C.op)
        y, x = s[C].op.axis
        k = s[C].op.reduce_axis[0]
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=2)
        cfg.define_split("tile_x", x, num_outputs=2)
        yo, yi = cfg["tile_y"].apply(s, C, y)
        xo, xi = cfg["tile_x"].apply(s, C, x)
        s[C].reorder(yo, xo, k, yi, xi)
        return s, [A, B, C]

    task = autotvm.task.create("matmul", args=(512, 512, 512, "float32"), target="llvm")
    print(task.config_space)
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(
        n_trial=20,
        measure_option=autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner()),
        callbacks=[autotvm.callback.progress_bar(20), autotvm.callback.log_to_file("matmul.log")],
    )
    with autotvm.apply_history_best("matmul.log"):
        s, tensors = matmul(512, 512, 512, "float32")
        fn = te.build(s, tensors, "llvm")

A template's function runs once for its arguments, and what it does is recorded as a text
(docs/templates.md), which the farm searches. Templates that Kiln ships go by their names:
create("conv2d_nchw_direct", args=(1, 7, 7, 512, 512, 3, 3, 1, 1), target="llvm").
"""

from kiln.autotvm import callback, record, task, tuner
from kiln.autotvm.dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    apply_fixed_config,
    apply_history_best,
)
from kiln.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    create_measure_batch,
    measure_option,
)
from kiln.autotvm.record import load_from_file
from kiln.autotvm.space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from kiln.autotvm.target import Target
from kiln.autotvm.task import Task, create, get_config, template

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackConfigEntity",
    "FallbackContext",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "Target",
    "Task",
    "apply_fixed_config",
    "apply_history_best",
    "callback",
    "create",
    "create_measure_batch",
    "get_config",
    "load_from_file",
    "measure_option",
    "record",
    "task",
    "template",
    "tuner",
]
