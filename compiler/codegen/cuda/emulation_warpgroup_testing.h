// The part of the emulator (emulation_testing.h) that stands for units of four warps. What it knows
// of them is from the PTX ISA alone, not from the generator: it takes descriptors apart and permutes
// addresses.
//
// Products happen as late as they may, when their thread waits for them; until then the sums are
// poisoned. What units see of shared memory is what was there at the last fence: if it is something
// else by the time that they read it, it was written without a fence, or before they had read it,
// and the kernel traps. So does one that starts no products behind what it loaded for them.
#pragma once

#include <string_view>

namespace kiln::codegen {

inline constexpr std::string_view kWarpgroupEmulation = R"cuda(
struct WarpgroupProduct {
  float *low, *high, a[2][16];
  unsigned long long descriptor;
  int columns, is_transposed;
  bool has_saved;
  float saved[2][64];  // the sums before the first of several products
  float (*to_float)(unsigned short);
};
struct WarpgroupProducts { WarpgroupProduct* items; int count, room, committed; };
static WarpgroupProducts products[kMaxThreads * kMaxCluster];
static char* seen_by_units[kMaxCluster];  // of the block that is resident
static struct ReleaseProducts {
  ~ReleaseProducts() {
    for (WarpgroupProducts& mine : products) free(mine.items);
    for (char* seen : seen_by_units) free(seen);
  }
} release_products;
static void ResetProducts(size_t fiber) { products[fiber].count = products[fiber].committed = 0; }
static char* SeenByUnits() {
  char*& seen = seen_by_units[resident];
  if (seen == nullptr) {
    seen = static_cast<char*>(malloc(SharedBytes() + 1));
    memset(seen, 0xee, SharedBytes());
  }
  return seen;
}
// All threads of the block do it, the last one last.
static void emulated_fence_async_proxy() {
  if (current->thread + 1 == block_threads)
    memcpy(SeenByUnits(), __start_kiln_shared, SharedBytes());
}
static void emulated_start_products() { current->has_started = true; }
static void emulated_commit_products() {
  WarpgroupProducts& mine = products[current - fibers];
  mine.committed = mine.count;
}
template <int kCount> void emulated_settle(float (&)[kCount]) {}
// PTX ISA, "Matrix Descriptor Format", "Strides", "Swizzling modes": where element (n, k) is. All
// numbers are bytes.
static unsigned AddressOf(unsigned long long descriptor, bool is_transposed, unsigned n, unsigned k) {
  const unsigned start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                 stride = (descriptor >> 32 & 0x3fff) << 4, base = descriptor >> 49 & 7,
                 mode = descriptor >> 62;
  if (mode == 0 || base != 0) __builtin_trap();
  const unsigned width = mode == 1 ? 128 : mode == 2 ? 64 : 32;
  unsigned address = start;
  if (is_transposed) {  // neighbours along n: 8 rows of k, panels of `width` along n
    address += n * 2 / width * leading + n * 2 % width + k / 8 * stride + k % 8 * width;
  } else {  // neighbours along k: 8 rows of n
    address += n / 8 * stride + n % 8 * width + k * 2;
  }
  const unsigned swapped = width == 128 ? 7 : width == 64 ? 3 : 1;  // bits 4.. by bits 7..
  return (address ^ (address >> 7 & swapped) << 4) & 0x3ffff;
}
static unsigned short ReadByUnit(unsigned address) {
  unsigned short seen, there;
  if (address + 2 > SharedBytes()) __builtin_trap();
  memcpy(&seen, SeenByUnits() + address, 2);
  memcpy(&there, __start_kiln_shared + address, 2);
  if (seen != there) __builtin_trap();
  return seen;
}
static void RunProduct(WarpgroupProduct& p) {
  const unsigned lane = current->thread % 32, pairs = p.columns / 4;
  if (p.has_saved) {
    memcpy(p.low, p.saved[0], pairs * sizeof(float));
    memcpy(p.high, p.saved[1], pairs * sizeof(float));
  }
  for (unsigned i = 0; i < pairs; ++i) {
    const unsigned n = i / 2 * 8 + lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const float b = p.to_float(ReadByUnit(AddressOf(p.descriptor, p.is_transposed, n, k)));
      p.low[i] += p.a[0][k] * b;
      p.high[i] += p.a[1][k] * b;
    }
  }
}
static void emulated_wait_for_products() {
  WarpgroupProducts& mine = products[current - fibers];
  if (mine.committed != mine.count) __builtin_trap();
  for (int i = 0; i < mine.count; ++i) RunProduct(mine.items[i]);
  mine.count = mine.committed = 0;
  current->has_started = false;
}
template <int kColumns, int kTransposed>
void EmulateWarpgroup(float* low, float* high, const unsigned (&a)[4], unsigned long long b,
                      float (*to_float)(unsigned short)) {
  static_assert(kColumns % 8 == 0 && kColumns >= 8 && kColumns <= 256, "");
  if (!current->has_started || block_threads % 128 != 0) __builtin_trap();
  struct Mine { unsigned a[4]; unsigned long long b; } all[128], mine;
  memcpy(mine.a, a, sizeof a);
  mine.b = b;
  const unsigned self = current->thread, lane = self % 32, warp = self % 128 / 32 * 32;
  auto& slots = shuffle_slots[current->shuffles++ % 2];
  memcpy(slots[self], &mine, sizeof mine);
  __syncthreads();
  for (unsigned i = 0; i < 128; ++i) {
    memcpy(&all[i], slots[self / 128 * 128 + i], sizeof(Mine));
    if (all[i].b != b) __builtin_trap();  // the four warps say the same
  }
  WarpgroupProducts& queue = products[current - fibers];
  if (queue.count == queue.room) {
    queue.room = queue.room * 2 + 16;
    queue.items =
        static_cast<WarpgroupProduct*>(realloc(queue.items, queue.room * sizeof(WarpgroupProduct)));
  }
  bool is_pending = false;
  for (int i = 0; i < queue.count; ++i) is_pending |= queue.items[i].low == low;
  WarpgroupProduct& p = queue.items[queue.count++];
  p = {low, high, {}, b, kColumns, kTransposed, !is_pending, {}, to_float};
  for (unsigned k = 0; k < 16; ++k) {
    const Mine& from = all[warp + lane / 4 * 4 + k % 8 / 2];
    for (unsigned half = 0; half < 2; ++half)
      p.a[half][k] = to_float(static_cast<unsigned short>(from.a[half + k / 8 * 2] >> 16 * (k % 2)));
  }
  if (is_pending) return;
  memcpy(p.saved[0], low, kColumns / 4 * sizeof(float));
  memcpy(p.saved[1], high, kColumns / 4 * sizeof(float));
  for (int i = 0; i < kColumns / 4; ++i) low[i] = high[i] = NAN;
}
template <int kColumns, int kTransposed>
void emulated_multiply_warpgroup_f16(float* low, float* high, const unsigned (&a)[4],
                                     unsigned long long b) {
  EmulateWarpgroup<kColumns, kTransposed>(
      low, high, a, b, [](unsigned short h) { return __half2float(__half{h}); });
}
template <int kColumns, int kTransposed>
void emulated_multiply_warpgroup_bf16(float* low, float* high, const unsigned (&a)[4],
                                      unsigned long long b) {
  EmulateWarpgroup<kColumns, kTransposed>(
      low, high, a, b, [](unsigned short h) { return __bfloat162float(__nv_bfloat16{h}); });
}
)cuda";

}  // namespace kiln::codegen
