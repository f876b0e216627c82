"""The layer table: which folder may include from which. Includes point down only.

usage: layers.py WORKSPACE      prints each violation, one a line; exit status 1 if there is one

A folder stands for all below it unless a longer path is listed. A source file in a folder that is not listed is a
violation too, so that the table stays complete.
"""
import os
import re
import sys

# The compiler without features and code generation, which are its two ends.
_COMPILER = [
    "compiler/target",
    "compiler/ir",
    "compiler/arith",
    "compiler/instructions",
    "compiler/dag",
    "compiler/schedule",
    "compiler/lower",
    "compiler/formula",
    "compiler/handwritten",
]

# The folders or single headers that a folder may include besides itself.
_BASE = [
    "base", "base/text", "base/numbers", "base/hash", "base/file", "base/json", "base/arrays", "base/console", "base/process",
    "base/server", "base/metrics",
]

TABLE = {
    # Words, numbers and lists as people read them.
    "base/text": [],
    # Errors, the log, clocks, threads.
    "base": ["base/text"],
    "base/numbers": ["base"],
    # Counters, and their text for a monitoring system.
    "base/metrics": ["base", "base/text"],
    "base/hash": ["base", "base/numbers"],
    "base/file": ["base", "base/text", "base/hash"],
    "base/json": ["base", "base/text"],
    # Arrays in memory, in the order in which programs read them.
    "base/arrays": ["base", "base/numbers"],
    # Command lines and terminals.
    "base/console": ["base", "base/text", "base/file"],
    "base/process": ["base", "base/text", "base/numbers", "base/file"],
    # Members of a farm and their roles: certificates and their authority.
    "base/keys": ["base", "base/text", "base/numbers", "base/hash", "base/file"],
    # A daemon and its port.
    "base/server": ["base", "base/text", "base/hash", "base/file", "base/console", "base/process", "base/keys"],
    # Descriptions of devices, for every part that measures on a device, chooses by one or keeps a
    # device's measurements.
    "device": [*_BASE],
    # Messages and services alone.
    "proto": [],
    # Runs compiled networks and nothing else; ships to users.
    "runtime": [*_BASE, "proto/cpu_abi.h"],
    "python/native": ["runtime/kiln_runtime.h"],
    # Communication of processes: channels, leases, limits of fields, a worker at its tracker.
    "rpc": [*_BASE, "base/keys", "device", "proto", "runtime/dtype.h"],
    # A daemon's port for pages: metrics, health, a dashboard.
    "rpc/http": [*_BASE, "base/keys", "rpc"],
    # Spans of trials, as a collector of OpenTelemetry takes them.
    "rpc/otlp": [*_BASE, "rpc"],
    # The compiler is a pipeline of folders: each sees the folders before it.
    "compiler/target": [*_BASE, "device"],
    "compiler/ir": [*_BASE],
    "compiler/arith": [*_BASE, "compiler/ir"],
    # Formulas in texts that people write.
    "compiler/formula": [*_BASE, "compiler/ir"],
    # Instructions of GPUs: what each computes, and its text.
    "compiler/instructions": [*_BASE, "compiler/ir", "compiler/arith"],
    "compiler/dag": [*_BASE, "compiler/ir", "compiler/arith", "compiler/instructions"],
    "compiler/schedule": [*_BASE, "compiler/ir", "compiler/arith", "compiler/instructions", "compiler/dag"],
    "compiler/lower": [
        *_BASE, "compiler/target", "compiler/ir", "compiler/arith", "compiler/instructions", "compiler/dag",
        "compiler/schedule",
    ],
    # Kernels that people wrote: their spaces, and the meaning of a point of a space.
    "compiler/handwritten": [
        *_BASE, "compiler/target", "compiler/ir", "compiler/arith", "compiler/dag", "compiler/formula",
    ],
    "compiler/features": [*_BASE, "device"] + _COMPILER,
    # Networks: graphs of operators that are written as compute DAGs.
    "graph": [*_BASE, "compiler/ir", "compiler/arith", "compiler/dag"],
    # Sources of graphs: files of other programs, networks by name.
    "frontend": [*_BASE, "compiler/ir", "compiler/dag", "graph"],
    "frontend/onnx": [*_BASE, "compiler/ir", "compiler/dag", "graph"],
    # A compiled program and its loader agree on cpu_abi.h, a plain C header.
    "compiler/codegen": [*_BASE, "proto/cpu_abi.h"] + _COMPILER,
    # One folder per language. Neither knows the other.
    "compiler/codegen/cuda": [*_BASE, "compiler/codegen"] + _COMPILER,
    "compiler/codegen/llvm": [*_BASE, "proto/cpu_abi.h", "compiler/codegen"] + _COMPILER,
    # The table of code generators.
    "compiler/codegen/backends": [*_BASE, "compiler/codegen", "compiler/codegen/cuda", "compiler/codegen/llvm"] + _COMPILER,
    # Sources that people wrote, for which Kiln has no program.
    "compiler/codegen/handwritten": [
        *_BASE, "proto/cpu_abi.h", "compiler/codegen", "compiler/codegen/cuda",
        # For tests, which load the compiled code.
        "compiler/codegen/backends/backends.h", "compiler/codegen/llvm/loaded_program_testing.h",
    ] + _COMPILER,
    # These two know nothing of programs: costmodel sees floats, store sees strings.
    "costmodel": [*_BASE, "device"],
    "store": [*_BASE, "device"],
    # Rows of the store as messages, for folders that see both.
    "store/wire": [*_BASE, "device", "proto", "rpc", "store"],
    # The search, in this order: spaces of schedules; drawing a schedule; breeding drawn schedules;
    # proposing candidates; deciding what is tuned next.
    "search/space": [*_BASE, "device"] + _COMPILER,
    "search/sampling": [*_BASE, "device", "search/space"] + _COMPILER,
    "search/evolution": [*_BASE, "device", "costmodel", "compiler/features", "search/space", "search/sampling"] + _COMPILER,
    # Schedules that people wrote, with knobs.
    "search/templates": [*_BASE, "costmodel", "search/space"] + _COMPILER,
    "search/policies": [
        *_BASE, "device", "costmodel", "compiler/features", "search/space", "search/sampling", "search/evolution",
        "search/templates",
    ] + _COMPILER,
    "search/tuning": [*_BASE, "device", "search/space", "search/policies"],
    # Training on earlier records: cost models as files, and the warm start of a job.
    "training": [
        *_BASE, "device", "costmodel", "compiler/features", "search/space", "search/policies", "search/templates", "store",
    ] + _COMPILER,
    # Choice of the schedule that a computation gets if nothing is searched.
    "search/choice": [*_BASE, "device", "search/space", "search/policies", "store"] + _COMPILER,
    # Calls about models over a store, for folders that see messages.
    "training/wire": [
        *_BASE, "device", "proto", "rpc", "costmodel", "training", "search/space", "search/policies", "store",
        "store/wire",
    ] + _COMPILER,
    # The services meet in proto/ and rpc/ and never include each other.
    "tracker": [*_BASE, "proto", "rpc", "rpc/http"],
    "builder": [*_BASE, "base/keys", "proto", "rpc", "rpc/http", "compiler"],
    "runner": [*_BASE, "base/keys", "device", "proto", "rpc", "rpc/http", "runtime"],
    # The scheduler is a pipeline of rooms: each sees those before it. These are the values that the
    # rooms share.
    "scheduler/values": [
        # The types of elements that it computes by itself, to check what others compute.
        "runtime/dtype.h",
        *_BASE, "device", "proto", "rpc", "search", "store", "store/wire",
    ] + _COMPILER,
    # Jobs, trials and workers in words, for pages and commands alike.
    "scheduler/words": [*_BASE, "proto", "compiler/target", "search/tuning"],
    # Candidates that are measured again: elites while a job goes on, finalists at its end.
    "scheduler/remeasure": [*_BASE, "device", "proto", "rpc", "search", "store", "scheduler/values"] + _COMPILER,
    # Trials and where they go: builders and runners, their calls, answers and faults.
    "scheduler/dispatch": [
        "runtime/dtype.h",
        # For tests, in which builders sign.
        "base/keys/keys_testing.h",
        *_BASE, "device", "proto", "rpc", "search", "store", "store/wire", "scheduler/values", "scheduler/remeasure",
    ] + _COMPILER,
    # Shares and limits of users: their time on devices, and who is next.
    "scheduler/fair_share": [*_BASE, "proto", "rpc", "store", "scheduler/values", "scheduler/dispatch"],
    # Code of users that their processes serve, as the search sees it.
    "scheduler/callbacks": [*_BASE, "proto", "costmodel", "search", "scheduler/values"] + _COMPILER,
    # A job from its specification to its last record.
    "scheduler/jobs": [
        *_BASE, "device", "proto", "rpc", "costmodel", "training", "training/wire", "search", "store", "store/wire",
        "compiler/features", "scheduler/values", "scheduler/remeasure", "scheduler/dispatch", "scheduler/callbacks",
        "scheduler/fair_share",
    ] + _COMPILER,
    # The RPCs.
    "scheduler/service": [
        *_BASE, "device", "proto", "rpc", "rpc/http", "costmodel", "training", "training/wire", "search", "store", "store/wire",
        *_BASE, "base/keys/identity.h", "device", "proto", "rpc", "costmodel", "training", "training/wire", "search", "store", "store/wire",
        "scheduler/values", "scheduler/remeasure", "scheduler/dispatch", "scheduler/callbacks", "scheduler/fair_share",
        "scheduler/jobs",
    ] + _COMPILER,
    # The library for programs: a scheduler, a farm of its own, the records of a file.
    "client": [
        *_BASE, "device", "proto", "rpc", "compiler", "store", "store/wire", "graph", "frontend", "frontend/onnx",
        # Models and choices over a store, as a scheduler has them.
        "costmodel/model_file.h", "training/wire", "search/choice",
        # The GPU of this machine.
        "runtime/cuda_driver.h", "runtime/cuda_gpus.h",
        # The cores that this process may use.
        "runtime/parallel_runtime.h",
        # Meanings of a log's keys, the schedule that a computation gets, and the tolerance of
        # answers.
        "scheduler/values/computations.h", "scheduler/service/choice_calls.h", "scheduler/values/answer_tolerance.h",
    ],
    # Jobs as a user describes them become what a scheduler takes, for every front end.
    "client/jobs": [
        *_BASE, "proto", "compiler", "graph", "frontend", "client", "costmodel/model_file.h", "search/policies",
        "search/templates",
    ],
    # Networks with the best records of their tasks, as files that run.
    "client/compile": [
        *_BASE, "device", "proto", "rpc", "compiler", "compiler/codegen/backends", "search/space", "search/policies",
        "search/choice", "store", "store/wire", "graph", "frontend", "frontend/onnx", "runtime", "client", "client/view",
    ],
    # The records that ship with Kiln, and who is asked after whom.
    "client/shipped": [
        *_BASE, "device", "proto", "rpc", "compiler", "search/space", "search/choice", "store", "store/wire", "client",
        "client/compile",
        # The name under which runners announce this machine's CPU.
        "runner/cpu_description.h",
    ],
    # A farm on this machine: its processes, and the file that describes them.
    "client/farm": [*_BASE, "base/keys", "proto", "client"],
    # Workers on machines that another scheduler gives out, as many as a farm's queue needs.
    "client/fleet": [*_BASE, "proto", "rpc", "client"],
    # Text for the answers of services, and for the compiler's output.
    "client/view": [
        *_BASE, "device", "proto", "compiler", "search/space", "search/tuning", "scheduler/words", "client",
    ],
    # Pages for browsers, beside the RPCs.
    "scheduler/pages": [
        *_BASE, "base/keys", "device", "proto", "rpc", "rpc/http", "store", "store/wire", "scheduler/values",
        "scheduler/words", "scheduler/jobs",
        "scheduler/service/concurrency_limiter.h",
    ] + _COMPILER,
    # The process.
    "scheduler": [
        *_BASE, "device", "proto", "rpc", "rpc/http", "rpc/otlp", "search", "store", "store/wire", "scheduler/values",
        "scheduler/fair_share", "scheduler/jobs", "scheduler/service", "scheduler/pages",
    ],
    # Checks of a machine, a device or a trial.
    "client/check": [
        *_BASE, "base/keys", "device", "proto", "rpc", "compiler", "search", "store", "store/wire", "graph", "runtime",
        "scheduler/words", "client", "client/view", "client/compile",
        # Networks are compared with their references as trials are.
        "runner/arguments.h", "runner/compare.h", "scheduler/values/answer_tolerance.h",
    ],
    "client/cli": [
        *_BASE, "base/keys", "device", "proto", "rpc", "compiler", "costmodel", "training", "training/wire", "search", "store", "store/wire", "graph",
        "frontend", "frontend/onnx", "scheduler/words", "client", "client/jobs", "client/view", "client/check", "client/compile", "client/farm",
        "client/fleet", "client/shipped", "runtime",
        # The services that the one binary starts, and the meanings of a log's keys. Nothing else of
        # the services.
        "tracker/daemon.h",
        "builder/daemon.h", "builder/child.h",
        "runner/daemon.h", "runner/child.h",
        "scheduler/daemon.h", "scheduler/database_lock.h", "scheduler/values/computations.h",
    ],
    # Examples belong to users and include nothing of ours.
    "examples": [],
    "tools": [*_BASE, "device", "costmodel", "search", "store", "compiler"],
    "tests": ["*"],
}

