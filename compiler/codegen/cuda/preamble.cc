#include "compiler/codegen/cuda/preamble.h"

#include <string_view>

#include "compiler/codegen/cuda/block_order.h"
#include "compiler/codegen/cuda/computed_factor.h"
#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/quad_stores.h"
#include "compiler/codegen/cuda/value_functions.h"
#include "compiler/instructions/async_copy.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/filled.h"
#include "compiler/instructions/matrix_unit_text.h"

namespace kiln::codegen {
namespace {

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
  if (preamble.async_copies) text += instructions::AsyncCopyDefinitions();
  if (preamble.cluster) text += kClusters;
  if (preamble.block_order) text += BlockOrderDefinition();
  if (preamble.bulk_copies) text += instructions::BulkCopyDefinitions();
  if (preamble.bulk_visits) text += instructions::TurnDefinitions();
  if (!preamble.matrix_units.empty())
    text += instructions::MatrixUnitDefinitions(preamble.matrix_units, preamble.unzips_bytes);
  if (preamble.flushed_powers) text += kFlushedPowers;
  for (const std::string_view type : preamble.packed_types) {
    const bool has_bytes = type.starts_with('e');
    text += has_bytes ? instructions::Filled(kPackBytes, {{"$N", type}})
                      : instructions::Filled(kPack, {{"$P", type}});
  }
  text += PairDefinitions(preamble.pairs);
  if (preamble.quads) text += QuadDefinition();
  if (!preamble.warpgroup_units.empty())
    text += instructions::WarpgroupDefinitions(preamble.warpgroup_units);
  return text;
}

}  // namespace kiln::codegen
