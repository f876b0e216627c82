#include "compiler/codegen/cuda/emulation_testing.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "compiler/codegen/cuda/emulation_bulk_testing.h"
#include "compiler/codegen/cuda/emulation_warpgroup_testing.h"
#include "compiler/ir/interpreter.h"

namespace kiln::codegen {
namespace {
namespace fs = std::filesystem;

// What CUDA C has and C++ has not, as far as generated code uses it.
constexpr std::string_view kHeader = R"cuda(
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <type_traits>
#include <utility>
template <typename T> T max(T a, T b) { return a < b ? b : a; }
template <typename T> T min(T a, T b) { return b < a ? b : a; }
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)
// In a section: blocks of a cluster, which run in turns, have a copy each.
#define __shared__ static __attribute__((section("kiln_shared")))
extern "C" {
extern char __start_kiln_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_kiln_shared[] __attribute__((weak, visibility("hidden")));
}
struct dim3 { unsigned x, y, z; };
static dim3 blockIdx, threadIdx;
#define VECTOR2(T, N) struct alignas(2 * sizeof(T)) N##2 { T x, y; }; \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; }
#define VECTOR4(T, N) struct alignas(16) N##4 { T x, y, z, w; }; \
  inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR2(float, float) VECTOR4(float, float) VECTOR2(int, int) VECTOR4(int, int)
VECTOR2(unsigned, uint) VECTOR4(unsigned, uint)
VECTOR2(double, double) VECTOR2(long long, longlong)
VECTOR2(unsigned long long, ulonglong)
inline size_t __cvta_generic_to_shared(const void* p) { return (const char*)p - __start_kiln_shared; }
inline float __int_as_float(unsigned i) { float f; memcpy(&f, &i, 4); return f; }
inline float __uint_as_float(unsigned i) { return __int_as_float(i); }
inline unsigned float_bits(float f) { unsigned i; memcpy(&i, &f, 4); return i; }
inline unsigned __float_as_uint(float f) { return float_bits(f); }
inline double __longlong_as_double(long long i) { double f; memcpy(&f, &i, 8); return f; }
inline long long __double_as_longlong(double f) { long long i; memcpy(&i, &f, 8); return i; }
inline void __threadfence() {}
template <typename T> T __ldcg(const T* p) { return *p; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
// What 16 bits say, and what says a float: not by the text's own functions, but as C++ has it.
inline float f16_value(unsigned bits) {
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  const int e = bits >> 10 & 31, m = bits & 1023;
  if (e == 31) return m ? __int_as_float(0x7fc00000) : sign * INFINITY;
  return sign * (e == 0 ? ldexpf(m, -24) : ldexpf(m + 1024, e - 25));
}
inline float bf16_value(unsigned bits) { return __int_as_float(bits << 16); }
inline unsigned f16_bits(float f) {
  const unsigned sign = signbit(f) ? 0x8000 : 0;
  f = fabsf(f);
  if (f != f) return 0x7fff;
  if (f >= 65520) return sign | 0x7c00;
  if (f == 0) return sign;
  int e = 0;
  frexpf(f, &e);
  e = max(e - 1, -14);
  return sign | unsigned(llrintf(f / ldexpf(1.0f, e - 10)) + (e + 14) * 1024);
}
inline unsigned bf16_bits(float f) {
  const unsigned i = float_bits(f);
  return f != f ? 0x7fff : (i + 0x7fff + (i >> 16 & 1)) >> 16;
}

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= unsigned(bytes >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return result;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) sum += (signed char)(a >> i) * (signed char)(b >> i);
  return sum;
}

constexpr int kStackBytes = 256 << 10, kMaxThreads = 1024, kMaxCluster = 8;
struct Fiber {
  ucontext_t context;
  char* stack;
  unsigned thread;  // of the block
  unsigned shuffles, of_warpgroup;  // exchanges so far, of the warp and of four warps
  bool is_done, waits_for_cluster, waits_for_warp, has_left;
  bool has_started;  // products of the warpgroup, since it loaded for them
  bool spins;        // waits for a barrier in shared memory
  bool has_turn;     // of groups that multiply in turn
};
static Fiber fibers[kMaxThreads * kMaxCluster];  // block after block
static ucontext_t main_context;
static Fiber* current;
static unsigned block_threads, copying_threads;  // the last ones of them
static unsigned ComputingThreads() { return block_threads - copying_threads; }
static void (*kernel_call)(void*);
static void* kernel_state;
static void Enter() {
  kernel_call(kernel_state);
  current->is_done = true;
  swapcontext(&current->context, &main_context);
}
static void __syncthreads() {
  swapcontext(&current->context, &main_context);
}
// The threads of a warp wait for each other, not for those of others.
static void __syncwarp() {
  current->waits_for_warp = true;
  swapcontext(&current->context, &main_context);
}
static void emulated_cluster_barrier() {
  current->waits_for_cluster = true;
  swapcontext(&current->context, &main_context);
}
static void emulated_leave_cluster() {
  current->has_left = true;
  emulated_cluster_barrier();
}
// The shared memory of the blocks of the cluster; that of `resident` is where the kernel has it.
static char* shared_of[kMaxCluster];
static unsigned cluster_size, resident;
static size_t SharedBytes() { return __stop_kiln_shared - __start_kiln_shared; }
static void Switch(unsigned block) {
  if (block == resident) return;
  memcpy(shared_of[resident], __start_kiln_shared, SharedBytes());
  memcpy(__start_kiln_shared, shared_of[block], SharedBytes());
  resident = block;
}
template <typename T> const T* emulated_in_block(const T* mine, unsigned block) {
  if (block >= cluster_size || current->has_left) __builtin_trap();
  if (block == resident) return mine;
  return (const T*)(shared_of[block] + ((const char*)mine - __start_kiln_shared));
}
// All threads of the warp shuffle together. A thread is at most one shuffle ahead: two slots do.
static unsigned char shuffle_slots[2][kMaxThreads][32];  // of the block
template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width) {
  const unsigned self = current->thread, lane = self % 32;
  if (!(mask >> lane & 1)) __builtin_trap();
  auto& slots = shuffle_slots[current->shuffles++ % 2];
  memcpy(slots[self], &value, sizeof(T));
  __syncwarp();
  if (lane % width + delta < width) {
    if (!(mask >> (lane + delta) & 1)) __builtin_trap();
    memcpy(&value, slots[self + delta], sizeof(T));
  }
  return value;
}
// What each thread of this one's warp has.
template <typename T> void ExchangeInWarp(const T& mine, T (&all)[32]) {
  const unsigned self = current->thread, first = self / 32 * 32;
  auto& slots = shuffle_slots[current->shuffles++ % 2];
  memcpy(slots[self], &mine, sizeof(T));
  __syncwarp();
  for (unsigned i = 0; i < 32; ++i) memcpy(&all[i], slots[first + i], sizeof(T));
}
template <typename T> T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  T all[32];
  ExchangeInWarp(value, all);
  return all[(current->thread % 32) ^ mask];
}
inline float emulated_flushed_exp2(float x) { return x < -126 ? 0 : exp2f(x); }
inline unsigned emulated_pack_f16(float first, float second) {
  return f16_bits(first) | f16_bits(second) << 16;
}
inline unsigned emulated_pack_bf16(float first, float second) {
  return bf16_bits(first) | bf16_bits(second) << 16;
}
// PTX ISA, ldmatrix: 8 x 8 elements of 16 bits, of which each thread gets two neighbours.
template <int kTiles> void EmulateLoad(unsigned* const (&out)[kTiles], const void* row, bool transposed) {
  const unsigned lane = current->thread % 32;
  current->has_started = false;
  if (lane < 8 * kTiles && (size_t)row % 16 != 0) __builtin_trap();
  const void* rows[32];
  ExchangeInWarp(row, rows);
  for (unsigned i = 0; i < kTiles; ++i) {
    unsigned short pair[2];
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned r = transposed ? lane % 4 * 2 + h : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + h;
      memcpy(&pair[h], (const char*)rows[8 * i + r] + 2 * c, 2);
    }
    memcpy(out[i], pair, 4);
  }
}
void emulated_load_tiles(unsigned& a, unsigned& b, const void* row) { EmulateLoad<2>({&a, &b}, row, false); }
void emulated_load_tiles(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* row) {
  EmulateLoad<4>({&a, &b, &c, &d}, row, false);
}
void emulated_load_tiles_transposed(unsigned& a, unsigned& b, const void* row) {
  EmulateLoad<2>({&a, &b}, row, true);
}
void emulated_load_tiles_transposed(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* row) {
  EmulateLoad<4>({&a, &b, &c, &d}, row, true);
}
// PTX ISA, "Matrix Fragments for mma": a register has neighbours along k, of 32 bits together.
struct Fragments { unsigned a[4], b[2]; };
template <int kBits, typename Sum, typename ToValue>
void EmulateMultiply(Sum* const (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], ToValue to_value) {
  constexpr unsigned kIn = 32 / kBits, kHalf = 4 * kIn;
  Fragments mine, all[32];
  memcpy(mine.a, a, sizeof a);
  memcpy(mine.b, b, sizeof b);
  ExchangeInWarp(mine, all);
  const auto element = [&](unsigned word, unsigned i) {
    return to_value(kBits == 32 ? word : word >> kBits * i & ((1u << kBits % 32) - 1));
  };
  const unsigned lane = current->thread % 32;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 2 * kHalf; ++k) {
      const Sum x = element(all[row % 8 * 4 + k % kHalf / kIn].a[row / 8 + k / kHalf * 2], k % kIn);
      const Sum y = element(all[column * 4 + k % kHalf / kIn].b[k / kHalf], k % kIn);
      *c[i] += x * y;
    }
  }
}
#define MULTIPLY_TILES(NAME, BITS, SUM, VALUE) \
  void emulated_multiply_tiles_##NAME(SUM& c0, SUM& c1, SUM& c2, SUM& c3, const unsigned (&a)[4], \
                                      const unsigned (&b)[2]) { \
    EmulateMultiply<BITS, SUM>({&c0, &c1, &c2, &c3}, a, b, [](unsigned bits) { return VALUE; }); \
  }
