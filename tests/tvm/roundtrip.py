#!/usr/bin/env python3
"""Schedules of a live TVM in Kiln and of Kiln in that TVM: the same loops, and right answers.

Not a part of the automatic tests, since it needs TVM: the last version with auto_scheduler is 0.19. tests/tvm/run.sh makes
a virtual environment with it and calls this:

    bazel build //client/cli:kiln
    tests/tvm/run.sh --count 500 --programs 50
    tests/tvm/run.sh --count 500 --programs 50 --networks resnet-18,mobilenet_v2,bert-base
    tests/tvm/run.sh --texts examples/te/*.te

The workloads are operators of both libraries, or with --networks the tasks of networks (workloads.py); TVM's names of operators
and axes are put into Kiln's texts, so that loops can be compared by name.

TVM to Kiln: TVM samples and mutates states of each workload and writes them as a log (its costs are made up), which
`kiln records import` reads. The loops of each record, as `kiln show --as loops` prints them, are those that TVM's bound
inference finds for its state: names, extents, annotations, what is computed where. `kiln records measure` builds, checks
and times each. Kiln to TVM: `kiln tune` measures candidates of each workload on this CPU, `kiln records export` writes
them; TVM reads the log by the key that Kiln wrote, replays each line, has the same loops, and computes the same as without
a schedule. Programs: `kiln show --as tvm` prints some of Kiln's records as Python, which runs and checks itself; with --texts
these alone, of each text without a schedule and with some that `kiln tune` tried.
Every line that fails is printed with its cause; the exit status is 1 if there is one.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler.measure import recover_measure_input

from workloads import axis_names, network_workloads, operator_workloads

TOLERANCE = 1e-3
EXPLAINED = "explained: "


class Tally:
    """What came of the records of each workload: how many of how many had the property."""

    def __init__(self, title):
        self.title = title
        self.good, self.explained, self.all = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, name, why, where):
        """`name`: of the workload. `why` is None for a good one; one that begins with EXPLAINED is not counted as a failure."""
        self.all[name] += 1
        if why is None:
            self.good[name] += 1
            return
        self.explained[name] += why.startswith(EXPLAINED)
        print(f"  {where}, {name}: {why}", flush=True)

    def report(self):
        print(self.title)
        for name, count in [*self.all.items(), ("all", sum(self.all.values()))]:
            good = sum(self.good.values()) if name == "all" else self.good[name]
            explained = sum(self.explained.values()) if name == "all" else self.explained[name]
            print(f"  {name}: {good} of {count}" + (f", {explained} explained" if explained else ""), flush=True)
        return good + explained == count and count > 0


# ---- loops


def kilns_name(word):
    """What Kiln calls an axis that a step has made: TVM adds "_c" in a cache stage, and calls what rfactor leaves by its own
    names of parts ("k_o", "k_i", in the stage that is left "k_o_v") and of fused loops ("rv0_rv1_fused")."""
    name = word.group(0).replace("_fused", "_")
    name = name.removesuffix("_v")
    for theirs, ours in (("_c", ""), ("_o", "_0"), ("_i", "_1")):
        if name.endswith(theirs):
            return name[: -len(theirs)] + ours
    return name


def factored_names(workload):
    """rfactor leaves TVM a stage whose axes are ax0, ax1, ...: what Kiln goes on to call them. Where the computation has such
    names itself, or its reductions differ, they stay."""
    operations = auto_scheduler.ComputeDAG(workload.tensors).ops
    if any(name.startswith("ax") for operation in operations for name in axis_names(operation)):
        return {}
    reductions = [[axis.var.name for axis in operation.axis] for operation in operations
                  if len(getattr(operation, "reduce_axis", [])) > 0]
    names = {}
    for number, name in enumerate(reductions[0]):
        if all(number < len(other) and other[number] == name for other in reductions):
            names[f"ax{number}"] = name
    return names


def comparable(loops, rename=None):
    """Lines without where loops begin, which TVM prints as an expression for an attached stage, and without the ".repl" that
    it adds to the name of a stage that was factored. `rename`: factored_names, of loops that TVM prints."""
    lines = []
    for line in str(loops).strip().splitlines():
        loop = re.match(r"( *\S+ )(\S+) \((?:.*,(\d+)|None)\)$", line.rstrip())
        if loop is None:
            lines.append(line.rstrip().replace(".repl", ""))
            continue
        name = loop.group(2)
        if rename is not None:
            name = re.sub(r"[A-Za-z_]\w*", kilns_name, name)
            name = re.sub(r"[A-Za-z_]\w*", lambda word: rename.get(word.group(0), word.group(0)), name)
        lines.append(f"{loop.group(1)}{name} ({loop.group(3)})")
    return lines


def in_any_order(lines):
    """The nest with what stands beside each other sorted: TVM prints stages that are computed in one loop in the order of
    their compute_at steps, which is not the order in which they run."""
    root = ("", [])
    stack = [(-1, root)]
    for line in lines:
        depth = len(line) - len(line.lstrip())
        while stack[-1][0] >= depth:
            stack.pop()
        node = (line.strip(), [])
        stack[-1][1][1].append(node)
        stack.append((depth, node))

    def canonical(node):
        return node[0] + "{" + ";".join(sorted(canonical(child) for child in node[1])) + "}"

    return canonical(root)


def has_unknown_extent(tvms):
    """A loop of TVM whose extent is an expression."""
    loops = (re.match(r" *(?:for|parallel|vectorize|unroll) \S+ \(.*,(.*)\)$", line) for line in str(tvms).splitlines())
    return any(loop is not None and not loop.group(1).isdigit() for loop in loops)


def loops_differ(workload, kilns, tvms):
    """The first line that differs; None: there is none."""
    ours, theirs = comparable(kilns), comparable(tvms, rename=factored_names(workload))
    if in_any_order(ours) == in_any_order(theirs):
        return None
    for one, other in zip(theirs, ours):
        if one != other:
            break
    difference = f"TVM has '{one.strip()}', Kiln '{other.strip()}'"
    if has_unknown_extent(tvms):
        return EXPLAINED + "TVM finds no constant extent for a loop, and does not lower it: " + difference
    without_extents = [[re.sub(r"\(\d+\)$", "", line) for line in lines] for lines in (ours, theirs)]
    if without_extents[0] == without_extents[1] and one[0] != " ":
        return EXPLAINED + "of a stage at root TVM computes what is read, Kiln all of it: " + difference
    if without_extents[0] == without_extents[1] and are_whole_axes(workload, ours, theirs):
        return EXPLAINED + "of an axis that is not tiled TVM computes what is read, Kiln all of it: " + difference
    return "other loops: " + difference


def are_whole_axes(workload, ours, theirs):
    """Every loop of Kiln's that differs is a whole axis of its stage, and TVM's is shorter. Both have the same loops otherwise."""
    axes = {operation.name: {axis.var.name: int(axis.dom.extent) for axis in getattr(operation, "axis", [])}
            for operation in auto_scheduler.ComputeDAG(workload.tensors).ops}
    for number, (one, other) in enumerate(zip(ours, theirs)):
        if one == other:
            continue
        name, extent = re.match(r" *\S+ (\S+) \((\d+)\)$", one).groups()
        stage = next(line.split()[0] for line in ours[number:] if line.endswith("= ..."))
        shorter = int(re.search(r"\((\d+)\)$", other).group(1)) < int(extent)
        if not shorter or axes.get(stage, {}).get(name) != int(extent):
            return False
    return True


def loops_in_kiln(kiln, db, record):
    words = [kiln, "show", "--record", str(record), "--db", db, "--as", "loops"]
    shown = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else shown.stderr


def import_into(kiln, db, log, keys, text):
    words = [kiln, "records", "import", log, "--db", db]
    for key in keys:
        words += ["--bind", f"{key}={text}"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def shares(workloads, count):
    """`count` records over the workloads, as evenly as can be."""
    each, more = divmod(count, len(workloads))
    return [(workload, each + (i < more)) for i, workload in enumerate(workloads)]


# ---- TVM to Kiln


def has_bounds(task, state):
    """TVM samples some states that it cannot lower itself, for instance with a producer inside of the wrong loop."""
    return "(None)" not in str(task.compute_dag.infer_bound_from_state(state))


def states_of(task, count, seed):
    """Half of them sampled, the others mutated from these."""
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), seed=seed, verbose=0,
        params={"sample_init_min_population": max(2 * count, 8), "evolutionary_search_population": 2 * count + 64,
                "evolutionary_search_num_iters": 2})
    drawn = list(policy.sample_initial_population())
    sampled = [state for state in drawn if has_bounds(task, state)]
    mutated = [state for state in policy.evolutionary_search(drawn, 2 * count) if has_bounds(task, state)]
    half = (count + 1) // 2
    states = sampled[:half] + mutated[: count - half]
    return states + sampled[half : half + count - len(states)]


def task_of(workload, target):
    key = auto_scheduler.ComputeDAG(workload.tensors).workload_key()
    auto_scheduler.workload_registry.register_workload_tensors(key, workload.tensors, override=True)
    return auto_scheduler.SearchTask(workload_key=key, target=target,
                                     layout_rewrite_option=auto_scheduler.LayoutRewriteOption.NO_REWRITE)


def measured_right(kiln, db, log, bindings, lines):
    """Why each line's program is not right; None: it is."""
    words = [kiln, "records", "measure", log, "--db", db, "--json", "--repeat", "1", "--number", "1",
             "--min-repeat-ms", "0"] + bindings
    measured = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    whys = {}
    for line in measured.stdout.splitlines():
        result = json.loads(line)
        whys[result["line"]] = None if result["ok"] else result["check"]
    return [whys.get(i, "not measured: " + measured.stderr.strip()[-200:]) for i in range(1, lines + 1)]


