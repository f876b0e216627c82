"""Tunes a matrix product whose candidates are compiled here, with flags of one's own.

usage: own_build.py [--trials N] [--size N] [--target llvm|cuda] [FLAG ...]

Kiln chooses the schedules and generates their code; this process makes the binaries. Code for a CPU
is LLVM IR, which LLVM 19 or newer compiles (on Debian: apt-get install llvm-19 gcc, or clang-19).
CUDA C is compiled by NVRTC (pip install "kiln[cuda]", or a toolkit). The flags are those of `opt`
and `llc`, of `clang`, or of NVRTC. Prints the best time beside that of Kiln's own compiler.
"""

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import tempfile

import kiln
from kiln.farm import program

# The oldest LLVM that reads the text of the LLVM in Kiln.
OLDEST_LLVM = 19


def find_tool(name):
    """The newest tool of LLVM of this name that reads Kiln's text; None = there is none."""
    for version in range(OLDEST_LLVM + 4, OLDEST_LLVM - 1, -1):
        path = shutil.which(f"{name}-{version}")
        if path:
            return path
    path = shutil.which(name)
    if path is None:
        return None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)", told)
    return path if found and int(found.group(1)) >= OLDEST_LLVM else None


def compilers():
    """The commands that make an object file of IR, as lists without their files; None = none here."""
    clang, opt, llc = (find_tool(name) for name in ("clang", "opt", "llc"))
    if clang:
        return [[clang, "-c", "-O2", "-fPIC", "-Wno-override-module", "-x", "ir"]]
    if opt and llc:
        return [[opt, "-O2"], [llc, "-O2", "-relocation-model=pic", "-filetype=obj"]]
    return None


def run(command, candidate):
    """Runs a compiler; what it says is the error of the candidate."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"task {candidate.task}: {error.stderr or error}") from error


def build_for_cpu(candidate, flags=()):
    """A shared object of LLVM IR. It needs libm and nothing else."""
    commands = compilers()
    if commands is None:
        raise RuntimeError(f"found no clang, and no opt and llc, of LLVM {OLDEST_LLVM} or newer")
    with tempfile.TemporaryDirectory(prefix="own-build.") as folder:
        made = os.path.join(folder, "0.ll")
        with open(made, "w", encoding="utf-8") as file:
            file.write(candidate.source)
        for number, command in enumerate(commands, 1):
            last, made = made, os.path.join(folder, f"{number}.o")
            run([*command, *flags, last, "-o", made], candidate)
        library = os.path.join(folder, "program.so")
        run(["cc", "-shared", "-o", library, made, "-lm"], candidate)
        with open(library, "rb") as file:
            return file.read()


def nvrtc():
    """NVRTC of PyPI's package or a toolkit."""
    return ctypes.CDLL(program.nvrtc().get("KILN_NVRTC") or os.environ.get("KILN_NVRTC")
                       or "libnvrtc.so")


def build_for_gpu(candidate, flags=()):
    """A cubin of CUDA C."""
    library, handle, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    options = ["--std=c++17", f"--gpu-architecture={candidate.architecture}", *flags]
    texts = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))

    def check(error, what):
        if error == 0:
            return
        library.nvrtcGetProgramLogSize(handle, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(handle, log)
        raise RuntimeError(f"{what} of NVRTC has error {error}: {log.value.decode()}")

    source = candidate.source.encode()
    check(library.nvrtcCreateProgram(ctypes.byref(handle), source, b"kernel.cu", 0, None, None),
          "creation")
    try:
        check(library.nvrtcCompileProgram(handle, len(options), texts), "compilation")
        check(library.nvrtcGetCUBINSize(handle, ctypes.byref(size)), "size")
        binary = ctypes.create_string_buffer(size.value)
        check(library.nvrtcGetCUBIN(handle, binary), "cubin")
        return binary.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(handle))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--target", choices=("llvm", "cuda"), default="llvm")
    options, flags = parser.parse_known_args()
    is_gpu = options.target == "cuda"
    if not is_gpu and compilers() is None:
        raise SystemExit(f"found no clang, and no opt and llc, of LLVM {OLDEST_LLVM} or newer: on "
                         "Debian, apt-get install llvm-19 gcc")
    build = build_for_gpu if is_gpu else build_for_cpu
    served = kiln.Served(build=lambda candidate: build(candidate, flags))
    with (
        tempfile.TemporaryDirectory(prefix="own-build.") as folder,
        kiln.local(os.path.join(folder, "kiln.db"), device="cuda" if is_gpu else "cpu") as client,
    ):
        for name, own in (("this process", served), ("Kiln", None)):
            job = client.tune(
                kiln.op("matmul", options.size, options.size, options.size), target=options.target,
                trials=options.trials, no_warm_start=True, build_timeout_ms=60_000, served=own,
                verbose=0)
            best = client.best(job)
            if best is None:
                failed = next(client.records(job=job.id, errors=True))
                raise SystemExit(f"{name} compiled nothing that runs: {failed.message}")
            print(f"compiled by {name}: {best.cost_s * 1e6:.2f} us")
    cost = served.costs["build"]
    print(f"{cost.calls} builds of this process took {cost.seconds / cost.calls:.3f} s each")


if __name__ == "__main__":
    main()
