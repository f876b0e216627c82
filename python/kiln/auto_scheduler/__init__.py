"""The calls of TVM's auto_scheduler, under their names, for Kiln's search.

    from kiln import auto_scheduler, te

    @auto_scheduler.register_workload
    def matmul(N, M, K):
        A = te.placeholder((N, K), name="A")
        B = te.placeholder((K, M), name="B")
        k = te.reduce_axis((0, K), name="k")
        return [A, B, te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]

    task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512), target="llvm")
    options = auto_scheduler.TuningOptions(
        num_measure_trials=64, measure_callbacks=[auto_scheduler.RecordToFile("matmul.json")]
    )
    task.tune(options)
    fn = task.apply_best("matmul.json")
    c = fn(a, b)

Jobs run on this machine's farm (kiln.local), or on the one that `use` names. Targets are texts. An
argument that Kiln has no meaning for is refused by its name; docs/python.md has the table.
"""

from kiln.auto_scheduler.dispatch import ApplyHistoryBest, build
from kiln.auto_scheduler.measuring import (
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    PythonBasedMeasureCallback,
    RPCRunner,
)
from kiln.auto_scheduler.place import client, use
from kiln.auto_scheduler.program import Program
from kiln.auto_scheduler.records import (
    RecordReader,
    RecordToFile,
    distill_record_file,
    load_best_record,
    load_records,
    save_records,
)
from kiln.auto_scheduler.search_policy import (
    EmptyPolicy,
    PreloadMeasuredStates,
    RandomModel,
    Sketch,
    SketchPolicy,
    XGBModel,
)
from kiln.auto_scheduler.search_task import HardwareParams, SearchTask, TuningOptions, measure
from kiln.auto_scheduler.task_scheduler import LogEstimatedLatency, TaskScheduler, extract_tasks
from kiln.auto_scheduler.workload import ComputeDAG, make_workload_key, register_workload

__all__ = [
    "ApplyHistoryBest",
    "ComputeDAG",
    "EmptyPolicy",
    "HardwareParams",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "LogEstimatedLatency",
    "MeasureInput",
    "MeasureResult",
    "PreloadMeasuredStates",
    "Program",
    "PythonBasedMeasureCallback",
    "RPCRunner",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "Sketch",
    "SketchPolicy",
    "TaskScheduler",
    "TuningOptions",
    "XGBModel",
    "build",
    "client",
    "distill_record_file",
    "extract_tasks",
    "load_best_record",
    "load_records",
    "make_workload_key",
    "measure",
    "register_workload",
    "save_records",
    "use",
]
