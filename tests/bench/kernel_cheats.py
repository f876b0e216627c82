#!/usr/bin/python3
"""Hand-written kernels that cheat, each tried as a candidate: is it refused, and with which words.

usage: kernel_cheats.py KILN [--target cuda|llvm] [--extent N] [--folder DIR]

A matrix product whose parameter CHEAT says how it cheats; some values are honest. Runs a job over all of them and prints
a Markdown table: the kernel, whether it was refused, its reading, and what the runner says. A cheat that has no
refusal, but a reading no shorter than that of the honest kernel, has gained nothing. Ends with 1 if a cheat gets
through or an honest kernel is refused.

The target is `cuda` if it is not given; with `llvm` the same cheats, as far as a kernel can do them there, are tried on
this machine's CPU. KILN is a program kiln, for instance that of the bundle.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HONEST, CHEAT, CPU_ONLY = "honest", "cheat", "cheat of a CPU"

# The kernels in the order of the values of CHEAT.
KERNELS = [
    (HONEST, "computes in each call"),
    (CHEAT, "gives the answer of its first call again"),
    (CHEAT, "the same, if the first element of each input is that of the first call"),
    (CHEAT, "the same, if a sample of 64 elements of each input is"),
    (CHEAT, "computes only if its output begins with NaN"),
    (CHEAT, "computes only if its output begins like poison"),
    (CHEAT, "overwrites an element of an input in each call"),
    (CHEAT, "leaves work for later: computes a sixteenth of the rows in each call"),
    (CHEAT, "does nothing after its first call"),
    (CHEAT, "keeps its last answer, and compares all elements of the inputs"),
    (CHEAT, "computes only if it finds poison anywhere in its output"),
    (CHEAT, "rests if its last call ended less than a short time ago"),
    (CHEAT, "rests if its last call ended less than a long time ago"),
    (CHEAT, "the same, and gives its last answer then"),
    (CHEAT, "overwrites an element of an input in its fifth call"),
    (CHEAT, "leaves the work to another kernel or thread, which it starts"),
    (CPU_ONLY, "changes the clock of its process"),
    (HONEST, "computes in each call in another order, and counts its calls"),
]

# State is in globals, which live as long as the loaded program. `now` is in nanoseconds.
STATE = """
GLOBAL float kept[M * N];
GLOBAL float seen[128];
GLOBAL float kept_a[M * K], kept_b[K * N];
GLOBAL unsigned calls;
GLOBAL unsigned long long last_end;

DEVICE int same_sample(const float* A, const float* B) {
  for (int i = 0; i < 64; ++i) {
    if (seen[i] != A[i * (M * K / 64)] || seen[64 + i] != B[i * (K * N / 64)]) return 0;
  }
  return 1;
}
DEVICE int is_poison(const float* element) {
  const unsigned char* bytes = (const unsigned char*)element;
  return bytes[0] == bytes[1] && bytes[1] == bytes[2] && bytes[2] == bytes[3] && bytes[0] != 0;
}
/* Whether the program takes its answer for known, by what one thread can look at. */
DEVICE int is_known(const float* A, const float* B, const float* C) {
  if (CHEAT == 1 || CHEAT == 8) return calls > 0;
  if (CHEAT == 2) return calls > 0 && seen[0] == A[0] && seen[64] == B[0];
  if (CHEAT == 3) return calls > 0 && same_sample(A, B);
  if (CHEAT == 4) return C[0] == C[0];
  if (CHEAT == 5) return !is_poison(C);
  if (CHEAT == 11) return calls > 0 && now() - last_end < SHORT_NS;
  if (CHEAT == 12 || CHEAT == 13) return calls > 0 && now() - last_end < LONG_NS;
  return 0;
}
/* Whether element `at` of the output is given from what was kept. */
#define GIVES (CHEAT == 1 || CHEAT == 2 || CHEAT == 3 || CHEAT == 9 || CHEAT == 13)

