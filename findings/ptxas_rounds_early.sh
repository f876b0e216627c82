#!/bin/bash
# Finding: ptxas rounds the sums of wgmma in front of the wait for them.
#
# wgmma.mma_async computes beside the threads, and its sums may be read after wgmma.wait_group (PTX
# ISA, "wgmma.wait_group"). The kernel below waits until no group is under way and then rounds each
# sum to 16 bits by cvt.rn.f16.f32. For sm_90a ptxas 12.9, 13.0 and 13.5 round two sums by one
# instruction, F2FP. They put it at the end of the loop that makes the sums, in front of the wait
# for the last products (WARPGROUP.DEPBAR.LE gsb0, 0x0): the kernel rounds sums that are not yet
# there. An asm volatile between wait and rounding, with the sums as its operands, does not prevent
# it. A branch behind the wait, whose condition ptxas can't know, ends the basic block. All
# roundings then stand behind the wait.
#
# The script compiles the kernel by NVRTC, which contains ptxas, and reads the machine code by
# nvdisasm.
#
# Needs: x86-64, python3 with venv, and PyPI. No GPU. Ends with status 0 while the packages behave
# as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/sums.cu" <<'CUDA'
// A tile of 64 x 48 sums by 128 threads. Each sum is rounded to 16 bits, a bias is added, and the
// result is rounded again.
__device__ void settle(float (&sums)[24]) {
#pragma unroll
  for (int i = 0; i < 24; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
__device__ float rounded(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
extern "C" __global__ void __launch_bounds__(128)
    product(unsigned long long a, unsigned long long b, const float* __restrict__ bias, uint4* __restrict__ out) {
  extern __shared__ unsigned long long emptied[];
  float early[24], sums[24] = {};
#pragma unroll
  for (int i = 0; i < 24; ++i) early[i] = bias[i * 4 + threadIdx.x % 4];
#pragma unroll 2
  for (int k = 0; k < 12; ++k) {
    settle(sums);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
        "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23}, %24, %25, 1, 1, 1, 0, 0;"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]),
          "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]),
          "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]),
          "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23])
        : "l"(a + 32 * k), "l"(b + 32 * k)
        : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    settle(sums);
    // The products of the step before have read their factors.
    if (threadIdx.x % 32 == 0 && k > 0) {
      const auto barrier = static_cast<unsigned>(__cvta_generic_to_shared(&emptied[(k - 1) % 3]));
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    }
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#ifdef BLOCK_ENDS
  unsigned blocks;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  if (blocks == 0) asm volatile("trap;");
#endif
  settle(sums);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    unsigned quad[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = i * 8 + j * 2;
      const float x = rounded(sums[at]) + early[at], y = rounded(sums[at + 1]) + early[at + 1];
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(quad[j]) : "f"(y), "f"(x));
    }
    out[i * 128 + threadIdx.x] = make_uint4(quad[0], quad[1], quad[2], quad[3]);
  }
}
CUDA

cat >"$folder/rounds.py" <<'PYTHON'
import ctypes
import glob
import re
import subprocess
import sys

nvrtc = ctypes.CDLL(glob.glob(sys.prefix + "/lib/python*/site-packages/nvidia/**/libnvrtc.so*", recursive=True)[0])
with open("sums.cu", "rb") as file:
    SOURCE = file.read()


def machine_code(*options):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"sums.cu", 0, None, None) == 0
    texts = [b"--gpu-architecture=sm_90a", b"--no-cache", *options]
    assert nvrtc.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts)) == 0
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    cubin = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetCUBIN(program, cubin) == 0
    with open("sums.cubin", "wb") as file:
        file.write(cubin.raw)
    return subprocess.run([sys.argv[1], "-c", "sums.cubin"], check=True, capture_output=True, text=True).stdout


def early(code):
    """How many instructions round two sums, as the products leave them, in front of the last wait."""
    first = int(re.search(r"HGMMA\.64x48x16\.F32 R(\d+),", code)[1])
    front, _ = re.split(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x0 ", code)
    return sum(len(re.findall(rf"F2FP\.F16\.F32\.PACK_AB R\d+, R{i + 1}, R{i} ", front)) for i in range(first, first + 24, 2))


major, minor = ctypes.c_int(), ctypes.c_int()
assert nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
for what, options in (("one basic block", []), ("a block ends behind the wait", [b"-DBLOCK_ENDS"])):
    count = early(machine_code(*options))
    print(f"ptxas {major.value}.{minor.value}, {what}: {count} of 12 pairs of sums are rounded before the wait")
PYTHON

python3 -m venv "$folder/disassembler"
"$folder/disassembler/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvdisasm==13.5.37
nvdisasm=$(find "$folder/disassembler" -name nvdisasm -type f)
cd "$folder"
for package in nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvrtc==13.5.37; do
  python3 -m venv "$folder/$package"
  "$folder/$package/bin/pip" install -q --disable-pip-version-check "$package"
  "$folder/$package/bin/python" "$folder/rounds.py" "$nvdisasm"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
ptxas 12.9, one basic block: 12 of 12 pairs of sums are rounded before the wait
ptxas 12.9, a block ends behind the wait: 0 of 12 pairs of sums are rounded before the wait
ptxas 13.0, one basic block: 12 of 12 pairs of sums are rounded before the wait
ptxas 13.0, a block ends behind the wait: 0 of 12 pairs of sums are rounded before the wait
ptxas 13.5, one basic block: 12 of 12 pairs of sums are rounded before the wait
ptxas 13.5, a block ends behind the wait: 0 of 12 pairs of sums are rounded before the wait
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
