"""The calls of TVM's autotvm, under their names, for Kiln's templates (docs/templates.md).

    from kiln import autotvm

    args = (1, 7, 7, 512, 512, 3, 3, 1, 1)
    task = autotvm.task.create("conv2d_nchw_direct", args=args, target="llvm")
    print(task.config_space)
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(
        n_trial=20,
        measure_option=autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner()),
        callbacks=[autotvm.callback.progress_bar(20), autotvm.callback.log_to_file("conv2d.log")],
    )
    best = autotvm.apply_history_best("conv2d.log").query(task.target, task.workload)
    fn = task.compile(best)

Templates are those that Kiln ships, by name, or texts in files (*.tmpl); `args` are those of the
template's operator, or a kiln.Computation.
"""

from kiln.autotvm import callback, task, tuner
from kiln.autotvm.measure import LocalBuilder, LocalRunner, measure_option
from kiln.autotvm.record import ApplyHistoryBest, apply_history_best, load_from_file
from kiln.autotvm.task import ConfigEntity, ConfigSpace, Task

__all__ = [
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "LocalBuilder",
    "LocalRunner",
    "Task",
    "apply_history_best",
    "callback",
    "load_from_file",
    "measure_option",
    "task",
    "tuner",
]