DEVICE float product(const float* A, const float* B, int row, int column) {
  float sum = 0, other = 0;
  if (CHEAT == 17) {
    for (int k = K - 2; k >= 0; k -= 2) {
      sum += A[row * K + k] * B[k * N + column];
      other += A[row * K + k + 1] * B[(k + 1) * N + column];
    }
    return sum + other;
  }
  for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
  return sum;
}
DEVICE void element(const float* A, const float* B, float* C, int row, int column, int known) {
  const int at = row * N + column;
  if (known) {
    if (GIVES) C[at] = kept[at];
    return;
  }
  if (CHEAT == 7 && row % 16 != (int)(calls % 16)) return;
  const float value = product(A, B, row, column);
  C[at] = value;
  if (GIVES) kept[at] = value;
}
/* One thread does this when all elements are done. */
DEVICE void end_call(const float* A, const float* B) {
  if ((CHEAT == 2 || CHEAT == 3) && calls == 0) {
    for (int i = 0; i < 64; ++i) {
      seen[i] = A[i * (M * K / 64)];
      seen[64 + i] = B[i * (K * N / 64)];
    }
  }
  ++calls;
  if (CHEAT == 6 || (CHEAT == 14 && calls == 5)) ((float*)A)[M * K - 3] += 1;
  last_end = now();
}
"""

CUDA = """
#define GLOBAL __device__
#define DEVICE __device__ static
#define SHORT_NS 2000
#define LONG_NS 15000
DEVICE unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
""" + STATE + """
__device__ unsigned blocks_done;

/* Compares the rows and columns that this block needs with those of the last call, and keeps them. */
DEVICE int block_is_known(const float* A, const float* B, const float* C) {
  const int thread = threadIdx.y * 16 + threadIdx.x;
  int same = 1;
  if (CHEAT == 9) {
    for (int i = thread; i < 16 * K; i += 256) {
      const int a = blockIdx.y * 16 * K + i, b = i / 16 * N + blockIdx.x * 16 + i % 16;
      same &= kept_a[a] == A[a] && kept_b[b] == B[b];
    }
    return __syncthreads_and(same) && calls > 0;
  }
  const int at = (blockIdx.y * 16 + threadIdx.y) * N + blockIdx.x * 16 + threadIdx.x;
  return __syncthreads_and(!is_poison(C + at));
}
#if CHEAT == 15
__global__ void later(const float* A, const float* B, float* C) {
  element(A, B, C, blockIdx.x, threadIdx.x, 0);
}
#endif
__global__ void product_of(const float* A, const float* B, float* C) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
#if CHEAT == 15
  if (blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0) later<<<M, N>>>(A, B, C);
  return;
#endif
  __shared__ int known;
  if (threadIdx.x + threadIdx.y == 0) known = is_known(A, B, C);
  __syncthreads();
  const int all_known = CHEAT == 9 || CHEAT == 10 ? block_is_known(A, B, C) : known;
  element(A, B, C, row, column, all_known);
  __threadfence();
  __syncthreads();
  __shared__ int is_last;
  if (threadIdx.x + threadIdx.y == 0)
    is_last = atomicAdd(&blocks_done, 1) == gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (!is_last) return;
  if (CHEAT == 9 && !all_known) {
    for (int i = threadIdx.y * 16 + threadIdx.x; i < M * K; i += 256) kept_a[i] = A[i];
    for (int i = threadIdx.y * 16 + threadIdx.x; i < K * N; i += 256) kept_b[i] = B[i];
  }
  if (threadIdx.x + threadIdx.y == 0) {
    blocks_done = 0;
    end_call(A, B);
  }
}
"""

C = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define GLOBAL static
#define DEVICE static
/* Calls of a batch follow each other at once; between others inputs change and threads wake. */
#define SHORT_NS 1000
#define LONG_NS 1000000
DEVICE unsigned long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}
""" + STATE + """
DEVICE int all_known(const float* A, const float* B, const float* C) {
  if (CHEAT == 9)
    return calls > 0 && memcmp(kept_a, A, sizeof(kept_a)) == 0 && memcmp(kept_b, B, sizeof(kept_b)) == 0;
  if (CHEAT == 10) {
    for (int i = 0; i < M * N; ++i) {
      if (is_poison(C + i)) return 0;
    }
    return 1;
  }
  return is_known(A, B, C);
}
#if CHEAT == 16
/* Tells a fifth of the time that has passed. */
static int slow_clock(clockid_t clock, struct timespec* time) {
  static int64_t start;
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  const int64_t ns = time->tv_sec * 1000000000LL + time->tv_nsec;
  if (start == 0) start = ns;
  const int64_t told = start + (ns - start) / 5;
  time->tv_sec = told / 1000000000LL;
  time->tv_nsec = told % 1000000000LL;
  return 0;
}
static void patch_clock(void) {
  unsigned char* const at = dlsym(RTLD_DEFAULT, "clock_gettime");
  void* const page = (void*)((uintptr_t)at & ~(uintptr_t)4095);
  if (at == NULL || mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  const void* const target = (const void*)slow_clock;
  memcpy(at, "\\x48\\xb8", 2);
  memcpy(at + 2, &target, 8);
  memcpy(at + 10, "\\xff\\xe0", 2);
}
#endif
#if CHEAT == 15
static const float *later_a, *later_b;
static float* later_c;
static void* later(void* unused) {
  (void)unused;
  for (int row = 0; row < M; ++row)
    for (int column = 0; column < N; ++column) element(later_a, later_b, later_c, row, column, 0);
  return NULL;
}
#endif
void product_of(const float* A, const float* B, float* C, int64_t block) {
  (void)block;
#if CHEAT == 15
  pthread_t thread;
  later_a = A, later_b = B, later_c = C;
  if (pthread_create(&thread, NULL, later, NULL) == 0) pthread_detach(thread);
  return;
#endif
#if CHEAT == 16
  if (calls == 0) patch_clock();
#endif
  const int known = all_known(A, B, C);
  for (int row = 0; row < M; ++row)
    for (int column = 0; column < N; ++column) element(A, B, C, row, column, known);
  if (CHEAT == 9 && !known) {
    memcpy(kept_a, A, sizeof(kept_a));
    memcpy(kept_b, B, sizeof(kept_b));
  }
  end_call(A, B);
}
"""


