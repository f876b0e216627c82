#!/usr/bin/python3
"""Hand-written kernels that cheat, each tried as a candidate: what the runner says of it.

usage: kernel_cheats.py KILN [--target TARGET] [--extent N] [--folder DIR]

A matrix product whose parameter CHEAT says how it cheats; 0 is the honest one. Runs a job over all of them and prints a
Markdown table: the kernel's reading, if it has one, and the reason why it was refused. Fails if the honest kernel was
refused, or if a cheat has a reading below a third of the honest one's. The target is `cuda` if it is not given; with
`llvm` the same cheats are tried on this machine's CPU.

On a GPU, with the bundle's binary:  tests/bench/kernel_cheats.py ./kiln
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

CHEATS = [
    "none: computes in each call",
    "computes in its first call and gives that answer again",
    "the same, if the first elements of the inputs are those of the answer",
    "the same, if a sample of 64 elements of each input is",
    "computes only if its output is NaN",
    "computes only if the first element of its output looks like poison",
    "overwrites an element of an input",
    "leaves work for later: computes a sixteenth of the rows in each call",
    "does nothing after its first call",
]

# `ROW` and `COLUMN` are the element of this thread or turn of the loop. State is in globals, which
# live as long as the loaded program.
STATE = """
GLOBAL float kept[M * N];
GLOBAL float seen[128];
GLOBAL unsigned calls;

DEVICE int same_sample(const float* A, const float* B) {
  for (int i = 0; i < 64; ++i) {
    if (seen[i] != A[i * (M * K / 64)] || seen[64 + i] != B[i * (K * N / 64)]) return 0;
  }
  return 1;
}
DEVICE int is_poison(const float* element) {
  const unsigned char* bytes = (const unsigned char*)element;
  return bytes[0] == bytes[1] && bytes[1] == bytes[2] && bytes[2] == bytes[3];
}
/* Whether the program takes its answer for known. */
DEVICE int is_known(const float* A, const float* B, const float* C) {
  if (CHEAT == 1 || CHEAT == 8) return calls > 0;
  if (CHEAT == 2) return calls > 0 && seen[0] == A[0] && seen[64] == B[0];
  if (CHEAT == 3) return calls > 0 && same_sample(A, B);
  if (CHEAT == 4) return C[0] == C[0];
  if (CHEAT == 5) return !is_poison(C);
  return 0;
}
DEVICE float product(const float* A, const float* B, int row, int column) {
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
  return sum;
}
DEVICE void element(const float* A, const float* B, float* C, int row, int column, int known) {
  const int at = row * N + column;
  if (known) {
    if (CHEAT <= 3) C[at] = kept[at];
    return;
  }
  if (CHEAT == 7 && row % 16 != (int)(calls % 16)) return;
  kept[at] = C[at] = product(A, B, row, column);
}
DEVICE void end_call(const float* A, const float* B) {
  for (int i = 0; i < 64; ++i) {
    seen[i] = A[i * (M * K / 64)];
    seen[64 + i] = B[i * (K * N / 64)];
  }
  if (CHEAT == 6) ((float*)A)[5] += 1;
  ++calls;
}
"""

CUDA = """
#define GLOBAL __device__
#define DEVICE __device__ static
""" + STATE + """
__device__ unsigned blocks_done;
__global__ void product_of(const float* A, const float* B, float* C) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  __shared__ int known;
  if (threadIdx.x + threadIdx.y == 0) known = is_known(A, B, C);
  __syncthreads();
  element(A, B, C, row, column, known);
  __syncthreads();
  if (threadIdx.x + threadIdx.y == 0) {
    __threadfence();
    if (atomicAdd(&blocks_done, 1) == gridDim.x * gridDim.y - 1) {
      blocks_done = 0;
      end_call(A, B);
    }
  }
}
"""

C = """
#include <stdint.h>
#define GLOBAL static
#define DEVICE static
""" + STATE + """
void product_of(const float* A, const float* B, float* C, int64_t block) {
  (void)block;
  const int known = is_known(A, B, C);
  for (int row = 0; row < M; ++row)
    for (int column = 0; column < N; ++column) element(A, B, C, row, column, known);
  end_call(A, B);
}
"""


def space_text(extent, on_gpu):
    shape = ('grid = ["N // 16", "M // 16"]\nblock = ["16", "16"]\narguments = ["input0", "input1", "output0"]'
             if on_gpu else 'grid = ["1"]\narguments = ["input0", "input1", "output0", { block = "x" }]')
    return f"""kernel = "product_of"
operator = "matmul"
args = "{extent},{extent},{extent}"
{shape}

[constants]
M = "extent(input0, 0)"
K = "extent(input0, 1)"
N = "extent(input1, 1)"

[parameters]
CHEAT = {list(range(len(CHEATS)))}
"""


def run(arguments, folder):
    on_gpu = arguments.target.startswith("cuda")
    source = os.path.join(folder, "cheats.cu" if on_gpu else "cheats.c")
    space = os.path.join(folder, "cheats.toml")
    for path, text in ((source, CUDA if on_gpu else C), (space, space_text(arguments.extent, on_gpu))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    words = [arguments.kiln, "tune", source, "--space", space, "--policy", "template.grid", "--trials",
             str(len(CHEATS) + 1), "--no-warm-start", "--json", "--target", arguments.target,
             "--db", os.path.join(folder, "cheats.db")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {int(e["parameters"]["CHEAT"]): e for e in events if e["event"] == "trial" and "parameters" in e}
    if not found:
        sys.exit(f"kernel_cheats.py: {' '.join(words)} ended with {done.returncode} and has no trials")
    return found


def report(found):
    print("| the kernel | reading, us | what the runner says |\n|---|---|---|")
    mistakes = []
    honest_s = found[0]["cost_s"] if 0 in found else None
    for number, what in enumerate(CHEATS):
        event = found.get(number)
        if event is None:
            mistakes.append(f"'{what}' was not tried")
            continue
        cost_s = event["cost_s"] if event["error"] == "NO_ERROR" else None
        reading = f"{1e6 * cost_s:.2f}" if cost_s else "refused"
        print(f"| {what} | {reading} | {event.get('message', '') or event['error']} |")
        if number > 0 and cost_s and honest_s and cost_s < honest_s / 3:
            mistakes.append(f"'{what}' has a reading of {1e6 * cost_s:.2f} us")
    if not honest_s:
        mistakes.append("the honest kernel was refused")
    return mistakes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kiln")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--extent", type=int, default=512)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        mistakes = report(run(arguments, arguments.folder or temporary))
    for mistake in mistakes:
        print(f"kernel_cheats.py: {mistake}", file=sys.stderr)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
