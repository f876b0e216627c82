#include "compiler/codegen/cuda/preamble.h"

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/codegen/cuda/block_order.h"
#include "compiler/codegen/cuda/bulk_copies.h"
#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/quad_stores.h"
#include "compiler/codegen/cuda/value_functions.h"

namespace kiln::codegen {
namespace {

// From sm_80 on copies to shared memory that need no registers and go on beside the thread.
constexpr std::string_view kAsyncCopies = R"cuda(#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// 4, 8 or 16 bytes.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(kBytes)
                 : "memory");
  }
}
// Zeros where the condition does not hold; then nothing is read.
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = condition ? kBytes : 0;
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
// What this thread copied since the last time is a group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups of this thread but the newest kPending.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#else
template <int kBytes>
struct __align__(kBytes) copied { unsigned words[kBytes / 4]; };
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) = *static_cast<const copied<kBytes>*>(from);
}
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) =
      condition ? *static_cast<const copied<kBytes>*>(from) : copied<kBytes>();
}
__device__ __forceinline__ void commit_copies() {}
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {}
#endif

)cuda";

// From sm_90 on blocks of a cluster read each other's shared memory.
constexpr std::string_view kClusters =
    R"cuda(// What is at the same place of the shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ const T* in_block(const T* mine, int block) {
  const T* theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(block));
  return theirs;
}
// All threads of the cluster meet; what they stored in shared memory before, all see.
__device__ __forceinline__ void cluster_barrier() {
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
  // Does not wait for global memory.
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The last one: a block may end, for none reads its shared memory any more.
__device__ __forceinline__ void leave_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

)cuda";

// From sm_80 on: products of tiles by all threads of a warp together. Which thread has which element
// is in PTX ISA, "Matrix Fragments for mma". $N is a part of a function's name, $P of its
// instruction's.
constexpr std::string_view kLoadTiles =
    R"cuda(__device__ __forceinline__ void load_tiles$N(unsigned& a, unsigned& b, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2$P.shared.b16 {%0, %1}, [%2];"
               : "=r"(a), "=r"(b)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ __forceinline__ void load_tiles$N(unsigned& a, unsigned& b, unsigned& c, unsigned& d,
                                           const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4$P.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
)cuda";
// $T and $C: a sum in C and its register, $S in PTX; $K: the depth.
constexpr std::string_view kMultiplyTiles =
    R"cuda(// c += a b, tiles of 16 x $K and $K x 8.
__device__ __forceinline__ void multiply_tiles_$P($T& c0, $T& c1, $T& c2, $T& c3,
                                                   const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k$K.row.col.$S.$P.$P.$S {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+$C"(c0), "+$C"(c1), "+$C"(c2), "+$C"(c3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
)cuda";

constexpr std::string_view kRoundTiles =
    R"cuda(// To 10 bits of the mantissa, halves away from zero.
template <int kTiles, int kParts>
__device__ __forceinline__ void round_tiles(unsigned (&tiles)[kTiles][kParts]) {
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kParts; ++j)
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tiles[i][j]) : "f"(__uint_as_float(tiles[i][j])));
  }
}
)cuda";

constexpr std::string_view kUnzipBytes =
    R"cuda(// Registers with two pairs of bytes each, x of the terms before those of y, or, in the upper two of
// four threads, behind them: then the first bytes of all pairs in x, in the order of their terms, and
// the second ones in y.
__device__ __forceinline__ void unzip_bytes(unsigned& x, unsigned& y, int lane) {
  const bool swapped = lane % 4 >= 2;
  const unsigned first = __byte_perm(x, y, swapped ? 0x2064 : 0x6420);
  y = __byte_perm(x, y, swapped ? 0x3175 : 0x7531);
  x = first;
}
)cuda";

// $P: the type in PTX.
constexpr std::string_view kPack =
    R"cuda(// Two floats, rounded, as neighbours in a register.
__device__ __forceinline__ unsigned pack_$P(float first, float second) {
  unsigned pair;
  asm("cvt.rn.$Px2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

)cuda";

// $N: its short name.
constexpr std::string_view kPackBytes =
    R"cuda(// Two floats, rounded, as neighbouring bytes of a register.
__device__ __forceinline__ unsigned pack_$N(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.$Nx2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return float_to_$N(first).bits | float_to_$N(second).bits << 8;
#endif
}

)cuda";

constexpr std::string_view kFlushedPowers =
    R"cuda(// 2 to the power of x; 0 below 2^-126.
__device__ __forceinline__ float flushed_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

)cuda";

