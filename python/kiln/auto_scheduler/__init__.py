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
argument that Kiln has no meaning for is refused by its name; docs/coming-from-tvm.md has the table.
"""

from kiln.auto_scheduler.cost_model import RandomModel, XGBModel
from kiln.auto_scheduler.dispatch import (
    ApplyHistoryBest,
    ApplyHistoryBestOrSample,
    DispatchContext,
    FallbackContext,
    build,
    calc_workload_dis_factor,
    decode_workload_key,
    is_auto_scheduler_enabled,
)
from kiln.auto_scheduler.feature import (
    get_per_store_feature_names,
    get_per_store_features_from_file,
    get_per_store_features_from_measure_pairs,
    get_per_store_features_from_states,
)
from kiln.auto_scheduler.hardware import HardwareParams
from kiln.auto_scheduler.layout import LayoutRewriteOption
from kiln.auto_scheduler.loop_state import Iterator, Stage, State, StateObject
from kiln.auto_scheduler.measuring import (
    BuildResult,
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureCallback,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    ProgramBuilder,
    ProgramMeasurer,
    ProgramRunner,
    PythonBasedMeasureCallback,
    RPCRunner,
    measure,
    recover_measure_input,
)
from kiln.auto_scheduler.own_code import PreloadCustomSketchRule, PythonBasedModel
from kiln.auto_scheduler.place import client, use
from kiln.auto_scheduler.program import Program
from kiln.auto_scheduler.records import (
    RecordReader,
    RecordToFile,
    distill_record_file,
    dump_record_to_string,
    load_best_record,
    load_record_from_string,
    load_records,
    save_records,
)
from kiln.auto_scheduler.search_policy import (
    EmptyPolicy,
    PreloadMeasuredStates,
    SearchCallback,
    SearchPolicy,
    Sketch,
    SketchPolicy,
)
from kiln.auto_scheduler.search_task import SearchTask, TuningOptions, auto_schedule, create_task
from kiln.auto_scheduler.task_inputs import get_task_input_buffer, register_task_input_buffer
from kiln.auto_scheduler.task_scheduler import (
    LogEstimatedLatency,
    PrintTableInfo,
    TaskScheduler,
    TaskSchedulerCallback,
    extract_tasks,
    make_search_policies,
)
from kiln.auto_scheduler.workload import (
    ComputeDAG,
    get_shape_from_rewritten_layout,
    load_workload_func_registry,
    make_workload_key,
    register_workload,
    save_workload_func_registry,
)

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "BuildResult",
    "ComputeDAG",
    "DispatchContext",
    "EmptyPolicy",
    "FallbackContext",
    "HardwareParams",
    "Iterator",
    "LayoutRewriteOption",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "LogEstimatedLatency",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "PreloadCustomSketchRule",
    "PreloadMeasuredStates",
    "PrintTableInfo",
    "Program",
    "ProgramBuilder",
    "ProgramMeasurer",
    "ProgramRunner",
    "PythonBasedMeasureCallback",
    "PythonBasedModel",
    "RPCRunner",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchCallback",
    "SearchPolicy",
    "SearchTask",
    "Sketch",
    "SketchPolicy",
    "Stage",
    "State",
    "StateObject",
    "TaskScheduler",
    "TaskSchedulerCallback",
    "TuningOptions",
    "XGBModel",
    "auto_schedule",
    "build",
    "calc_workload_dis_factor",
    "client",
    "create_task",
    "decode_workload_key",
    "distill_record_file",
    "dump_record_to_string",
    "extract_tasks",
    "get_per_store_feature_names",
    "get_per_store_features_from_file",
    "get_per_store_features_from_measure_pairs",
    "get_per_store_features_from_states",
    "get_shape_from_rewritten_layout",
    "get_task_input_buffer",
    "is_auto_scheduler_enabled",
    "load_best_record",
    "load_record_from_string",
    "load_records",
    "load_workload_func_registry",
    "make_search_policies",
    "make_workload_key",
    "measure",
    "recover_measure_input",
    "register_task_input_buffer",
    "register_workload",
    "save_records",
    "save_workload_func_registry",
    "use",
]