# Libraries that only some folders may include. All folders may include libraries that are not
# listed.
_SERVICES = [
    "base/server", "rpc", "store/wire", "training/wire", "tracker", "builder", "runner", "scheduler", "scheduler/values", "scheduler/remeasure",
    "scheduler/dispatch", "scheduler/callbacks", "scheduler/fair_share", "scheduler/jobs", "scheduler/service", "client", "client/check",
]
LIBRARIES = {
    # Command lines.
    "CLI": [
        "base/console", "base/process", "base/server", "rpc", "rpc/http", "builder", "runner", "scheduler", "tracker", "client/cli", "tools",
    ],
    "grpc": _SERVICES,
    "grpcpp": _SERVICES,
    "google/protobuf": ["base/file", "base/process", "frontend/onnx", "client/view", "client/cli", "rpc/otlp"] + _SERVICES,
    "llvm": ["compiler/codegen/llvm"],
    "llvm-c": ["compiler/codegen/llvm"],
    "lld": ["compiler/codegen/llvm"],
    "nvrtc.h": ["compiler/codegen/cuda"],
    "spdlog": ["base"],
    "openssl": ["base/hash", "base/keys", "base/server", "rpc/http"],
    "httplib.h": ["rpc/http", "rpc/otlp"],
    "prometheus": ["base/metrics"],
    "sqlite3.h": ["store"],
    "xgboost": ["costmodel"],
    "onnx": ["frontend/onnx"],
    "toml++": ["base/text"],
}