// With so many bits of exponent; those of 5 have infinities.
inline float float8_value(unsigned bits, int exponent_bits) {
  const int m = 7 - exponent_bits, e = bits >> m & ((1 << exponent_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = bits & ((1 << m) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (exponent_bits == 5 && e == 31) return mantissa ? NAN : sign * INFINITY;
  if ((bits & 0x7f) == 0x7f) return NAN;
  return sign * ldexpf(e == 0 ? mantissa : mantissa + (1 << m), (e == 0 ? 1 : e) - bias - m);
}
MULTIPLY_TILES(f16, 16, float, f16_value(bits))
MULTIPLY_TILES(bf16, 16, float, bf16_value(bits))
// What the unit does with bits that were not rounded away is not said.
inline float tf32_value(unsigned bits) {
  if (bits & 0x1fff) __builtin_trap();
  return __int_as_float(bits);
}
MULTIPLY_TILES(tf32, 32, float, tf32_value(bits))
MULTIPLY_TILES(s8, 8, int, (signed char)bits)
MULTIPLY_TILES(u8, 8, int, (unsigned char)bits)
MULTIPLY_TILES(e4m3, 8, float, float8_value(bits, 4))
MULTIPLY_TILES(e5m2, 8, float, float8_value(bits, 5))
template <int kTiles, int kParts> void emulated_round_tiles(unsigned (&tiles)[kTiles][kParts]) {
  for (auto& tile : tiles) {
    for (unsigned& bits : tile) {
      const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
      bits = is_nan ? 0x7fc00000 : (bits + 0x1000) & ~0x1fffu;
    }
  }
}
// Asynchronous copies happen as late as they may: when their thread waits for their group.
struct Copy { void* to; unsigned char bytes[16]; int size; unsigned group; };
struct Copies { Copy* items; int count, room; unsigned groups; };
static Copies copies[kMaxThreads * kMaxCluster];
static struct ReleaseMemory {
  ~ReleaseMemory() {
    for (Fiber& fiber : fibers) free(fiber.stack);
    for (Copies& mine : copies) free(mine.items);
    for (char* shared : shared_of) free(shared);
  }
} release_memory;
template <int kBytes> void late_copy_async_if(bool condition, void* to, const void* from) {
  if ((size_t)to % kBytes != 0 || (condition && (size_t)from % kBytes != 0)) __builtin_trap();
  Copies& mine = copies[current - fibers];
  if (mine.count == mine.room) {
    mine.room = mine.room * 2 + 16;
    mine.items = static_cast<Copy*>(realloc(mine.items, mine.room * sizeof(Copy)));
  }
  Copy& copy = mine.items[mine.count++] = {to, {}, kBytes, mine.groups};
  if (condition) memcpy(copy.bytes, from, kBytes);
  memset(to, 0xff, kBytes);  // until then there is nothing to read
}
template <int kBytes> void late_copy_async(void* to, const void* from) {
  late_copy_async_if<kBytes>(true, to, from);
}
static void late_commit_copies() { ++copies[current - fibers].groups; }
template <int kPending> void late_wait_for_copies() {
  Copies& mine = copies[current - fibers];
  int done = 0;
  for (; done < mine.count && mine.items[done].group + kPending < mine.groups; ++done)
    memcpy(mine.items[done].to, mine.items[done].bytes, mine.items[done].size);
  mine.count -= done;
  memmove(mine.items, mine.items + done, mine.count * sizeof(Copy));
}
static void ResetProducts(size_t fiber);
static void Start(Fiber& fiber, unsigned thread) {
  fiber.thread = thread;
  fiber.waits_for_cluster = fiber.waits_for_warp = fiber.has_left = fiber.has_started = false;
  fiber.has_turn = false;
  if (fiber.stack == nullptr) fiber.stack = static_cast<char*>(malloc(kStackBytes));
  fiber.is_done = false;
  fiber.shuffles = fiber.of_warpgroup = 0;
  copies[&fiber - fibers].count = copies[&fiber - fibers].groups = 0;
  ResetProducts(&fiber - fibers);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, Enter, 0);
}
static unsigned long long bulk_events;  // what threads that spin wait for
// Each thread of the warp, until it waits for more than the others of the warp. False: they all spin.
static bool RunWarp(dim3 block, Fiber* threads, unsigned first, unsigned end) {
  bool goes_on = false;
  while (true) {
    unsigned waiting = 0;
    for (unsigned t = first; t < end; ++t) {
      threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
      current = &threads[t];
      if (!current->is_done && !current->waits_for_cluster && !current->waits_for_warp) {
        current->spins = false;
        swapcontext(&main_context, &current->context);
        goes_on |= !current->spins;
      }
      waiting += current->waits_for_warp;
    }
    if (waiting != end - first) return goes_on;
    for (unsigned t = first; t < end; ++t) threads[t].waits_for_warp = false;
  }
}
// Until the block is done (1), waits for the others of its cluster (2) or spins (3) until they do
// something. 0: some threads ended or wait at another barrier than others, or for what nobody does.
// Threads that copy have no barriers with the others of the block but the first and the last.
static int RunBlock(dim3 block, Fiber* threads) {
  const unsigned n = block_threads = block.x * block.y * block.z, computing = ComputingThreads();
  const auto is_some = [&](unsigned count) { return count != 0 && count != computing; };
  while (true) {
    unsigned done = 0, waiting = 0, spinning = 0, copying_done = 0, copying_waiting = 0;
    const unsigned long long before = bulk_events;
    bool goes_on = false;
    for (unsigned first = 0; first < n; first += 32)
      goes_on |= RunWarp(block, threads, first, min(first + 32, n));
    for (unsigned t = 0; t < n; ++t) {
      if (threads[t].waits_for_warp) return 0;
      (t < computing ? done : copying_done) += threads[t].is_done;
      (t < computing ? waiting : copying_waiting) += threads[t].waits_for_cluster;
      if (t < computing) spinning += threads[t].spins;
    }
    if (done == computing && copying_done == copying_threads) return 1;
    if (waiting == computing && copying_done + copying_waiting == copying_threads) return 2;
    if (is_some(done) || is_some(waiting) || is_some(spinning)) return 0;
    if (!goes_on && bulk_events == before) return cluster_size > 1 ? 3 : 0;
  }
}
// Each block runs as far as it gets, alone. False: see RunBlock, or blocks ended while others wait.
static bool RunCluster(dim3 block) {
  const unsigned n = block.x * block.y * block.z, first = blockIdx.x;
  for (unsigned i = 0; i < n * cluster_size; ++i) Start(fibers[i], i % n);
  for (unsigned b = 0; b < cluster_size && cluster_size > 1; ++b) {
    if (shared_of[b] == nullptr) shared_of[b] = static_cast<char*>(malloc(SharedBytes() + 1));
    memset(shared_of[b], 0xff, SharedBytes());
  }
  resident = 0;
  if (cluster_size > 1) memset(__start_kiln_shared, 0xff, SharedBytes());
  int states[kMaxCluster] = {};
  while (true) {
    unsigned done = 0, waiting = 0;
    const unsigned long long before = bulk_events;
    for (unsigned b = 0; b < cluster_size; ++b) {
      blockIdx.x = first + b;
      if (states[b] != 1 && states[b] != 2) {
        Switch(b);
        states[b] = RunBlock(block, fibers + b * n);
        if (states[b] == 0) return false;
        // Its shared memory is another block's now.
        if (states[b] == 1 && cluster_size > 1) memset(__start_kiln_shared, 0xff, SharedBytes());
      }
      done += states[b] == 1;
      waiting += states[b] == 2;
    }
    blockIdx.x = first;
    if (done == cluster_size) return true;
    if (waiting == cluster_size) {
      for (unsigned b = 0; b < cluster_size; ++b) states[b] = 3;
      for (unsigned i = 0; i < n * cluster_size; ++i) fibers[i].waits_for_cluster = false;
    } else if (bulk_events == before) {
      return false;
    }
  }
}
template <typename A> A ArgOf(void* arg) {
  if constexpr (std::is_pointer<A>::value) return static_cast<A>(arg);
  else return *static_cast<A*>(arg);
}
template <typename... A, size_t... I>
static int LaunchWith(void (*f)(A...), void** args, dim3 grid, dim3 block,
                      std::index_sequence<I...>) {
  auto call = [&] { f(ArgOf<A>(args[I])...); };
  kernel_call = [](void* state) { (*static_cast<decltype(call)*>(state))(); };
  kernel_state = &call;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x += cluster_size)
        if (!RunCluster(block)) return 1;
  return 0;
}
template <typename... A>
static int Launch(void (*f)(A...), void** args, dim3 grid, dim3 block, unsigned cluster,
                  unsigned copying) {
  cluster_size = cluster;
  copying_threads = copying;
  return LaunchWith(f, args, grid, block, std::index_sequence_for<A...>());
}
)cuda";

void Replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at; (at = text.find(from)) != text.npos;) text.replace(at, from.size(), to);
}

// Where `to` may contain `from`.
void ReplaceEach(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// In the kernels, not in the functions above them.
void ReplaceCalls(std::string& text, std::string_view from, std::string_view to) {
  std::string kernels = text.substr(text.find("extern \"C\" __global__"));
  text.resize(text.size() - kernels.size());
  ReplaceEach(kernels, from, to);
  text += kernels;
}

std::string HostText(const CudaSource& source, bool late_copies) {
  std::string text = source.text;
  if (late_copies) {
    // Calls, not the definitions, which do them at once.
    ReplaceEach(text, "  copy_async<", "  late_copy_async<");
    ReplaceEach(text, "  copy_async_if<", "  late_copy_async_if<");
    ReplaceEach(text, "  commit_copies();", "  late_commit_copies();");
    ReplaceEach(text, "  wait_for_copies<", "  late_wait_for_copies<");
  }
  for (const int alignment : {16, 256, 512, 1024}) {
    Replace(
        text,
        fmt::format("extern __shared__ __align__({}) unsigned char shared_memory[];", alignment),
        fmt::format("alignas({}) __shared__ unsigned char shared_memory[256 << 10];", alignment));
  }
  ReplaceCalls(text, "in_block(", "emulated_in_block(");
  ReplaceCalls(text, "load_tiles", "emulated_load_tiles");
  ReplaceCalls(text, "multiply_tiles", "emulated_multiply_tiles");
  for (const std::string name :
       {"fence_async_proxy", "start_products", "commit_products", "wait_for_products",
        "wait_for_sums", "settle", "multiply_warpgroup"})
    ReplaceCalls(text, name, "emulated_" + name);
  for (const std::string name :
       {"start_barriers", "wait_for(", "release(", "release_pair(", "expect_bytes(", "copy_box(",
        "copy_box_to_pair(", "meet_pair(", "barrier_of_computing", "give_part", "add_part",
        "give_registers", "take_registers", "begin_turns", "wait_for_turn", "pass_turn"})
    ReplaceCalls(text, name, "emulated_" + name);
  ReplaceCalls(text, "round_tiles", "emulated_round_tiles");
  ReplaceCalls(text, "flushed_exp2(", "emulated_flushed_exp2(");
  ReplaceCalls(text, "pack_f16(", "emulated_pack_f16(");
  ReplaceCalls(text, "pack_bf16(", "emulated_pack_bf16(");
  ReplaceCalls(text, "cluster_barrier();", "emulated_cluster_barrier();");
  ReplaceCalls(text, "leave_cluster();", "emulated_leave_cluster();");
  Replace(text, "extern \"C\" __global__", "__global__ static");
  return text;
}

std::string RunnerName(size_t program, size_t kernel) {
  return fmt::format("run_kernel_{}_{}", program, kernel);
}

// Each program in a namespace of its own.
std::string HostText(std::span<const CudaSource> sources, bool late_copies) {
  std::string text =
      std::string(kHeader) + std::string(kWarpgroupEmulation) + std::string(kBulkEmulation);
  for (size_t program = 0; program < sources.size(); ++program) {
    text += fmt::format("namespace program_{} {{\n{}\n", program,
                        HostText(sources[program], late_copies));
    for (size_t i = 0; i < sources[program].kernels.size(); ++i) {
      const CudaKernel& k = sources[program].kernels[i];
      const auto dims = [](const std::array<int64_t, 3>& d) {
        return fmt::format("{{{}, {}, {}}}", d[0], d[1], d[2]);
      };
      text += fmt::format(
          "extern \"C\" int {}(void** args) {{ return Launch({}, args, {}, {}, {}, {}); }}\n",
          RunnerName(program, i), k.name, dims(k.grid), dims(k.block), k.cluster,
          k.copying_threads);
    }
    text += "}\n";
  }
  return text;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

StatusOr<void*> CompileAndLoad(std::span<const CudaSource> sources, const fs::path& folder,
                               bool late_copies) {
  const fs::path cc = folder / "kernel.cc", so = folder / "kernel.so", log = folder / "log";
  std::ofstream(cc) << HostText(sources, late_copies);
  const std::string command = fmt::format(
      "g++ -std=c++17 -O0 -w -shared -fPIC -fsanitize=alignment -fsanitize-undefined-trap-on-error "
      "-o {} {} > {} 2>&1",
      so.string(), cc.string(), log.string());
  if (std::system(command.c_str()) != 0) {
    return Internal("g++ refuses the generated text: {}\n{}", ReadFile(log).substr(0, 3000),
                    sources.empty() ? "" : sources[0].text);
  }
  void* library = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Internal("{}", dlerror());
  return library;
}

Status RunKernels(void* library, size_t program, const CudaSource& source,
                  std::vector<ir::NDArray>& buffers) {
  for (size_t i = 0; i < source.kernels.size(); ++i) {
    auto run = reinterpret_cast<int (*)(void**)>(dlsym(library, RunnerName(program, i).c_str()));
    if (run == nullptr) return Internal("{}", dlerror());
    std::vector<void*> args;
    for (int32_t slot : source.kernels[i].args)
      args.push_back(buffers[static_cast<size_t>(slot)].mutable_bytes().data());
    std::vector<EmulatedTensorMap> maps;
    for (const TensorMap& map : source.kernels[i].tensor_maps)
      maps.push_back(EmulatedMapOf(map, buffers[map.arg].mutable_bytes().data()));
    for (EmulatedTensorMap& map : maps) args.push_back(&map);
    args.push_back(nullptr);
    if (run(args.data()) != 0) {
      return Internal(
          "kernel {}: some threads of a block or cluster wait at a barrier, others have "
          "ended or wait at another",
          source.kernels[i].name);
    }
  }
  return OkStatus();
}

Status CompareOutputs(const ir::Program& program, const std::vector<ir::NDArray>& found,
                      const std::vector<ir::NDArray>& expected, double tolerance) {
  for (size_t slot = 0; slot < found.size(); ++slot) {
    if (program.buffers[slot].scope != ir::Scope::kOutput) continue;
    for (int64_t i = 0; i < found[slot].num_elements(); ++i) {
      const double a = found[slot].GetDouble(i), b = expected[slot].GetDouble(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
      return Internal("{}[{}] is {}, expected {}", program.buffers[slot].name, i, a, b);
    }
  }
  return OkStatus();
}
}  // namespace

StatusOr<std::unique_ptr<EmulatedCuda>> EmulatedCuda::Compile(std::vector<CudaSource> sources,
                                                              bool late_copies) {
  std::string pattern = (fs::temp_directory_path() / "kiln_emulation_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return Internal("no temporary folder");
  const StatusOr<void*> library = CompileAndLoad(sources, pattern, late_copies);
  std::error_code error;
  fs::remove_all(pattern, error);  // what is loaded stays
  KILN_RETURN_IF_ERROR(library.status());
  return std::unique_ptr<EmulatedCuda>(new EmulatedCuda(std::move(sources), *library));
}

EmulatedCuda::~EmulatedCuda() { dlclose(library_); }

Status EmulatedCuda::Run(size_t program, std::vector<ir::NDArray>& buffers) {
  return RunKernels(library_, program, sources_[program], buffers);
}

Status EmulateCuda(const ir::Program& program, const CudaSource& source,
                   std::vector<ir::NDArray>& buffers, bool late_copies) {
  KILN_CHECK(std::ssize(buffers) == program.num_args());
  KILN_ASSIGN_OR_RETURN(const auto emulated, EmulatedCuda::Compile({source}, late_copies));
  return emulated->Run(0, buffers);
}

Status CompareEmulated(const ir::Program& program, uint64_t seed, double tolerance,
                       const CudaOptions& options, bool late_copies) {
  std::vector<ir::NDArray> expected;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    expected.emplace_back(buffer.type, buffer.shape);
    if (buffer.scope == ir::Scope::kInput) {
      expected.back().FillRandom(seed + static_cast<uint64_t>(i), ir::RandomKind::kUniform,
                                 buffer.index_limit);
    } else {
      expected.back().Poison();
    }
  }
  std::vector<ir::NDArray> found = expected;
  std::vector<ir::NDArray*> arguments;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (program.buffers[i].scope != ir::Scope::kWorkspace) arguments.push_back(&expected[i]);
  }
  KILN_RETURN_IF_ERROR(ir::Interpret(program, arguments, {.allow_equal_writes = true}));
  KILN_ASSIGN_OR_RETURN(const CudaSource source, GenerateCuda(program, options));
  KILN_RETURN_IF_ERROR(EmulateCuda(program, source, found, late_copies));
  const Status status = CompareOutputs(program, found, expected, tolerance);
  if (status.ok()) return status;
  return Internal("{}; seed {}\n{}", Message(status), seed, source.text);
}

StatusOr<ir::NDArray> EmulateWithout(const ir::Program& program, std::string_view call,
                                     std::string_view instead) {
  KILN_ASSIGN_OR_RETURN(CudaSource source, GenerateCuda(program));
  ReplaceCalls(source.text, call, instead);
  std::vector<ir::NDArray> buffers;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    buffers.emplace_back(buffer.type, buffer.shape);
    buffers.back().FillRandom(static_cast<uint64_t>(i), ir::RandomKind::kUniform, 0);
  }
  KILN_RETURN_IF_ERROR(EmulateCuda(program, source, buffers));
  return std::move(buffers.back());
}

}  // namespace kiln::codegen
