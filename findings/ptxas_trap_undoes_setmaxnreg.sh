#!/bin/bash
# Finding: a trap makes ptxas keep to the registers that a kernel had before setmaxnreg.
#
# Warps may take registers over from others by setmaxnreg.inc (PTX ISA, "setmaxnreg"), and ptxas
# then gives them as many. The kernel below has 384 threads, so 168 registers each; the warps that
# compute ask for 240, and hold some 200 values. Without the branch in their loop, or with one that
# ends the thread by exit, nothing is spilled. If the branch has a trap in it, ptxas 12.9, 13.0 and
# 13.5 store values to the stack at each iteration, though the trap is never reached: as if
# setmaxnreg were not there. An assertion of a program's own is such a branch.
#
# The script compiles the kernel by NVRTC, which contains ptxas, and reads what ptxas says of
# spilled registers.
#
# Needs: x86-64, python3 with venv, and PyPI. No GPU. Ends with status 0 while the packages behave
# as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/spills.py" <<'PYTHON'
import ctypes
import glob
import re
import sys

nvrtc = ctypes.CDLL(glob.glob(sys.prefix + "/lib/python*/site-packages/nvidia/**/libnvrtc.so*", recursive=True)[0])

SUMS, KEPT = 128, 64
OPERANDS = ", ".join(f"%{i}" for i in range(SUMS))
VALUES = ", ".join(f'"+f"(sums[{i}])' for i in range(SUMS))
SOURCE = f"""
__device__ void settle(float (&sums)[{SUMS}]) {{
#pragma unroll
  for (int i = 0; i < {SUMS}; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}}
extern "C" __global__ void __launch_bounds__(384, 1)
    product(unsigned long long a, unsigned long long b, const float* in, float* out) {{
  if (threadIdx.x >= 256) {{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    return;
  }}
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  float kept[{KEPT}], sums[{SUMS}] = {{}};
#pragma unroll
  for (int i = 0; i < {KEPT}; ++i) kept[i] = in[i * 256 + threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < 12; ++k) {{
    settle(sums);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{OPERANDS}}}, %{SUMS}, %{SUMS + 1}, 1, 1, 1, 0, 0;"
                 : {VALUES} : "l"(a + 32 * k), "l"(b + 32 * k) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#ifdef BRANCH
    unsigned blocks;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
    if (blocks == 0) asm volatile(BRANCH);
#endif
    settle(sums);
#pragma unroll
    for (int i = 0; i < {KEPT}; ++i) kept[i] = kept[i] * sums[2 * i] + sums[2 * i + 1];
  }}
#pragma unroll
  for (int i = 0; i < {KEPT}; ++i) out[i * 256 + threadIdx.x] = kept[i];
#pragma unroll
  for (int i = 0; i < {SUMS}; ++i) out[({KEPT} + i) * 256 + threadIdx.x] = sums[i];
}}
""".encode()


def spilled(*options):
    """The bytes that ptxas stores to the stack."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"product.cu", 0, None, None) == 0
    texts = [b"--gpu-architecture=sm_90a", b"--no-cache", b"--ptxas-options=-v", *options]
    assert nvrtc.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts)) == 0
    assert nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)) == 0
    log = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetProgramLog(program, log) == 0
    return int(re.search(rb"(\d+) bytes spill stores", log.raw)[1])


major, minor = ctypes.c_int(), ctypes.c_int()
assert nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
for what, options in (("no branch", []), ("a branch to exit", [b'-DBRANCH="exit;"']),
                      ("a branch to a trap", [b'-DBRANCH="trap;"'])):
    count = spilled(*options)
    print(f"ptxas {major.value}.{minor.value}, {what}: {'registers are spilled' if count else 'nothing is spilled'}")
PYTHON

cd "$folder"
for package in nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvrtc==13.5.37; do
  python3 -m venv "$folder/$package"
  "$folder/$package/bin/pip" install -q --disable-pip-version-check "$package"
  "$folder/$package/bin/python" "$folder/spills.py"
done | tee "$folder/seen"

for version in 12.9 13.0 13.5; do
  echo "ptxas $version, no branch: nothing is spilled"
  echo "ptxas $version, a branch to exit: nothing is spilled"
  echo "ptxas $version, a branch to a trap: registers are spilled"
done >"$folder/expected"
diff "$folder/expected" "$folder/seen" && echo "as stated"
