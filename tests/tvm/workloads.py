"""What is compared: computations that Kiln has as text and TVM as tensors, under TVM's names of operators and axes.

Operators are those of both libraries. Tasks are those that Kiln finds in a network. Where TVM's relay has the network as well,
it extracts its own tasks, and a task of Kiln's is the one with the same key: its tensors are those that TVM made. Those of other
tasks are made by the program that `kiln show --as tvm` prints.
"""
import json
import os
import re
import subprocess
import tempfile

# Otherwise extraction downloads autotvm's records.
os.environ.setdefault("TOPHUB_LOCATION", "NONE")

# pylint: disable=wrong-import-position
import tvm
from tvm import auto_scheduler, relay, te, topi
# Without this import relay.testing is missing.
import tvm.relay.testing


class Workload:
    """A computation: its name, its tensors in TVM, its text in Kiln, and whether TVM itself has made the tensors."""

    def __init__(self, name, tensors, text, is_tvms=True):
        self.name = name
        # The tensors are made once, because TVM's schedules belong to these operations.
        self.tensors = tensors
        self.text = text
        self.is_tvms = is_tvms

    def write_text(self, folder):
        """The file with the computation in Kiln's text form, its operators and axes called as TVM calls them: as Kiln does, where
        Kiln has made the tensors."""
        path = os.path.join(folder, re.sub(r"\W+", "_", self.name)[:80] + ".te")
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_names_of(self.tensors, self.text) if self.is_tvms else self.text)
        return path


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- TVM's names


def axis_names(operation):
    axes = list(getattr(operation, "axis", [])) + list(getattr(operation, "reduce_axis", []))
    return [axis.var.name for axis in axes]


def with_names_of(tensors, text):
    """Kiln's text of a computation, its operators and axes called as TVM calls them."""
    operations = auto_scheduler.ComputeDAG(tensors).ops
    lines = text.strip().splitlines()
    assert sum(not line.startswith(("@", "combine ")) for line in lines) == len(operations), (text, operations)
    operators, renamed, attributes, number = {}, [], [], 0
    for line in lines:
        if line.startswith("@keep_order") or line.startswith("combine "):
            renamed.append(line)
            continue
        # Attributes belong to the operator below: they name its axes and inputs.
        if line.startswith("@"):
            attributes.append(line)
            continue
        operation = operations[number]
        number += 1
        name = re.match(r"(?:input )?([\w.']+)", line).group(1)
        own, count = operation.name, 0
        # The name was used before.
        while own in operators.values():
            count += 1
            own = f"{operation.name}'{count}"
        operators[name] = own
        words = dict(operators)
        words.update(zip(re.findall(r"(\w+): \d+", line), axis_names(operation)))
        for one in attributes + [line]:
            if not one.startswith("@hash_body"):
                one = re.sub(r"(?<!@)\b[A-Za-z_][\w.']*", lambda word: words.get(word.group(0), word.group(0)), one)
            renamed.append(one)
        attributes = []
    return "\n".join(renamed) + "\n"


def printed_tensors(kiln, text):
    """The inputs and outputs that `kiln show --as tvm` makes of a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "computation.te")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        program = run(kiln, "show", "--op", path, "--steps", "none", "--as", "tvm")
    names = {"__name__": "program"}
    exec(compile(program, "program", "exec"), names)  # pylint: disable=exec-used
    return names["scheduled"]()[1]


# ---- operators


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


# Kiln's words for each operator (operator, arguments, epilogue), and the same computation in TVM.
OPERATORS = [
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


def operator_workloads(kiln):
    workloads = []
    for op, args, epilogue, make in OPERATORS:
        words = [kiln, "show", op, "--args", args, "--as", "dag"] + (["--epilogue", epilogue] if epilogue else [])
        name = " ".join(word for word in (op, args, epilogue) if word)
        workloads.append(Workload(name, make(), run(*words)))
    return workloads


# ---- tasks of networks

# Networks that TVM's relay has as well, with the channels last.
NETWORKS_OF_TVM = {
    "resnet-18": lambda: relay.testing.resnet.get_workload(num_layers=18, layout="NHWC", image_shape=(224, 224, 3)),
    "resnet-50": lambda: relay.testing.resnet.get_workload(num_layers=50, layout="NHWC", image_shape=(224, 224, 3)),
    "mobilenet": lambda: relay.testing.mobilenet.get_workload(layout="NHWC", image_shape=(224, 224, 3)),
}


def tensors_that_tvm_extracts(network):
    """By workload key: the tensors of each task that TVM finds in its own network of the name. For a GPU, where it takes
    Winograd's method as Kiln's tasks do."""
    if network not in NETWORKS_OF_TVM:
        return {}
    module, params = NETWORKS_OF_TVM[network]()
    # There need not be a GPU.
    hardware = auto_scheduler.HardwareParams(-1, 16, 64, 49152, 2**31 - 1, 1024, 8, 32)
    tasks, _ = auto_scheduler.extract_tasks(module["main"], params, tvm.target.Target("cuda -arch=sm_80"),
                                            hardware_params=hardware)
    return {task.workload_key: list(task.compute_dag.tensors) for task in tasks}


def tasks_of(kiln, network):
    """By text the description and the key of each task that Kiln finds, and of each way to compute it: first those that it has when it
    cuts the network into kernels as TVM does, which is with Winograd's method wherever it can be, then those that it has besides."""
    tasks = {}
    for variants in ("winograd", "all"):
        words = [kiln, "tasks", "network:" + network, "--target", "cuda", "--variants", variants, "--layout-rewrite", "none", "--json"]
        for line in run(*words).splitlines():
            task = json.loads(line)
            for variant in task["variants"]:
                name = task["task"] + (f", {variant['variant']}" if variant["variant"] else "")
                tasks.setdefault(variant["dag"], (name, variant["workload_key"]))
    return tasks


def network_workloads(kiln, network):
    extracted = tensors_that_tvm_extracts(network)
    workloads = []
    for number, (text, (name, key)) in enumerate(tasks_of(kiln, network).items()):
        tensors = extracted.get(key)
        own = tensors if tensors is not None else printed_tensors(kiln, text)
        workloads.append(Workload(f"{network} {number}: {name}", own, text, is_tvms=tensors is not None))
    found = sum(workload.is_tvms for workload in workloads)
    print(f"{network}: {len(workloads)} computations of its tasks"
          + (f"; of {len(extracted)} tasks that TVM extracts {found} are among them by their keys" if extracted else ""), flush=True)
    return workloads
