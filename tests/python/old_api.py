"""The table of TVM's auto_scheduler and autotvm in docs/coming-from-tvm.md.

    PYTHONPATH=<the package> python3 -B tests/python/old_api.py docs/coming-from-tvm.md

writes the table into the page. old_api.json has each class, function, method and field of TVM 0.19
with its arguments and defaults, as Python's inspect module lists them there. A row is "same" if the
package has it with these arguments and defaults; what differs in spite of that, or does not fit, is
said in DIFFERS, with a line that runs (old_api_test.py); what has no meaning here, in PLUMBING.
"""

import inspect
import json
import multiprocessing
import os
import re
import sys

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "old_api.json")
BEGIN, END = "<!-- begin table -->\n", "<!-- end table -->\n"

# Beginnings of names, and why Kiln has nothing for them.
PLUMBING = {
    "auto_scheduler.ApplyHistoryBest.get_workload_entry": "a table inside of the context",
    "auto_scheduler.compute_dag.get_const_tuple": "shapes are numbers",
    "auto_scheduler.feature.features_from_primfunc": "TIR: there is none",
    "auto_scheduler.feature.named_features_from_primfunc": "TIR: there is none",
    "auto_scheduler.feature.unpack_feature": "bytes between TVM's C++ and Python",
    "auto_scheduler.measure.BuildFunc": "a default that TVM's worker processes share",
    "auto_scheduler.measure.call_func_with_timeout": "runs a worker process of TVM",
    "auto_scheduler.measure.check_remote": "`kiln workers` lists a farm's devices",
    "auto_scheduler.measure.deserialize_workload_registry_entry": "between TVM's processes",
    "auto_scheduler.measure.get_func_name": "a helper",
    "auto_scheduler.measure.local_build_worker": "runs in a worker process of TVM",
    "auto_scheduler.measure.make_traceback_info": "a helper",
    "auto_scheduler.measure.prepare_input_map": "runs in a worker process of TVM",
    "auto_scheduler.measure.prepare_runner_args": "runs in a worker process of TVM",
    "auto_scheduler.measure.request_remote": "a session with a device: Kiln has jobs alone",
    "auto_scheduler.measure.serialize_workload_registry_entry": "between TVM's processes",
    "auto_scheduler.measure_record.main": "`kiln records distill`",
    "auto_scheduler.register_task_input_check_func": "finds sparse operators of relay",
    "auto_scheduler.relay_integration.": "tracing of relay; `kiln tasks` lists a network's tasks",
    "auto_scheduler.remove_index_check": "rewrites relay's operators for a layout",
    "auto_scheduler.rewrite_compute_body": "rewrites relay's operators for a layout",
    "auto_scheduler.rewrite_tensor_shape": "rewrites relay's operators for a layout",
    "auto_scheduler.search_policy.SearchPolicy.continue_search_one_round": "the scheduler has the "
    "rounds",
    "auto_scheduler.task_scheduler.array_mean": "a helper",
    "auto_scheduler.task_scheduler.derive_similarity_tag": "a helper; a computation's attribute "
    "task_scheduler_tag says it",
    "auto_scheduler.utils.": "helpers",
    "autotvm.apply_graph_best": "the graph tuner; `kiln compile --layout-rewrite` packs weights",
    "autotvm.DispatchContext.warning_messages": "a helper",
    "autotvm.LocalBuilder.build": "the farm builds",
    "autotvm.LocalRunner.set_task": "the farm has the task",
    "autotvm.RPCRunner.get_build_kwargs": "limits of a device reach the search by the farm",
    "autotvm.RPCRunner.ref_input": "answers are checked against the unscheduled loops",
    "autotvm.RPCRunner.run": "the farm runs: autotvm.create_measure_batch",
    "autotvm.RPCRunner.set_task": "the farm has the task",
    "autotvm.database.": "the farm's database keeps records: kiln.Client.records",
    "autotvm.env.": "flags of TVM's C++",
    "autotvm.graph_tuner.": "the graph tuner; `kiln compile --layout-rewrite` packs weights",
    "autotvm.measure.Executor": "TVM's worker processes",
    "autotvm.measure.default_module_loader": "the farm's runners load programs",
    "autotvm.measure.request_remote": "a session with a device: Kiln has jobs alone",
    "autotvm.register_topi_compute": "operators of relay; templates that ship go by their names",
    "autotvm.register_topi_schedule": "operators of relay; templates that ship go by their names",
    "autotvm.task.ApplyGraphBest": "the graph tuner",
    "autotvm.task.TaskExtractEnv": "tracing of relay",
    "autotvm.task.attach_code_hash": "logs of TVM have no such hash in practice",
    "autotvm.task.clear_fallback_cache": "nothing is kept",
    "autotvm.task.extract_from_": "relay; auto_scheduler.extract_tasks has a network's tasks",
    "autotvm.task.get_workload": "reads a tag of TVM's operators",
    "autotvm.task.space.AnnotateSpace": "spaces are in the engine: ConfigSpace.knobs",
    "autotvm.task.space.Axis": "spaces are in the engine",
    "autotvm.task.space.OtherOptionSpace": "spaces are in the engine",
    "autotvm.task.space.ReorderSpace": "spaces are in the engine",
    "autotvm.task.space.SplitSpace": "spaces are in the engine",
    "autotvm.task.space.TransformSpace": "spaces are in the engine",
    "autotvm.task.space.VirtualAxis.": "spaces are in the engine",
    "autotvm.task.space.get_const_int": "extents are numbers",
    "autotvm.task.task.": "tables of TVM's operators",
    "autotvm.tophub.": "packages of logs of other versions; a farm's records, or a log",
    "autotvm.tuner.DropletTuner.": "the scheduler has the search",
    "autotvm.tuner.GATuner.": "the scheduler has the search",
    "autotvm.tuner.GridSearchTuner.": "the scheduler has the search",
    "autotvm.tuner.RandomTuner.": "the scheduler has the search",
    "autotvm.tuner.Tuner.has_next": "the scheduler has the search",
    "autotvm.tuner.Tuner.next_batch": "the scheduler has the search",
    "autotvm.tuner.Tuner.set_error_threshold": "a task ends after 256 trials that all failed",
    "autotvm.tuner.Tuner.update": "the scheduler has the search",
    "autotvm.tuner.XGBTuner.": "as Tuner.tune",
}

