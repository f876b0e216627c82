#!/bin/bash
# Finding: NVRTC compiles one source with one list of options to several texts of PTX.
#
# A process that compiles the same CUDA source again and again, with the same options, gets other
# PTX now and then: two to five texts in ten compilations of the kernel below, a product of matrices
# whose operands are read one step ahead into registers. The texts differ in the numbers and the
# number of registers and in moves between them, even in length. The cubins of the same calls are
# mostly the same byte for byte; in some runs there were two of them. The compiler's cache is off
# (--no-cache). A cache whose key is the PTX, or a test that compares PTX with a kept text,
# therefore misses by chance, and a time that was measured belongs to one cubin, not to its source.
#
# Needs: x86-64, python3 with venv, and PyPI. No GPU. Ends with status 0 while the packages behave
# as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/product.cu" <<'CUDA'
// c = a * b, tiles of 32 x 32 by 64 threads; registers hold the operands of the next step.
extern "C" __global__ void __launch_bounds__(64) product(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ c) {
  __shared__ __align__(16) float as[32 * 32], bs[32 * 32];
  float sums[16] = {}, a_ahead[4], b_ahead[16];
  const int t = threadIdx.x;
  for (int k = 0; k < 8; ++k) {
    __syncthreads();
    for (int i = t; i < 256; i += 64) {
      reinterpret_cast<float4*>(as)[i] = a[(k * 32 + i / 8) * 64 + blockIdx.y * 8 + i % 8];
      reinterpret_cast<float4*>(bs)[i] = b[(k * 32 + i / 8) * 64 + blockIdx.x * 8 + i % 8];
    }
    __syncthreads();
    *reinterpret_cast<float2*>(&a_ahead[0]) = *reinterpret_cast<const float2*>(&as[t / 4 * 2]);
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      const float4 v = *reinterpret_cast<const float4*>(&bs[x * 4 + t % 4 * 8]);
      b_ahead[x * 4] = v.x;
      b_ahead[x * 4 + 1] = v.y;
      b_ahead[x * 4 + 2] = v.z;
      b_ahead[x * 4 + 3] = v.w;
    }
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      if (j < 31) {
        const float2 u = *reinterpret_cast<const float2*>(&as[(j + 1) * 32 + t / 4 * 2]);
        a_ahead[(j + 1) % 2 * 2] = u.x;
        a_ahead[(j + 1) % 2 * 2 + 1] = u.y;
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          const float4 v = *reinterpret_cast<const float4*>(&bs[(j + 1) * 32 + x * 4 + t % 4 * 8]);
          b_ahead[(j + 1) % 2 * 8 + x * 4] = v.x;
          b_ahead[(j + 1) % 2 * 8 + x * 4 + 1] = v.y;
          b_ahead[(j + 1) % 2 * 8 + x * 4 + 2] = v.z;
          b_ahead[(j + 1) % 2 * 8 + x * 4 + 3] = v.w;
        }
      }
#pragma unroll
      for (int y = 0; y < 2; ++y)
#pragma unroll
        for (int x = 0; x < 8; ++x) sums[y * 8 + x] += a_ahead[j % 2 * 2 + y] * b_ahead[j % 2 * 8 + x];
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    c[(blockIdx.y * 32 + t / 4 * 2 + i / 2) * 64 + blockIdx.x * 8 + t % 4 * 2 + i % 2] = make_float4(sums[i * 4], sums[i * 4 + 1], sums[i * 4 + 2], sums[i * 4 + 3]);
}
CUDA

cat >"$folder/several.py" <<'PYTHON'
import ctypes
import glob
import sys

library = next(path for path in glob.glob(sys.prefix + "/lib/python*/site-packages/nvidia/**/libnvrtc.so*", recursive=True))
nvrtc = ctypes.CDLL(library)
with open("product.cu", "rb") as file:
    SOURCE = file.read()


def text_of(program, kind):
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{kind}")(program, text) == 0
    return text.raw


def compiled():
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"product.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=sm_90", b"--no-cache")
    assert nvrtc.nvrtcCompileProgram(program, 2, options) == 0
    texts = text_of(program, "PTX"), text_of(program, "CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return texts


major, minor = ctypes.c_int(), ctypes.c_int()
assert nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
texts, cubins = set(), set()
# A second text appears within ten compilations as a rule.
for _ in range(100):
    ptx, cubin = compiled()
    texts.add(ptx)
    cubins.add(cubin)
    if len(texts) > 1:
        break
print(f"{len(texts)} texts of PTX, {len(cubins)} cubins", file=sys.stderr)
print(f"NVRTC {major.value}.{minor.value}, PTX of one source:", "always the same" if len(texts) == 1 else "several")
PYTHON

cd "$folder"
for version in 13.0.88 13.5.37; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "nvidia-cuda-nvrtc==$version"
  "$folder/$version/bin/python" "$folder/several.py"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
NVRTC 13.0, PTX of one source: several
NVRTC 13.5, PTX of one source: several
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
