"""What a call of a compiled program costs, beside other ways to call as little work.

usage: PYTHONPATH=PACKAGE call_overhead.py [--calls N] [--program FILE.kiln] [--library OP.so]

PACKAGE is what python/stage.sh makes. B[i: 8] = A[i] + A[i] of float32 is called N times (default 1,000,000) in each
way, the ways in turn in ten parts: Kiln with arrays of numpy and PyTorch, outputs given and allocated; the same library
by ctypes; the same program as a library for tvm-ffi; torch.add and numpy.add. PyTorch and apache-tvm-ffi are used where
they are installed. The table has nanoseconds of CPU time a call, of the fastest part and of all, the loop's own time
taken off, and the growth of the process's memory over all parts but the first.
"""
import argparse
import ctypes
import os
import platform
import tempfile
import time

import kiln
import numpy

PARTS = 10
EMPTY = "an empty function"
TEXT = "input A: float32[8]\nB[i: 8] = A[i] + A[i]\n"


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def loop(call, count):
    """Nanoseconds of this thread for `count` calls, the loop's own included."""
    start = time.thread_time_ns()
    for _ in range(count):
        call()
    return time.thread_time_ns() - start


def by_ctypes(net, a, b):
    """kiln_run_tensors with tensors that are made once, as cheap as ctypes can be."""
    library = kiln.library.library()
    held = [kiln.arrays.hold(array, tensor) for array, tensor in zip((a, b), net.inputs + net.outputs)]
    lists = [kiln.network._tensor_list([one]) for one in held]
    handle = net._handle
    return lambda: library.kiln_run_tensors(handle, lists[0], 1, lists[1], 1), held


def ways(net, library_path):
    a, b = (kiln.arrays.new_array(tensor, None) for tensor in net.inputs + net.outputs)
    a[:] = range(8)
    keep = []
    calls = {
        EMPTY: lambda: None,
        "Kiln, numpy, output given": lambda: net(a, out=b),
        "Kiln, numpy, output allocated": lambda: net(a),
        "numpy.add, output given": lambda: numpy.add(a, a, b),
    }
    calls["Kiln's library by ctypes, tensors made before"], held = by_ctypes(net, a, b)
    keep.append(held)
    try:
        import torch

        torch.set_num_threads(1)
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        calls[f"Kiln, PyTorch {torch.__version__}, output given"] = lambda: net(x, out=y)
        calls["Kiln, PyTorch, output allocated"] = lambda: net(x)
        calls["torch.add, output given"] = lambda: torch.add(x, x, out=y)
        calls["torch.add, output allocated"] = lambda: torch.add(x, x)
    except ImportError:
        x = None
    try:
        import tvm_ffi

        main = tvm_ffi.load_module(library_path).get_function("main")
        s, t = tvm_ffi.from_dlpack(a), tvm_ffi.from_dlpack(b)
        calls[f"tvm-ffi {tvm_ffi.__version__}, its tensors, output given"] = lambda: main(s, t)
        if x is not None:
            calls["tvm-ffi, PyTorch, output given"] = lambda: main(x, y)
        calls["Kiln, tvm-ffi's tensors, output given"] = lambda: net(s, out=t)
    except ImportError:
        pass
    for name, call in calls.items():
        b[:] = 0
        call()
        wrote = "given" in name or "ctypes" in name
        assert not wrote or b.tolist() == [2 * i for i in range(8)], (name, b)
    return calls, keep


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--program", help="a program of this computation that is compiled already")
    parser.add_argument("--library", help="the same as a library for tvm-ffi")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db, library = os.path.join(folder, "none.db"), options.library
        if options.program:
            net = kiln.load(options.program)
        else:
            net = kiln.compile(kiln.computation(TEXT), target="llvm", db=db)
        if not library:
            library = os.path.join(folder, "op.so")
            kiln.export(kiln.computation(TEXT), library, target="llvm", db=db)
        calls, _keep = ways(net, library)
        spent = {name: [] for name in calls}
        count = max(1, options.calls // PARTS)
        for part in range(PARTS):
            for name, call in calls.items():
                spent[name].append(loop(call, count))
            if part == 0:
                before = resident_kib()
        grown = resident_kib() - before
    print(f"{kiln.version()}, Python {platform.python_version()}, numpy {numpy.__version__}, "
          f"{count * PARTS} calls in each way")
    print(f"{'ns, best part':>14} {'ns, all':>9}")
    empty = spent.pop(EMPTY)
    for name, times in spent.items():
        best, mean = min(times) - min(empty), (sum(times) - sum(empty)) / PARTS
        print(f"{best / count:14.0f} {mean / count:9.0f}  {name}")
    print(f"memory grew by {grown} KiB in {count * (PARTS - 1) * len(calls)} calls")


if __name__ == "__main__":
    main()