# Classes of the package that have the methods of one of TVM's.
_ALIASES = {"ConfigSpace": "TemplateConfig"}

# Differences, each with a line that shows it. `refused(text, call)` expects a KilnError with the
# text; old_api_test.py has the names that the lines use.
DIFFERS = {
    "auto_scheduler.compute_dag.State.unroll": (
        "`max_unroll` looks at the extent now, which must be known",
        "assert state.unroll(2, state.stages[2].iters[0], max_unroll=4).annotation == 0",
    ),
    "auto_scheduler.ComputeDAG.apply_steps_from_state": (
        "the schedule is for te.build and te.lower; `layout_rewrite` 1 is refused",
        "assert 'for' in te.lower(dag.apply_steps_from_state(dag.get_init_state())[0])",
    ),
    "auto_scheduler.ComputeDAG.rewrite_layout_from_state": (
        "programs take the weights packed, under the same shape; `rewritten_layouts` has the order",
        "assert packed.rewritten_layouts == {'B': '4j8k2j'}",
    ),
    "auto_scheduler.DispatchContext.query": (
        "the last three arguments may be left out",
        "assert auto_scheduler.DispatchContext.current.query('llvm', key) is None",
    ),
    "auto_scheduler.dispatcher.FallbackContext.query": (
        "the last three arguments may be left out",
        "assert auto_scheduler.FallbackContext().query('llvm', key) is None",
    ),
    "auto_scheduler.ApplyHistoryBestOrSample.query": (
        "the last three arguments may be left out",
        "assert auto_scheduler.ApplyHistoryBestOrSample(None).query('llvm', key) is None",
    ),
    "auto_scheduler.extract_tasks": (
        '`mod` is `"network:NAME"`, an ONNX file or ModelProto, or a module of torch; `named` are '
        "flags of `kiln tasks`",
        "refused('params', lambda: auto_scheduler.extract_tasks('network:mlp', {'w': 1}, 'llvm'))",
    ),
    "auto_scheduler.feature.get_per_store_feature_names": (
        "TVM's 164 columns, and Kiln's own; five buffers",
        "assert 'B0.bytes' in auto_scheduler.get_per_store_feature_names()",
    ),
    "auto_scheduler.HardwareParams": (
        "a field that a kind of target does not have is refused; resources get smaller only",
        "refused('warp_size', lambda: auto_scheduler.HardwareParams(warp_size=32).options('llvm'))",
    ),
    "auto_scheduler.LayoutRewriteOption.INSERT_TRANSFORM_STAGE": (
        "refused: programs have no stage that packs weights at each call",
        "refused('layout_rewrite_option is 1', lambda: auto_scheduler.SearchTask("
        "compute_dag=dag, target='llvm', layout_rewrite_option=1))",
    ),
    "auto_scheduler.LayoutRewriteOption.get_target_default": (
        "0 outside of networks",
        "assert auto_scheduler.LayoutRewriteOption.get_target_default('llvm') == 0",
    ),
    "auto_scheduler.LocalBuilder": (
        "a `build_func` is a function of a `kiln.Candidate`, other texts than 'default' are refused; so is "
        "an `n_parallel` of a farm that runs already",
        "assert auto_scheduler.LocalBuilder(build_func=len).build_func is len; "
        "refused('build_func', lambda: auto_scheduler.LocalBuilder(build_func='ndk'))",
    ),
    "auto_scheduler.LocalRPCMeasureContext": (
        "`priority` and `n_parallel` do nothing, a `device` other than 0 is refused",
        "refused('device', lambda: auto_scheduler.LocalRPCMeasureContext(device=1))",
    ),
    "auto_scheduler.LocalRunner": (
        "a `device` other than 0 is refused",
        "refused('device', lambda: auto_scheduler.LocalRunner(device=1))",
    ),
    "auto_scheduler.RPCRunner": (
        "`host` and `port` are those of the farm's scheduler; `n_parallel` does nothing",
        "assert auto_scheduler.RPCRunner('cpu', '', 0).options()['device'] == 'cpu'",
    ),
    "auto_scheduler.measure.ProgramBuilder.build": (
        "says whether a candidate has a program; the farm compiles it when it runs",
        "assert auto_scheduler.LocalBuilder().build([given])[0].error_no == 0",
    ),
    "auto_scheduler.measure.ProgramMeasurer": (
        "`max_continuous_error` is refused",
        "refused('max_continuous_error', lambda: auto_scheduler.ProgramMeasurer("
        "auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner(), [], 0, 9))",
    ),
    "auto_scheduler.SearchTask": (
        "`target` is a text, `target_host` is refused; `task_inputs` say the least and the largest "
        "value of inputs in checks",
        "refused('target_host', lambda: auto_scheduler.SearchTask("
        "compute_dag=dag, target='llvm', target_host='llvm'))",
    ),
    "auto_scheduler.SearchTask.apply_best": (
        "returns a callable in place of a schedule",
        "refused('has no program', lambda: task.apply_best(empty_log))",
    ),
    "auto_scheduler.SearchTask.tune": (
        "returns the job",
        "refused('num_measure_trials is 0', lambda: task.tune(auto_scheduler.TuningOptions()))",
    ),
    "auto_scheduler.auto_schedule": (
        "returns a callable in place of a schedule; the options are needed",
        "refused('num_measure_trials is 0', lambda: auto_scheduler.auto_schedule(task))",
    ),
    "auto_scheduler.TuningOptions": (
        "a `num_measure_trials` of 0 is refused when it tunes",
        "refused('num_measure_trials is 0', lambda: auto_scheduler.TuningOptions().options())",
    ),
    "auto_scheduler.SketchPolicy": (
        "`params` are Kiln's (docs/search-parameters.md)",
        "assert auto_scheduler.SketchPolicy(task).options()['policy'] == 'sketch.xgb'",
    ),
    "auto_scheduler.SketchPolicy.DEFAULT_PARAMS": (
        "Kiln's values of the parameters that both have",
        "assert auto_scheduler.SketchPolicy.DEFAULT_PARAMS['max_vectorize_size'] == 64",
    ),
    "auto_scheduler.TaskScheduler.tune": (
        "all tasks are one job, which is returned",
        "refused('search_policy', lambda: auto_scheduler.TaskScheduler([task]).tune("
        "auto_scheduler.TuningOptions(8), 'sketch.dance'))",
    ),
    "auto_scheduler.XGBModel": (
        "until there are `num_warmup_sample` results, the analytic model ranks in place of chance; the "
        "default leaves their number to the search",
        "assert auto_scheduler.XGBModel(num_warmup_sample=7).options()['model_parameter'] == "
        "{'min_samples': 8}",
    ),
    "auto_scheduler.XGBModel.predict": (
        "higher is faster; untrained it is minus the seconds that the analytic model expects",
        "assert auto_scheduler.XGBModel().predict(task, [dag.init_state])[0] < 0",
    ),
    "auto_scheduler.XGBModel.predict_stages": (
        "a list of scores for each state, one a row of features",
        "assert len(auto_scheduler.XGBModel().predict_stages(task, [dag.init_state])[0]) == 2",
    ),
    "autotvm.LocalBuilder": (
        "a `build_func` is a function of a `kiln.Candidate`; `build_kwargs` and `runtime` are refused",
        "assert autotvm.LocalBuilder(build_func=len).build_func is len; "
        "refused('runtime', lambda: autotvm.LocalBuilder(runtime='crt'))",
    ),
    "autotvm.LocalRunner": (
        "a `module_loader` is refused",
        "refused('module_loader', lambda: autotvm.LocalRunner(module_loader=1))",
    ),
    "autotvm.RPCRunner": (
        "`host` and `port` are those of the farm's scheduler; a `module_loader` is refused",
        "refused('module_loader', lambda: autotvm.RPCRunner('k', '', 0, module_loader=1))",
    ),
    "autotvm.ConfigEntity": (
        "made by ConfigSpace.get, or of a line of a log",
        "assert config_space.get(3).index == 3",
    ),
    "autotvm.apply_fixed_config": (
        "`schedule_names` are ConfigEntities",
        "refused('ConfigEntity', lambda: autotvm.ApplyFixedConfig([template_task], 'a.cuda'))",
    ),
    "autotvm.task.ApplyFixedConfig": (
        "`schedule_names` are ConfigEntities",
        "refused('ConfigEntity', lambda: autotvm.ApplyFixedConfig([template_task], ['a', 'b']))",
    ),
    "autotvm.create": (
        "`target_host` is refused; also templates that ship, and files",
        "refused('target_host', lambda: autotvm.create('old_api', (8,), 'llvm', 'llvm'))",
    ),
    "autotvm.measure_option": (
        "an object in place of a dict",
        "assert autotvm.measure_option('local', 'local').options()['number'] == 4",
    ),
    "autotvm.task.Task": (
        "has the target as well",
        "assert autotvm.Task('old_api', (8,), 'llvm').target == 'llvm'",
    ),
    "autotvm.task.space.SplitEntity": (
        "fields that only Kiln sets follow",
        "assert str(SplitEntity([-1, 4])) == '[-1, 4]'",
    ),
    "autotvm.task.space.ReorderEntity": (
        "fields that only Kiln sets follow",
        "assert str(ReorderEntity([1, 0])) == '[1, 0]'",
    ),
    "autotvm.task.space.AnnotateEntity": (
        "fields that only Kiln sets follow",
        "assert str(AnnotateEntity(['vec'])) == \"['vec']\"",
    ),
    "autotvm.task.space.AnnotateEntity.apply": (
        "`source` is refused; the bounds of unrolling and of vectors do nothing",
        "refused('source', lambda: AnnotateEntity(['vec']).apply(None, None, [], source=1))",
    ),
    "autotvm.task.space.InstantiationError": (
        "a KilnError",
        "assert issubclass(InstantiationError, kiln.KilnError)",
    ),
    "autotvm.tuner.GATuner": (
        "`elite_num` and `mutation_prob` are fixed",
        "refused('elite_num', lambda: autotvm.tuner.GATuner(template_task, elite_num=9))",
    ),
    "autotvm.tuner.RandomTuner": (
        "`range_idx` is refused",
        "refused('range_idx', lambda: autotvm.tuner.RandomTuner(template_task, (0, 3)))",
    ),
    "autotvm.tuner.GridSearchTuner": (
        "`range_idx` is refused",
        "refused('range_idx', lambda: autotvm.tuner.GridSearchTuner(template_task, (0, 3)))",
    ),
    "autotvm.tuner.DropletTuner": (
        "coordinate descent of Kiln's; both options are fixed",
        "refused('pvalue', lambda: autotvm.tuner.DropletTuner(template_task, pvalue=0.1))",
    ),
    "autotvm.tuner.XGBTuner": (
        "`optimizer` is sa; `num_threads` and `log_interval` do nothing",
        "refused('optimizer', lambda: autotvm.tuner.XGBTuner(template_task, optimizer='rs'))",
    ),
    "autotvm.tuner.Tuner": (
        "an option `seed`",
        "assert autotvm.tuner.Tuner(template_task, seed=3).seed == 3",
    ),
    "autotvm.tuner.Tuner.tune": (
        "the options may be left out; returns the job",
        "refused('si_prefix', lambda: autotvm.tuner.RandomTuner(template_task).tune("
        "1, si_prefix='Q'))",
    ),
    "autotvm.tuner.Tuner.load_history": (
        "does nothing: a job begins with what its farm has measured of the template",
        "autotvm.tuner.RandomTuner(template_task).load_history([])",
    ),
    "autotvm.tuner.callback.progress_bar": (
        "a line a trial on stderr, with the values of the knobs",
        "autotvm.callback.progress_bar(1)(None, [], [])",
    ),
}

