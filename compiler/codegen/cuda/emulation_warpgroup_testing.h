// The part of the emulator (emulation_testing.h) that stands for units of four warps. What it knows
// of them is from the PTX ISA alone, not from the generator: it takes descriptors apart and permutes
// addresses.
//
// Products happen as late as they may, when their thread waits for them. Their sums are poisoned until
// it waits for sums. What units see of shared memory is what was there at the last fence: if it is
// something else by the time that they read it, it was written without a fence, or before they had
// read it, and the kernel traps. So does one that starts no products behind what it loaded for them.
#pragma once

#include <string_view>

namespace kiln::codegen {

inline constexpr std::string_view kWarpgroupEmulation = R"cuda(
struct WarpgroupProduct {
  void *low, *high;  // a thread's sums, of four bytes each, `tiles` and `neighbours` apart
  unsigned a[2][32];  // its rows of the first factor; bits of the elements
  unsigned long long a_descriptor, b_descriptor;
  int columns, is_transposed, tiles, neighbours, group;
  bool reads_a, has_saved;
  unsigned saved[2][64];  // the sums before the first of several products
  void (*run)(WarpgroupProduct&);
};
struct WarpgroupQueue { WarpgroupProduct* items; int count, room; };
struct WarpgroupProducts {
  WarpgroupQueue under_way, hidden;  // done, but nobody has waited for the sums
  int groups;
};
static WarpgroupProducts products[kMaxThreads * kMaxCluster];
static WarpgroupProduct& Append(WarpgroupQueue& queue, const WarpgroupProduct& p) {
  if (queue.count == queue.room) {
    queue.room = queue.room * 2 + 16;
    queue.items =
        static_cast<WarpgroupProduct*>(realloc(queue.items, queue.room * sizeof(WarpgroupProduct)));
  }
  return queue.items[queue.count++] = p;
}
static void DropFirst(WarpgroupQueue& queue, int count) {
  queue.count -= count;
  memmove(queue.items, queue.items + count, queue.count * sizeof(WarpgroupProduct));
}
// Do those of numbers [first, end) add to these sums?
static bool Has(const WarpgroupQueue& queue, int first, int end, const void* low) {
  for (int i = first; i < end; ++i) {
    if (queue.items[i].low == low) return true;
  }
  return false;
}
static char* seen_by_units[kMaxCluster];  // of the block that is resident
static struct ReleaseProducts {
  ~ReleaseProducts() {
    for (WarpgroupProducts& mine : products) {
      free(mine.under_way.items);
      free(mine.hidden.items);
    }
    for (char* seen : seen_by_units) free(seen);
  }
} release_products;
static void ResetProducts(size_t fiber) {
  WarpgroupProducts& of = products[fiber];
  of.under_way.count = of.hidden.count = of.groups = 0;
}
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
  if (current->thread + 1 == ComputingThreads())
    memcpy(SeenByUnits(), __start_kiln_shared, SharedBytes());
}
static void emulated_start_products() { current->has_started = true; }
static void emulated_commit_products() { ++products[current - fibers].groups; }
template <typename Sum, int kCount> void emulated_settle(Sum (&)[kCount]) {}
// PTX ISA, "Matrix Descriptor Format", "Strides", "Swizzling modes": where element (n, k) is. All
// numbers are bytes.
template <unsigned kBytes>
unsigned AddressOf(unsigned long long descriptor, bool is_transposed, unsigned n, unsigned k) {
  const unsigned start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                 stride = (descriptor >> 32 & 0x3fff) << 4, base = descriptor >> 49 & 7,
                 mode = descriptor >> 62;
  if (mode == 0 || base != 0) __builtin_trap();
  const unsigned width = mode == 1 ? 128 : mode == 2 ? 64 : 32;
  unsigned address = start;
  if (is_transposed) {  // neighbours along n: 8 rows of k, panels of `width` along n
    address += n * kBytes / width * leading + n * kBytes % width + k / 8 * stride + k % 8 * width;
  } else {  // neighbours along k: 8 rows of n
    address += n / 8 * stride + n % 8 * width + k * kBytes;
  }
  const unsigned swapped = width == 128 ? 7 : width == 64 ? 3 : 1;  // bits 4.. by bits 7..
  return (address ^ (address >> 7 & swapped) << 4) & 0x3ffff;
}
template <unsigned kBytes> unsigned ReadByUnit(unsigned address) {
  unsigned seen = 0, there = 0;
  if (address + kBytes > SharedBytes()) __builtin_trap();
  memcpy(&seen, SeenByUnits() + address, kBytes);
  memcpy(&there, __start_kiln_shared + address, kBytes);
  if (seen != there) __builtin_trap();
  return seen;
}
static int SumAt(const WarpgroupProduct& p, int i) { return i / 2 * p.tiles + i % 2 * p.neighbours; }
static void Restore(const WarpgroupProduct& p) {
  for (int i = 0; i < p.columns / 4; ++i) {
    memcpy(static_cast<char*>(p.low) + SumAt(p, i) * 4, &p.saved[0][i], 4);
    memcpy(static_cast<char*>(p.high) + SumAt(p, i) * 4, &p.saved[1][i], 4);
  }
}
template <typename Sum, unsigned kBytes, Sum (*kValue)(unsigned)>
void RunProduct(WarpgroupProduct& p) {
  const unsigned lane = current->thread % 32, pairs = p.columns / 4;
  Sum *const low = static_cast<Sum*>(p.low), *const high = static_cast<Sum*>(p.high);
  if (p.has_saved) Restore(p);
  for (unsigned k = 0; k < 32 / kBytes; ++k) {
    Sum a[2];
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned row = current->thread % 128 / 32 * 16 + half * 8 + lane / 4;
      a[half] = kValue(p.reads_a ? ReadByUnit<kBytes>(AddressOf<kBytes>(p.a_descriptor, false, row, k))
                                 : p.a[half][k]);
    }
    for (unsigned i = 0; i < pairs; ++i) {
      const unsigned n = i / 2 * 8 + lane % 4 * 2 + i % 2;
      const Sum b =
          kValue(ReadByUnit<kBytes>(AddressOf<kBytes>(p.b_descriptor, p.is_transposed, n, k)));
      low[SumAt(p, i)] += a[0] * b;
      high[SumAt(p, i)] += a[1] * b;
    }
  }
}
// The product is the next one to be added to its sums.
static void Poison(WarpgroupProduct& p) {
  const unsigned poison = 0x7fc00000;
  for (int i = 0; i < p.columns / 4; ++i) {
    char *const low = static_cast<char*>(p.low) + SumAt(p, i) * 4,
               *const high = static_cast<char*>(p.high) + SumAt(p, i) * 4;
    memcpy(&p.saved[0][i], low, 4);
    memcpy(&p.saved[1][i], high, 4);
    memcpy(low, &poison, 4);
    memcpy(high, &poison, 4);
  }
  p.has_saved = true;
}
// The sums of what is done stay poisoned, those of the next products begin with them.
template <int kUnderWay> void emulated_wait_for_products() {
  WarpgroupProducts& mine = products[current - fibers];
  WarpgroupQueue& queue = mine.under_way;
  if (queue.count > 0 && queue.items[queue.count - 1].group == mine.groups) __builtin_trap();
  int done = 0;
  for (; done < queue.count && queue.items[done].group < mine.groups - kUnderWay; ++done) {
    WarpgroupProduct& p = queue.items[done];
    p.run(p);
    if (!Has(queue, done + 1, queue.count, p.low)) Poison(Append(mine.hidden, p));
  }
  DropFirst(queue, done);
  for (int i = 0; i < queue.count; ++i) {
    WarpgroupProduct& p = queue.items[i];
    if (!p.has_saved && !Has(queue, 0, i, p.low)) Poison(p);
  }
  current->has_started = false;
}
template <int kUnderWay, bool kMayBeRounded = true> void emulated_wait_for_sums() {
  emulated_wait_for_products<kUnderWay>();
  WarpgroupQueue& hidden = products[current - fibers].hidden;
  for (int i = 0; i < hidden.count; ++i) Restore(hidden.items[i]);
  hidden.count = 0;
}
// What the four warps say together: registers of the first factor, or its descriptor in two of them.
struct WarpgroupOperands { unsigned a[4]; unsigned long long b; };
static unsigned char warpgroup_slots[2][kMaxThreads][32];  // as shuffle_slots
static void CheckOfWarpgroup(const WarpgroupOperands& mine, bool reads_a, WarpgroupOperands (&all)[128]) {
  if (!current->has_started || ComputingThreads() % 128 != 0) __builtin_trap();
  const unsigned self = current->thread;
  auto& slots = warpgroup_slots[current->of_warpgroup++ % 2];
  memcpy(slots[self], &mine, sizeof mine);
  __syncthreads();
  for (unsigned i = 0; i < 128; ++i) {
    memcpy(&all[i], slots[self / 128 * 128 + i], sizeof(WarpgroupOperands));
    if (all[i].b != mine.b || (reads_a && memcmp(all[i].a, mine.a, 8) != 0)) __builtin_trap();
  }
}
static void Enqueue(WarpgroupProduct p) {
  WarpgroupProducts& mine = products[current - fibers];
  for (int i = 0; i < mine.hidden.count; ++i) {
    if (mine.hidden.items[i].low != p.low) continue;
    Restore(mine.hidden.items[i]);
    mine.hidden.items[i] = mine.hidden.items[--mine.hidden.count];
    break;
  }
  p.group = mine.groups;
  WarpgroupProduct& added = Append(mine.under_way, p);
  if (!Has(mine.under_way, 0, mine.under_way.count - 1, p.low)) Poison(added);
}
template <typename Sum, unsigned kBytes, Sum (*kValue)(unsigned), int kColumns, int kTransposed, int kTiles, int kNeighbours>
void EmulateWarpgroup(Sum* low, Sum* high, const unsigned (&a)[4], bool reads_a, unsigned long long b) {
  static_assert(kColumns % 8 == 0 && kColumns >= 8 && kColumns <= 256, "");
  static_assert(kBytes != 1 || kColumns == 8 || kColumns == 24 || kColumns % 16 == 0, "");
  static_assert(kBytes == 2 || kTransposed == 0, "");
  WarpgroupOperands mine, all[128];
  memcpy(mine.a, a, sizeof a);
  mine.b = b;
  CheckOfWarpgroup(mine, reads_a, all);
  WarpgroupProduct p = {};
  p.low = low;
  p.high = high;
  memcpy(&p.a_descriptor, a, 8);
  p.b_descriptor = b;
  p.columns = kColumns;
  p.is_transposed = kTransposed;
  p.tiles = kTiles;
  p.neighbours = kNeighbours;
  p.reads_a = reads_a;
  p.run = RunProduct<Sum, kBytes, kValue>;
  // A register has neighbours along k; the upper half of k is in the next two.
  const unsigned lane = current->thread % 32, warp = current->thread % 128 / 32 * 32;
  constexpr unsigned kIn = 4 / kBytes, kHalf = 4 * kIn;
  for (unsigned k = 0; k < 2 * kHalf; ++k) {
    const WarpgroupOperands& from = all[warp + lane / 4 * 4 + k % kHalf / kIn];
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned word = from.a[half + k / kHalf * 2];
      p.a[half][k] = kBytes == 4 ? word : word >> 8 * kBytes * (k % kIn) & ((1u << 8 * kBytes % 32) - 1);
    }
  }
  Enqueue(p);
}
// The units take no notice of the lower bits.
static float Tf32OfUnit(unsigned bits) { return __int_as_float(bits & ~0x1fffu); }
static float E4M3OfUnit(unsigned bits) { return float8_value(bits, 4); }
static float E5M2OfUnit(unsigned bits) { return float8_value(bits, 5); }
static int SignedByteOfUnit(unsigned bits) { return (signed char)bits; }
static int ByteOfUnit(unsigned bits) { return (unsigned char)bits; }
#define MULTIPLY_WARPGROUP(NAME, BYTES, SUM, VALUE) \
  template <int kColumns, int kTransposed, int kTiles = 2, int kNeighbours = 1> \
  void emulated_multiply_warpgroup_##NAME(SUM* low, SUM* high, const unsigned (&a)[4], \
                                          unsigned long long b) { \
    EmulateWarpgroup<SUM, BYTES, VALUE, kColumns, kTransposed, kTiles, kNeighbours>(low, high, a, false, b); \
  } \
  template <int kColumns, int kTransposed, int kTiles = 2, int kNeighbours = 1> \
  void emulated_multiply_warpgroup_##NAME(SUM* low, SUM* high, unsigned long long a, \
                                          unsigned long long b) { \
    const unsigned words[4] = {(unsigned)a, (unsigned)(a >> 32), 0, 0}; \
    EmulateWarpgroup<SUM, BYTES, VALUE, kColumns, kTransposed, kTiles, kNeighbours>(low, high, words, true, b); \
  }
MULTIPLY_WARPGROUP(f16, 2, float, f16_value)
MULTIPLY_WARPGROUP(bf16, 2, float, bf16_value)
MULTIPLY_WARPGROUP(tf32, 4, float, Tf32OfUnit)
MULTIPLY_WARPGROUP(s8, 1, int, SignedByteOfUnit)
MULTIPLY_WARPGROUP(u8, 1, int, ByteOfUnit)
MULTIPLY_WARPGROUP(e4m3, 1, float, E4M3OfUnit)
MULTIPLY_WARPGROUP(e5m2, 1, float, E5M2OfUnit)
)cuda";

}  // namespace kiln::codegen
