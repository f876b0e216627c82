#!/bin/bash
# Finding: an option of one compilation by NVRTC stays in force for all later ones of the process.
#
# NVRTC hands -Xnvvm=-disable-nvvm-remat to its optimizer. A program that is compiled with the
# option in NVRTC 13.0 is another one, as expected. From then on the process compiles every program
# so, also without the option: the cubin of before does not come back. Other options behave: after
# -Xnvvm=-opt=0 the next compilation without it gives the cubin of before. NVRTC 13.5 refuses the
# same option at its first use, as "defined more than once". A process that compiles for several
# users, or tries options, needs a child process for each set of options of that kind.
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

cat >"$folder/stays.py" <<'PYTHON'
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


def cubin(*options):
    """The cubin, or the compiler's message."""
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"product.cu", 0, None, None) == 0
    texts = [b"--gpu-architecture=sm_90", b"--no-cache", *options]
    status = nvrtc.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts))
    found = text_of(program, "CUBIN" if status == 0 else "ProgramLog")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return found if status == 0 else "refused: " + found.rstrip(b"\0").decode().strip()


def say(what, text):
    print(f"NVRTC {major.value}.{minor.value}, {what}: {text}")


major, minor = ctypes.c_int(), ctypes.c_int()
assert nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
plain = {cubin() for _ in range(8)}
for option in (b"-Xnvvm=-opt=0", b"-Xnvvm=-disable-nvvm-remat"):
    found = cubin(option)
    if isinstance(found, str):
        say(option.decode(), found)
    else:
        say(option.decode(), "the same cubin" if found in plain else "another cubin")
    later = {cubin() for _ in range(8)}
    say("without it, 8 times", "as before" if later & plain else "never as before")
PYTHON

cd "$folder"
for version in 13.0.88 13.5.37; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "nvidia-cuda-nvrtc==$version"
  "$folder/$version/bin/python" "$folder/stays.py"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
NVRTC 13.0, -Xnvvm=-opt=0: another cubin
NVRTC 13.0, without it, 8 times: as before
NVRTC 13.0, -Xnvvm=-disable-nvvm-remat: another cubin
NVRTC 13.0, without it, 8 times: never as before
NVRTC 13.5, -Xnvvm=-opt=0: another cubin
NVRTC 13.5, without it, 8 times: as before
NVRTC 13.5, -Xnvvm=-disable-nvvm-remat: refused: libnvvm : error: -disable-nvvm-remat defined more than once
NVRTC 13.5, without it, 8 times: as before
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