def tvm_to_kiln(kiln, folder, target, workloads, count, seed):
    loops = Tally("TVM to Kiln, the same loops")
    answers = Tally("TVM to Kiln, right answers")
    for number, (workload, each) in enumerate(shares(workloads, count)):
        if each == 0:
            continue
        base = os.path.join(folder, f"tvm{number}")
        text = workload.write_text(folder)
        task = task_of(workload, target)
        states = states_of(task, each, seed)
        results = [auto_scheduler.MeasureResult([1e-3], 0, "", 1, time.time() + i) for i in range(len(states))]
        auto_scheduler.save_records(base + ".json", [auto_scheduler.MeasureInput(task, state) for state in states],
                                    results)
        import_into(kiln, base + ".db", base + ".json", [task.workload_key], text)
        for i, state in enumerate(states, 1):
            tvms = task.compute_dag.infer_bound_from_state(state)
            loops.add(workload.name, loops_differ(workload, loops_in_kiln(kiln, base + ".db", i), tvms), f"TVM's line {i}")
        whys = measured_right(kiln, base + ".db", base + ".json", ["--bind", f"{task.workload_key}={text}"],
                              len(states))
        for i, why in enumerate(whys, 1):
            answers.add(workload.name, why, f"TVM's line {i}")
    return [loops, answers]


