// The part of the emulator (emulation_testing.h) that stands for the bulk copy engine and for barriers
// in shared memory. What it knows of them is from the PTX ISA ("cp.async.bulk.tensor", "mbarrier",
// "Swizzling modes"), not from the generator.
//
// Copies happen as late as they may, when a thread waits for their barrier. Until then what they
// overwrite is undefined, also to units that still read it: those trap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/arrays/tensor_map.h"

namespace kiln::codegen {

// The bytes of a CUtensorMap as the emulator reads them.
struct alignas(64) EmulatedTensorMap {
  const void* begin;
  uint32_t element_bytes, rank, swizzle_bytes;
  uint32_t extents[5], box[5], strides[5];
  uint32_t unused[6];
};
static_assert(sizeof(EmulatedTensorMap) == 128);

inline EmulatedTensorMap EmulatedMapOf(const TensorMap& map, const void* begin) {
  EmulatedTensorMap emulated = {};
  emulated.begin = begin;
  emulated.element_bytes = map.element_bytes;
  emulated.rank = static_cast<uint32_t>(map.extents.size());
  emulated.swizzle_bytes = map.swizzle_bytes;
  std::copy(map.extents.begin(), map.extents.end(), emulated.extents);
  std::copy(map.box.begin(), map.box.end(), emulated.box);
  std::copy(map.strides.begin(), map.strides.end(), emulated.strides + 1);
  return emulated;
}

inline constexpr std::string_view kBulkEmulation = R"cuda(
struct EmulatedTensorMap {
  const char* begin;
  unsigned element_bytes, rank, swizzle_bytes, extents[5], box[5], strides[5];
};
// In the 8 bytes of a barrier.
struct TileBarrier { unsigned expected : 12, missing : 12, phase : 1; int bytes; };
static TileBarrier& BarrierAt(unsigned long long* barrier) {
  if ((size_t)barrier % 8 != 0) __builtin_trap();
  return *reinterpret_cast<TileBarrier*>(barrier);
}
static void EndPhase(TileBarrier& barrier) {
  if (barrier.missing != 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.expected;
  barrier.phase ^= 1;
  ++bulk_events;
}
template <int kBuffers, int kWarps>
void emulated_start_barriers(unsigned long long* filled, unsigned long long* emptied) {
  // What no copy brings, rows that an array does not have, is anything.
  memcpy(SeenByUnits(), __start_kiln_shared, SharedBytes());
  for (int i = 0; i < kBuffers; ++i) {
    BarrierAt(&filled[i]) = {1, 1, 0, 0};
    BarrierAt(&emptied[i]) = {kWarps, kWarps, 0, 0};
  }
}
static void Arrive(unsigned long long* barrier, int bytes) {
  TileBarrier& at = BarrierAt(barrier);
  if (at.missing == 0) __builtin_trap();
  --at.missing;
  at.bytes += bytes;
  ++bulk_events;
  EndPhase(at);
}
static void emulated_release(unsigned long long* barrier) { Arrive(barrier, 0); }
static void emulated_expect_bytes(unsigned long long* barrier, int bytes) { Arrive(barrier, bytes); }
struct BoxCopy { char* to; const EmulatedTensorMap* map; unsigned long long* barrier; int start[5]; };
struct BoxCopies { BoxCopy items[4096]; int count; };
static BoxCopies box_copies[kMaxCluster];  // under way, of each block of the cluster
// fn(address in shared memory, bytes before it in the box, its coordinates) for each element.
template <typename Fn> void VisitBox(const BoxCopy& copy, Fn&& fn) {
  const EmulatedTensorMap& map = *copy.map;
  const size_t begin = __cvta_generic_to_shared(copy.to);
  if (begin % 128 != 0) __builtin_trap();
  unsigned count = 1;
  for (unsigned d = 0; d < map.rank; ++d) count *= map.box[d];
  // Rows that are swizzled take all of the bytes that are, however many of them the box has.
  const unsigned row = map.box[0] * map.element_bytes, pitch = row < map.swizzle_bytes ? map.swizzle_bytes : row;
  const unsigned mask = map.swizzle_bytes == 128 ? 7 : map.swizzle_bytes == 64 ? 3 : map.swizzle_bytes == 32;
  for (unsigned i = 0; i < count; ++i) {
    long long at[5];
    for (unsigned d = 0, rest = i; d < map.rank; rest /= map.box[d++]) at[d] = copy.start[d] + rest % map.box[d];
    const size_t address = begin + (size_t)(i / map.box[0]) * pitch + i % map.box[0] * map.element_bytes;
    fn(address ^ (address >> 7 & mask) << 4, at);
  }
}
static void RunBoxCopy(const BoxCopy& copy) {
  const EmulatedTensorMap& map = *copy.map;
  int bytes = 0;
  VisitBox(copy, [&](size_t address, const long long (&at)[5]) {
    bool is_inside = true;
    size_t offset = at[0] * map.element_bytes;
    for (unsigned d = 0; d < map.rank; ++d) {
      is_inside &= at[d] >= 0 && at[d] < map.extents[d];
      if (d > 0) offset += at[d] * map.strides[d];
    }
    const char zeros[4] = {};
    const char* from = is_inside ? map.begin + offset : zeros;
    memcpy(__start_kiln_shared + address, from, map.element_bytes);
    memcpy(SeenByUnits() + address, from, map.element_bytes);
    bytes += map.element_bytes;
  });
  TileBarrier& barrier = BarrierAt(copy.barrier);
  barrier.bytes -= bytes;
  EndPhase(barrier);
}
template <typename... Start>
void emulated_copy_box(void* to, const void* map, unsigned long long* barrier, Start... start) {
  BoxCopies& mine = box_copies[resident];
  const auto* of = static_cast<const EmulatedTensorMap*>(map);
  if (of->rank != sizeof...(Start) || mine.count == 4096) __builtin_trap();
  const BoxCopy copy = mine.items[mine.count++] = {static_cast<char*>(to), of, barrier, {start...}};
  VisitBox(copy, [&](size_t address, const long long (&)[5]) {
    memset(__start_kiln_shared + address, 0xff, copy.map->element_bytes);
  });
}
// The memory of a block of the pair where this one has p.
static char* InBlock(unsigned block, void* p) {
  if (block == resident) return static_cast<char*>(p);
  return shared_of[block] + (static_cast<char*>(p) - __start_kiln_shared);
}
template <typename... Start>
void emulated_copy_box_to_pair(void* to, const void* map, unsigned long long* barrier, Start... start) {
  const auto* of = static_cast<const EmulatedTensorMap*>(map);
  if (of->rank != sizeof...(Start) || cluster_size != 2) __builtin_trap();
  for (unsigned block = 0; block < 2; ++block) {
    BoxCopies& mine = box_copies[block];
    if (mine.count == 4096) __builtin_trap();
    const BoxCopy copy = mine.items[mine.count++] = {static_cast<char*>(to), of, barrier, {start...}};
    VisitBox(copy, [&](size_t address, const long long (&)[5]) {
      memset(InBlock(block, __start_kiln_shared + address), 0xff, of->element_bytes);
    });
  }
}
static void emulated_release_pair(unsigned long long* barrier) {
  for (unsigned block = 0; block < 2; ++block)
    Arrive(reinterpret_cast<unsigned long long*>(InBlock(block, barrier)), 0);
}
static void emulated_meet_pair() { emulated_cluster_barrier(); }
static void emulated_wait_for(unsigned long long* barrier, unsigned parity) {
  while (true) {
    BoxCopies& mine = box_copies[resident];
    int kept = 0;
    for (int i = 0; i < mine.count; ++i) {
      if (mine.items[i].barrier == barrier) RunBoxCopy(mine.items[i]);
      else mine.items[kept++] = mine.items[i];
    }
    mine.count = kept;
    if (BarrierAt(barrier).phase != parity) return;
    current->spins = true;
    swapcontext(&current->context, &main_context);
  }
}
template <int kThreads> void emulated_barrier_of_computing() {
  if (kThreads != ComputingThreads()) __builtin_trap();
  __syncthreads();
}
// Registers are as many as a thread wants. A thread that waits for its turn passes it before it waits again.
template <int kRegisters> void emulated_give_registers() {}
template <int kRegisters> void emulated_take_registers() {}
template <int kGroups> void emulated_begin_turns() {
  if (kGroups * 128 != ComputingThreads()) __builtin_trap();
}
template <int kGroups> void emulated_wait_for_turn() {
  if (current->has_turn) __builtin_trap();
  current->has_turn = true;
}
template <int kGroups> void emulated_pass_turn() {
  if (!current->has_turn) __builtin_trap();
  current->has_turn = false;
}
// Blocks run one after the other: those before have done all that they do.
template <int kElements, int kThreads, typename T>
void emulated_give_part(const T* sums, T* part, unsigned* ready) {
  for (int i = 0; i < kElements; ++i) part[i * kThreads + threadIdx.x] = sums[i];
  emulated_barrier_of_computing<kThreads>();
  if (threadIdx.x == 0 && (*ready)++ != 0) __builtin_trap();
}
template <int kElements, int kThreads, typename T>
void emulated_add_part(T* sums, const T* part, unsigned* ready) {
  if (threadIdx.x == 0 && (*ready)-- != 1) __builtin_trap();
  emulated_barrier_of_computing<kThreads>();
  for (int i = 0; i < kElements; ++i) sums[i] += part[i * kThreads + threadIdx.x];
}
)cuda";

}  // namespace kiln::codegen