SOURCE = re.compile(r".*\.(h|hh|hpp|inc|c|cc|cpp|cu|cuh)$")
# Quoted and angled includes count alike, because <store/store.h> would compile as well.
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
# Tests and the files that only tests use may include any library.
TEST = re.compile(r".*_(test|testing|fuzz|bench)\.\w+$|.*/testing/.*")

# Folders that are not ours: bazel's links into its output, version control, documentation.
SKIPPED = re.compile(r"^(\..*|bazel-.*|docs|deploy|third_party)$")

# Headers that unit tests of any layer may include beside their own: the checks against the oracle.
SHARED_BY_TESTS = ["base/keys/authority_folder.h", "tests/schedules/check_program.h"]


def sources(root):
    """The paths of all source files below root, relative to it."""
    for folder, subfolders, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        if relative == ".":
            relative = ""
            subfolders[:] = [f for f in subfolders if not SKIPPED.match(f)]
        subfolders.sort()
        for name in sorted(files):
            path = os.path.join(relative, name)
            if SOURCE.match(name):
                yield path


def layer_of(path):
    """The entry of TABLE that the path belongs to, or None."""
    folder = os.path.dirname(path)
    while folder:
        if folder in TABLE:
            return folder
        folder = os.path.dirname(folder)
    return None