using Replacements = std::initializer_list<std::pair<std::string_view, std::string_view>>;

std::string Filled(std::string_view definition, Replacements values) {
  return absl::StrReplaceAll(
      {definition.data(), definition.size()},
      std::vector<std::pair<std::string, std::string>>(values.begin(), values.end()));
}

std::string MultiplyTiles(const ir::MatrixUnit& unit) {
  const bool is_float = unit.sum.is_float();
  return Filled(kMultiplyTiles, {{"$P", unit.name},
                                 {"$K", std::to_string(unit.depth())},
                                 {"$T", is_float ? "float" : "int"},
                                 {"$C", is_float ? "f" : "r"},
                                 {"$S", is_float ? "f32" : "s32"}});
}

std::string MatrixUnits(const CudaPreamble& preamble) {
  std::string text =
      "// Two or four tiles of 8 rows of 16 bytes in shared memory. Thread 8*i + r of the warp "
      "says\n"
      "// where row r of tile i is. Of each tile thread t gets bytes 4*(t%4) to 4*(t%4) + 3 of row "
      "t/4.\n" +
      Filled(kLoadTiles, {{"$N", ""}, {"$P", ""}}) +
      "// The same of the transposed tiles, whose elements are 16 bits.\n" +
      Filled(kLoadTiles, {{"$N", "_transposed"}, {"$P", ".trans"}});
  bool rounds = false;
  for (const ir::MatrixUnit* unit : preamble.matrix_units) {
    text += MultiplyTiles(*unit);
    rounds |= unit->rounds;
  }
  if (rounds) text += kRoundTiles;
  if (preamble.unzips_bytes) text += kUnzipBytes;
  return text + "\n";
}

}  // namespace

void CudaPreamble::Use(ir::Type type) {
  f16 |= type == ir::kFloat16;
  bf16 |= type == ir::kBFloat16;
  e4m3 |= type == ir::kFloat8E4M3;
  e5m2 |= type == ir::kFloat8E5M2;
}

std::string PreambleText(const CudaPreamble& preamble) {
  std::string text =
      NarrowFloatDefinitions(preamble.f16, preamble.bf16, preamble.e4m3, preamble.e5m2);
  for (const auto& [name, definition] : preamble.vector_types) text += definition + '\n';
  if (preamble.sigmoid) {
    text +=
        "__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n"
        "__device__ __forceinline__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }\n\n";
  }
  if (preamble.float_extremes) text += ExtremesDefinition(/*of_double=*/false);
  if (preamble.double_extremes) text += ExtremesDefinition(/*of_double=*/true);
  if (preamble.float_to_int) text += ConversionDefinitions(/*of_double=*/false);
  if (preamble.double_to_int) text += ConversionDefinitions(/*of_double=*/true);
  if (preamble.floor_div) {
    text +=
        "// Rounds towards minus infinity.\n"
        "template <typename T>\n"
        "__device__ __forceinline__ T floor_div(T a, T b) {\n"
        "  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);\n"
        "}\n\n";
  }
  if (preamble.floor_mod) {
    text +=
        "// The remainder of a division that rounds towards minus infinity.\n"
        "template <typename T>\n"
        "__device__ __forceinline__ T floor_mod(T a, T b) {\n"
        "  const T r = a % b;\n"
        "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"
        "}\n\n";
  }
  if (preamble.swizzle) {
    text +=
        "// Where element i is, of lines of 128 bytes whose pieces of 16 bytes are permuted so "
        "that "
        "those of\n// neighbouring lines are in different banks.\n"
        "template <int kMask>\n"
        "__device__ __forceinline__ int swizzled(int i) { return i ^ (i >> 3 & kMask); }\n\n";
  }
  if (preamble.async_copies) text += kAsyncCopies;
  if (preamble.cluster) text += kClusters;
  if (preamble.block_order) text += BlockOrderDefinition();
  if (preamble.bulk_copies) text += BulkCopyDefinitions();
  if (!preamble.matrix_units.empty()) text += MatrixUnits(preamble);
  if (preamble.flushed_powers) text += kFlushedPowers;
  for (const std::string_view type : preamble.packed_types) {
    const bool has_bytes = type.starts_with('e');
    text += has_bytes ? Filled(kPackBytes, {{"$N", type}}) : Filled(kPack, {{"$P", type}});
  }
  if (preamble.quads) text += QuadDefinition();
  if (!preamble.warpgroup_units.empty()) text += WarpgroupDefinitions(preamble.warpgroup_units);
  return text;
}

}  // namespace kiln::codegen