# Parts of the package in which a name may be.
_MODULES = {
    "auto_scheduler": ("", "loop_state", "feature"),
    "autotvm": ("", "task", "tuner", "callback", "record", "space", "measure", "dispatcher"),
}


def found(name):
    """The object of the package for a name of TVM; None if there is none."""
    import importlib

    top, *words = name.split(".")
    # Names of modules go before a class or a function.
    words = words[-2:] if len(words) > 1 and words[-2][:1].isupper() else words[-1:]
    if len(words) == 1 and len(name.split(".")) > 2 and name.split(".")[-2].startswith("apply_"):
        words = name.split(".")[-2:]
    aliases = [words, [_ALIASES[words[0]], *words[1:]]] if words[0] in _ALIASES else [words]
    for start in aliases:
        for module in _MODULES[top]:
            value = importlib.import_module(f"kiln.{top}.{module}".rstrip("."))
            for word in start:
                value = getattr(value, word, None)
            if value is not None:
                return value
            here = importlib.import_module(f"kiln.{top}.{module}".rstrip("."))
            if len(start) == 2 and _has_field(getattr(here, start[0], None), start[1]):
                return start[1]
    return None


def _has_field(owner, name):
    if not inspect.isclass(owner):
        return False
    for each in owner.__mro__[:-1]:
        if name in getattr(each, "__annotations__", {}):
            return True
        if re.search(rf"\bself\.{name}\b.* = ", inspect.getsource(each)):
            return True
    return False