def is_tried(kind, on_gpu):
    return kind != CPU_ONLY or not on_gpu


def space_text(extent, on_gpu):
    shape = ('grid = ["N // 16", "M // 16"]\nblock = ["16", "16"]\narguments = ["input0", "input1", "output0"]'
             if on_gpu else 'grid = ["1"]\narguments = ["input0", "input1", "output0", { block = "x" }]')
    values = [number for number, (kind, _) in enumerate(KERNELS) if is_tried(kind, on_gpu)]
    return f"""kernel = "product_of"
operator = "matmul"
args = "{extent},{extent},{extent}"
{shape}

[constants]
M = "extent(input0, 0)"
K = "extent(input0, 1)"
N = "extent(input1, 1)"

[parameters]
CHEAT = {values}
"""


def run(kiln, target, extent, folder):
    on_gpu = target.startswith("cuda")
    source = os.path.join(folder, "cheats.cu" if on_gpu else "cheats.c")
    space = os.path.join(folder, "cheats.toml")
    for path, text in ((source, CUDA if on_gpu else C), (space, space_text(extent, on_gpu))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    words = [kiln, "tune", source, "--space", space, "--policy", "template.grid", "--trials", str(len(KERNELS) + 1),
             "--no-warm-start", "--finalists", "0", "--json", "--target", target,
             "--db", os.path.join(folder, "cheats.db")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {int(e["parameters"]["CHEAT"]): e for e in events if e["event"] == "trial" and "parameters" in e}
    if not found:
        sys.exit(f"kernel_cheats.py: {' '.join(words)} ended with {done.returncode} and has no trials")
    return found


def outcome(kind, event, honest_s):
    """Returns what became of a kernel, and whether that is right."""
    refused = event["error"] != "NO_ERROR"
    if kind == HONEST:
        return ("refused", False) if refused else ("passes", True)
    if refused:
        return "refused", True
    # Readings of one kernel differ by noise.
    if honest_s and event["cost_s"] >= 0.75 * honest_s:
        return "gains nothing", True
    return "GETS THROUGH", False


def report(found, on_gpu):
    print("| the kernel | what becomes of it | reading, us | what is said |\n|---|---|---|---|")
    mistakes = []
    honest = [found[number]["cost_s"] for number, (kind, _) in enumerate(KERNELS)
              if kind == HONEST and number in found and found[number]["error"] == "NO_ERROR"]
    # A busy machine makes readings longer.
    honest_s = min(honest, default=None)
    for number, (kind, what) in enumerate(KERNELS):
        if not is_tried(kind, on_gpu):
            continue
        event = found.get(number)
        if event is None:
            mistakes.append(f"'{what}' was not tried")
            continue
        became, is_right = outcome(kind, event, honest_s)
        reading = f"{1e6 * event['cost_s']:.2f}" if event["error"] == "NO_ERROR" else ""
        said = " ".join((event.get("message") or event["error"]).split()).replace("|", "\\|")
        print(f"| {what} | {became} | {reading} | {said[:300]} |")
        if not is_right:
            mistakes.append(f"{kind} kernel '{what}': {became} {reading}")
    return mistakes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kiln")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--extent", type=int, help="a multiple of 16, from 32 [cuda: 512, llvm: 64]")
    parser.add_argument("--folder", help="keeps the kernels and the records here")
    arguments = parser.parse_args()
    on_gpu = arguments.target.startswith("cuda")
    extent = arguments.extent or (512 if on_gpu else 64)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or temporary
        os.makedirs(folder, exist_ok=True)
        mistakes = report(run(arguments.kiln, arguments.target, extent, folder), on_gpu)
    for mistake in mistakes:
        print(f"kernel_cheats.py: {mistake}", file=sys.stderr)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