# ---- Kiln to TVM


def write_kiln_log(kiln, folder, number, workload, count, seed):
    """The computation's text, the database and the log of `count` records."""
    base = os.path.join(folder, f"kiln{number}")
    text = workload.write_text(folder)
    # Some records have steps that TVM lacks, and one is the loops without a schedule.
    words = [kiln, "tune", text, "--target", "llvm", "--db", base + ".db", "--quiet", "--trials", str(count + 1),
             "--seed", str(seed), "--finalists", "0", "--repeat", "1", "--min-repeat-ms", "0"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([kiln, "records", "export", "--all-keys", "--db", base + ".db", "-o", base + ".json"], check=True,
                   stderr=subprocess.DEVNULL)
    return text, base + ".json"


def choose_key(log, key):
    """Leaves of lines that are of one record under several keys the one with this key; where there is none, the first."""
    chosen = {}
    with open(log, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            identity = json.dumps([record["i"][1], record["r"]])
            if identity not in chosen or record["i"][0][0] == key:
                chosen[identity] = line
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(chosen.values())


def outputs_of(schedule, arguments, target, values):
    """`values`: of the arguments in order; those of outputs are only where results go."""
    # Common subexpressions that are floats have debug information that recent versions of LLVM
    # refuse.
    with tvm.transform.PassContext(config={"tir.disable_cse_tir": True}):
        function = tvm.build(schedule, arguments, target)
    arrays = [tvm.nd.array(value) for value in values]
    function(*arrays)
    return [array.numpy() for array, argument in zip(arrays, arguments) if is_output(argument)]


def is_output(tensor):
    return not isinstance(tensor.op, te.PlaceholderOp)


def random_values(tensors, generator):
    values = []
    for tensor in tensors:
        shape = [int(extent) for extent in tensor.shape]
        values.append(generator.uniform(-1, 1, size=shape).astype(tensor.dtype))
    return values


def answer_differs(task, state, target, values, reference):
    """Why the program is wrong; None: it is right."""
    try:
        schedule, arguments = task.compute_dag.apply_steps_from_state(state)
        got = outputs_of(schedule, arguments, target, values)
    except Exception as error:  # pylint: disable=broad-except
        return str(error).strip().splitlines()[-1][:200]
    error = max(np.max(np.abs(one - right)) / max(np.max(np.abs(right)), 1e-30) for one, right in zip(got, reference))
    return None if error <= TOLERANCE else f"largest error {error:.2e}"


def run_program(kiln, db, record, folder):
    """Why the printed program is wrong; None: it runs and finds itself right."""
    path = os.path.join(folder, "program.py")
    printed = subprocess.run([kiln, "show", "--record", str(record), "--db", db, "--as", "tvm"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if printed.returncode != 0:
        return printed.stderr.strip()
    with open(path, "w", encoding="utf-8") as file:
        file.write(printed.stdout)
    ran = subprocess.run([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return None if ran.returncode == 0 and "right" in ran.stdout else (ran.stdout + ran.stderr).strip()[-300:]


def kiln_to_tvm(kiln, folder, target, workloads, count, programs, seed):
    keys = Tally("Kiln to TVM, the workload by the key that Kiln wrote")
    loops = Tally("Kiln to TVM, the same loops")
    answers = Tally("Kiln to TVM, right answers")
    printed = Tally("Kiln to TVM, programs that run and are right")
    generator = np.random.default_rng(seed)
    program_shares = dict((workload.name, each) for workload, each in shares(workloads, programs))
    for number, (workload, each) in enumerate(shares(workloads, count)):
        if each == 0:
            continue
        text, log = write_kiln_log(kiln, folder, number, workload, each, seed)
        task = task_of(workload, target)
        tensors = workload.tensors
        values = random_values(tensors, generator)
        unscheduled = te.create_schedule([tensor.op for tensor in tensors if is_output(tensor)])
        reference = outputs_of(unscheduled, tensors, target, values)
        again = log + ".db"
        choose_key(log, task.workload_key)
        records = [read for read, _ in auto_scheduler.load_records(log)]
        import_into(kiln, again, log, {read.task.workload_key for read in records}, text)
        for i, read in enumerate(records, 1):
            key = read.task.workload_key
            where = f"Kiln's line {i}"
            # Other workloads have names that TVM's library does not give.
            if workload.is_tvms:
                keys.add(workload.name, None if key == task.workload_key else f"{key} is not {task.workload_key}", where)
            auto_scheduler.workload_registry.register_workload_tensors(key, tensors, override=True)
            recovered = recover_measure_input(read, rebuild_state=True)
            state = recovered.task.compute_dag.infer_bound_from_state(recovered.state)
            loops.add(workload.name, loops_differ(workload, loops_in_kiln(kiln, again, i), state), where)
            why = answer_differs(recovered.task, recovered.state, target, values, reference)
            if why is not None and has_unknown_extent(state):
                why = EXPLAINED + "TVM does not lower a loop without a constant extent: " + why
            answers.add(workload.name, why, where)
            if i <= program_shares[workload.name]:
                printed.add(workload.name, run_program(kiln, again, i, folder), where)
    has_keys = any(workload.is_tvms for workload in workloads)
    return ([keys] if has_keys else []) + [loops, answers] + ([printed] if programs else [])


# ---- programs of texts


def printed_programs(kiln, folder, texts, each, seed):
    """`each` schedules of a text: none, and those of the first trials of a search."""
    printed = Tally("programs of texts that run and are right")
    for number, path in enumerate(texts):
        with open(path, encoding="utf-8") as file:
            lets = [f"--let={name}=1024" for name in re.findall(r"^param (\w+)$", file.read(), re.MULTILINE)]
        db = os.path.join(folder, f"text{number}.db")
        words = [kiln, "tune", path, *lets, "--target", "llvm", "--db", db, "--quiet", "--trials", str(3 * each),
                 "--seed", str(seed), "--finalists", "0", "--repeat", "1", "--min-repeat-ms", "0"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        tried = 0
        listed = subprocess.run([kiln, "records", "list", "--db", db, "--json"], check=True, stdout=subprocess.PIPE, text=True)
        for line in listed.stdout.splitlines():
            record = json.loads(line)
            if tried == each:
                break
            why = run_program(kiln, db, record["id"], folder)
            # The record has Kiln's own steps.
            if why is not None and "TVM has no such step" in why:
                continue
            tried += 1
            printed.add(os.path.basename(path), why, f"record {record['id']}")
    return printed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="bazel-bin/client/cli/kiln", help="the program [%(default)s]")
    parser.add_argument("--count", type=int, default=50, help="records each way [%(default)s]")
    parser.add_argument("--programs", type=int, default=10, help="printed programs to run [%(default)s]")
    parser.add_argument("--way", choices=["both", "tvm-to-kiln", "kiln-to-tvm"], default="both", help="[%(default)s]")
    parser.add_argument("--networks", help="instead of operators the tasks of these networks, for instance resnet-18,bert-base")
    parser.add_argument("--texts", nargs="+", help="nothing but programs of these text files")
    parser.add_argument("--schedules", type=int, default=3, help="of each text [%(default)s]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="keep logs and databases in this folder")
    flags = parser.parse_args()
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target(f"llvm -mcpu={cpu} -num-cores={flags.cores}")
    kiln = os.path.abspath(flags.kiln)
    with tempfile.TemporaryDirectory() as temporary:
        folder = flags.keep or temporary
        os.makedirs(folder, exist_ok=True)
        if flags.texts:
            tallies = [printed_programs(kiln, folder, flags.texts, flags.schedules, flags.seed)]
        else:
            workloads = operator_workloads(kiln)
            if flags.networks:
                workloads = [one for network in flags.networks.split(",") for one in network_workloads(kiln, network)]
            tallies = []
            if flags.way != "kiln-to-tvm":
                tallies += tvm_to_kiln(kiln, folder, target, workloads, flags.count, flags.seed)
            if flags.way != "tvm-to-kiln":
                tallies += kiln_to_tvm(kiln, folder, target, workloads, flags.count, flags.programs, flags.seed)
    return 0 if all([tally.report() for tally in tallies]) else 1


if __name__ == "__main__":
    sys.exit(main())
