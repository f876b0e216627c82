#include "compiler/instructions/bulk_copy.h"

namespace kiln::instructions {

std::string_view BulkCopyDefinitions() {
  return R"cuda(// From sm_90 on: tiles that the bulk copy engine brings, told by one thread.
struct alignas(64) TensorMap {
  unsigned long long words[16];  // CUtensorMap
};
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// A tile is there when the engine has brought it; its buffer is empty when each warp has said so.
template <int kBuffers, int kWarps>
__device__ __forceinline__ void start_barriers(unsigned long long* filled, unsigned long long* emptied) {
#pragma unroll
  for (int i = 0; i < kBuffers; ++i) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&filled[i])) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&emptied[i])), "r"(kWarps)
                 : "memory");
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Until the phase of this parity has ended.
__device__ __forceinline__ void wait_for(unsigned long long* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}\n" ::"r"(shared_address(barrier)), "r"(parity)
      : "memory");
}
__device__ __forceinline__ void release(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned long long* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z, int w, int v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}
// A pair of blocks is a cluster: all of their threads meet; a box is copied into the shared memory
// of both; each releases what both have at this place.
__device__ __forceinline__ void meet_pair() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)),
      "r"(x), "r"(y), "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)), "l"(map),
      "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(to)), "l"(map),
      "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "h"(static_cast<unsigned short>(3))
      : "memory");
}
// The units have read for a warp, which has waited for them: nothing is to be made visible to the
// other block, as .release.cluster would, by a fence of some hundred nanoseconds.
__device__ __forceinline__ void release_pair(unsigned long long* barrier) {
#pragma unroll
  for (int block = 0; block < 2; ++block) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_address(barrier)),
        "r"(block) : "memory");
  }
}
// The threads that compute wait for each other.
template <int kThreads>
__device__ __forceinline__ void barrier_of_computing() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}
// A part of the sums of all threads, for a block that comes later; and of another block, added.
template <int kElements, int kThreads, typename T>
__device__ __forceinline__ void give_part(const T* sums, T* part, unsigned* ready) {
#pragma unroll
  for (int i = 0; i < kElements; ++i) part[i * kThreads + threadIdx.x] = sums[i];
  __threadfence();
  barrier_of_computing<kThreads>();
  if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(ready) : "memory");
}
template <int kElements, int kThreads, typename T>
__device__ __forceinline__ void add_part(T* sums, const T* part, unsigned* ready) {
  if (threadIdx.x == 0) {
    unsigned is_ready;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(is_ready) : "l"(ready) : "memory");
    } while (is_ready == 0);
    *ready = 0;  // for the next run
  }
  barrier_of_computing<kThreads>();
#pragma unroll
  for (int i = 0; i < kElements; ++i) sums[i] += __ldcg(&part[i * kThreads + threadIdx.x]);
}

)cuda";
}

std::string_view TurnDefinitions() {
  return R"cuda(// Of four warps together: from here on each of their threads has so many registers.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
// Groups of four warps begin products in turn. The barrier of a group is reached by its own
// threads, which wait, and by those of the group before, which go on.
template <int kGroups>
__device__ __forceinline__ void pass_turn() {
  const unsigned next = threadIdx.x / 128 + 1;
  asm volatile("bar.arrive %0, 256;" ::"r"(next == kGroups ? 2 : next + 2) : "memory");
}
template <int kGroups>
__device__ __forceinline__ void wait_for_turn() {
  asm volatile("bar.sync %0, 256;" ::"r"(threadIdx.x / 128 + 2) : "memory");
}
template <int kGroups>
__device__ __forceinline__ void begin_turns() {
  if (threadIdx.x / 128 + 1 == kGroups) pass_turn<kGroups>();
}

)cuda";
}

}  // namespace kiln::instructions
