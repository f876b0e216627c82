#!/usr/bin/env python3
"""Records of a live autotvm in Kiln, and of Kiln's spaces in that autotvm: the same configurations.

Not a part of the automatic tests, since it needs TVM (tests/tvm/run.sh makes its environment):

    bazel build //client/cli:kiln
    tests/tvm/run.sh --autotvm --count 200

The template is that of autotvm's tutorial, direct convolution in NCHW on a GPU, which Kiln ships. TVM to Kiln: autotvm
draws configurations of several layers and writes them as a log; `kiln templates --config` has the same knobs at each index,
and `kiln records import` and `export --format autotvm` give the lines back as they were. Kiln to TVM: indices drawn here,
whose entities Kiln prints, are written as lines of a log; autotvm reads them and has the same values at the same index.
Every difference is printed; the exit status is 1 if there is one.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from tvm import autotvm, te, topi
import tvm

# N, H, W, CO, CI, KH, KW, stride, padding.
LAYERS = [(1, 7, 7, 512, 512, 3, 3, 1, 1), (1, 14, 14, 256, 256, 3, 3, 1, 1), (1, 56, 56, 64, 64, 1, 1, 1, 0),
          (1, 28, 28, 128, 96, 3, 3, 2, 1)]


@autotvm.template("tutorial/conv2d_no_batching")
def conv2d_no_batching(n, h, w, co, ci, kh, kw, stride, padding):
    """The tutorial's (tutorials/autotvm/tune_conv2d_cuda.py)."""
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((co, ci, kh, kw), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    s = te.create_schedule([conv.op])

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
    return s, [data, kernel, conv]


def run(arguments, *words):
    return subprocess.run([arguments.kiln, *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kiln(arguments, *words):
    done = run(arguments, *words)
    if done.returncode != 0:
        sys.exit(f"kiln {' '.join(words)} failed: {done.stderr}")
    return done.stdout


def draw(arguments, rng, layer, task):
    """An index and what Kiln has there, the entities as autotvm writes them. Kiln's template refuses blocks of more than
    1,024 threads, which autotvm finds out when it builds them: those are drawn again."""
    while True:
        index = rng.randrange(len(task.config_space))
        words = ["templates", "conv2d_nchw_direct", "--args", ",".join(map(str, layer)), "--target", "cuda",
                 "--config", str(index), "--json"]
        done = run(arguments, *words)
        if done.returncode == 0:
            return index, [list(entity) for entity in json.loads(done.stdout)["entity"]]
        if "does not meet require" not in done.stderr:
            sys.exit(f"kiln {' '.join(words)} failed: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", default="bazel-bin/client/cli/kiln", help="the program [%(default)s]")
    parser.add_argument("--count", type=int, default=200, help="records each way [%(default)s]")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    tasks = [(layer, autotvm.task.create("tutorial/conv2d_no_batching", args=layer, target="cuda")) for layer in LAYERS]
    differences = 0

    def differ(what):
        nonlocal differences
        differences += 1
        print(f"  {what}")

    for layer, task in tasks:
        space = kiln(arguments, "templates", "conv2d_nchw_direct", "--args", ",".join(map(str, layer)), "--target", "cuda")
        if f"len={len(task.config_space)}," not in space:
            differ(f"{layer}: autotvm's space has {len(task.config_space)} points, Kiln's: {space.splitlines()[0]}")

    lines, back = [], []
    for i in range(arguments.count):
        layer, task = tasks[i % len(tasks)]
        # Converts a record of TVM to Kiln.
        index, ours = draw(arguments, rng, layer, task)
        inputs = autotvm.MeasureInput(task.target, task, task.config_space.get(index))
        result = autotvm.MeasureResult([1e-3 * rng.random()], 0, 1.5, 1609326547.0 + i)
        line = autotvm.record.encode(inputs, result)
        lines.append(line)
        theirs = json.loads(line)["config"]["entity"]
        if ours != theirs:
            differ(f"{layer}, index {index}: autotvm has {theirs}, Kiln {ours}")
        # Converts a record of Kiln to TVM.
        index, ours = draw(arguments, rng, layer, task)
        row = json.loads(line)
        row["config"] = {"index": index, "code_hash": None, "entity": ours}
        back.append((task, json.dumps(row)))

    for task, line in back:
        read, _ = autotvm.record.decode(line)
        if read.config.to_json_dict()["entity"] != task.config_space.get(read.config.index).to_json_dict()["entity"]:
            differ(f"Kiln's line {line}: autotvm has {task.config_space.get(read.config.index)}")

    with tempfile.TemporaryDirectory() as folder:
        log, database = os.path.join(folder, "a.log"), os.path.join(folder, "a.db")
        with open(log, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        kiln(arguments, "records", "import", log, "--db", database)
        exported = kiln(arguments, "records", "export", "--format", "autotvm", "--db", database).splitlines()
        distinct = list(dict.fromkeys(lines))
        if sorted(exported) != sorted(distinct):
            differ(f"of {len(distinct)} lines {len(set(exported) & set(distinct))} came back as they were")

    print(f"TVM {tvm.__version__}: {len(lines)} records of autotvm in Kiln, {len(back)} of Kiln in autotvm, "
          f"{len(tasks)} layers: {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