def matches(included, entries):
    """The entry that is a folder above `included`, or that header itself; else None.

    An entry that is a layer of its own stands for that layer alone, not for the layers below its folder.
    """
    for entry in entries:
        if entry == "*" or included == entry:
            return entry
        if included.startswith(entry + "/") and (entry not in TABLE or layer_of(included) == entry):
            return entry
    return None


def check_include(path, included, top_folders):
    """The reason why the source file `path` may not include `included`, or None."""
    layer = layer_of(path)
    allowed = TABLE[layer]
    is_test = TEST.match(path) or layer == "tests"
    library = matches(included, LIBRARIES)
    if library is not None:
        if is_test or layer in LIBRARIES[library]:
            return None
        return f"{library} is for {', '.join(LIBRARIES[library])} only"
    if included.split("/")[0] not in top_folders:
        # The header is a library's or the system's.
        return None
    if is_test and included in SHARED_BY_TESTS:
        return None
    target = layer_of(included)
    if target == layer or "*" in allowed or matches(included, allowed):
        return None
    if target is None:
        return "that folder is not in the layer table"
    return f"{layer} may include {', '.join(allowed) or 'nothing else'}"


def violations(root):
    """All violations below root, as lines of text."""
    paths = list(sources(root))
    top_folders = {p.split("/")[0] for p in paths} | {layer.split("/")[0] for layer in TABLE}
    for path in paths:
        if layer_of(path) is None:
            yield f"{path}: this folder is not in the layer table (tests/layers/layers.py)"
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            line = text.count("\n", 0, match.start()) + 1
            if "/" not in included and os.path.exists(os.path.join(root, os.path.dirname(path), included)):
                yield f"{path}:{line}: includes {included}: write the path from the top folder"
            elif reason := check_include(path, os.path.normpath(included), top_folders):
                yield f"{path}:{line}: includes {included}: {reason}"


def main():
    found = list(violations(sys.argv[1]))
    for line in found:
        print(line)
    count = sum(1 for _ in sources(sys.argv[1]))
    if count == 0:
        found.append("")
        print(f"no source file below {sys.argv[1]}")
    print(f"{count} source files, {len(found)} violations of the layer table")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