def _defaults(function):
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.name not in ("self", "cls", "_cls")
    ]
    return [
        ("*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else "")
        + each.name
        for each in parameters
    ], {each.name: each.default for each in parameters if each.default is not each.empty}


def mismatch(name, kind, arguments):
    """Why the package's object is not as TVM's; "" if it is."""
    value = found(name)
    if value is None:
        return "not there"
    if kind == "field" or (kind == "class" and not arguments):
        return ""
    is_tuple = inspect.isclass(value) and issubclass(value, tuple)
    of = value.__new__ if is_tuple else value.__init__ if inspect.isclass(value) else value
    names, defaults = _defaults(of)
    wanted = [each for each, _ in arguments]
    if names[: len(wanted)] != wanted:
        return f"arguments {names}, TVM has {wanted}"
    for each in names[len(wanted) :]:
        if each not in defaults and not each.startswith("*"):
            return f"{each} has no default"
    for each, default in arguments:
        if default is None:
            if each in defaults:
                return f"{each} has a default"
        elif default not in ("...", "cpu_count()") and repr(defaults.get(each)) != default:
            return f"{each}={defaults.get(each)!r}, TVM has {default}"
        elif default == "cpu_count()" and defaults.get(each) != multiprocessing.cpu_count():
            return f"{each} is not the number of cores"
    return ""


def rows():
    """Name, kind, arguments, "same", "differs" or "gone", and a remark, of each row."""
    with open(ROWS, encoding="utf-8") as file:
        listed = json.load(file)
    for name, kind, arguments in listed:
        why = next((text for begin, text in PLUMBING.items() if name.startswith(begin)), None)
        if why is not None and name not in DIFFERS:
            yield name, kind, arguments, "gone", why
        elif name in DIFFERS:
            yield name, kind, arguments, "differs", DIFFERS[name][0]
        else:
            yield name, kind, arguments, "same", ""


def table():
    """The table in Markdown."""
    lines = ["| TVM 0.19 | here | |\n", "|---|---|---|\n"]
    counts = {"same": 0, "differs": 0, "gone": 0}
    for name, kind, arguments, what, remark in rows():
        counts[what] += 1
        given = ", ".join(each if not value else f"{each}={value}" for each, value in arguments)
        shown = name if kind == "field" else f"{name}({given})"
        lines.append(f"| `{shown}` | {what} | {remark} |\n".replace("|  |", "| |"))
    known = counts["same"] + counts["differs"]
    head = (
        f"{sum(counts.values())} classes, functions, methods and fields: {counts['same']} are the "
        f"same, {counts['differs']} differ, and {counts['gone']} are plumbing of TVM that has no "
        "meaning here. "
        f"So {100 * counts['same'] // known}% of what has a meaning are the same.\n\n"
    )
    return head + "".join(lines)


def page_with_table(text):
    """The page with the table between its marks."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + table() + text[end:]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(page_with_table(page))
