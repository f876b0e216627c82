// Shows what limits a tile of a product by units of four warps (wgmma) whose operands the bulk copy
// engine (TMA) brings, on one H100 or H200. It runs the loop over the sum alone, without results,
// for tiles of several shapes.
//
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o matrix_unit_tiles
//     matrix_unit_tiles.cu
//   ./matrix_unit_tiles
//
// float16, 1536 x 1536 x 1536, a along the sum, b across it ([k][n]), one block on each
// multiprocessor. For each tile it prints the cycles that 64 terms of the sum take (the units alone
// take rows * columns * 64 / 2048), the bytes of shared memory that are written and read in a
// cycle, and the bytes of the L2 cache that are read. `panel` is the number of bytes of a row of b
// that lie together and are swizzled together; `last` is the number of bytes of the last panel that
// are copied.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kExtent = 1536, kDepth = 64, kLineBytes = 128, kElementBytes = 2, kMaxBlocks = 132;
constexpr int kIterations = 480, kMaxStages = 6, kSharedBytes = 220 * 1024, kAlignment = 1024;

void Check(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, "%s failed with error %d\n", what, error);
  std::exit(1);
}

// ---- instructions

template <int kColumns>
__device__ void Multiply(float (&c)[kColumns / 2], uint64_t a, uint64_t b);

#define NAMES8(a, b, c, d, e, f, g, h) \
  "%" #a ", %" #b ", %" #c ", %" #d ", %" #e ", %" #f ", %" #g ", %" #h
#define NAMES48                                                                                   \
  NAMES8(0, 1, 2, 3, 4, 5, 6, 7)                                                                  \
  ", " NAMES8(8, 9, 10, 11, 12, 13, 14, 15) ", " NAMES8(                                          \
      16, 17, 18, 19, 20, 21, 22, 23) ", " NAMES8(24, 25, 26, 27, 28, 29, 30,                     \
                                                  31) ", " NAMES8(32, 33, 34, 35, 36, 37, 38,     \
                                                                  39) ", " NAMES8(40, 41, 42, 43, \
                                                                                  44, 45, 46, 47)
#define NAMES64 \
  NAMES48 ", " NAMES8(48, 49, 50, 51, 52, 53, 54, 55) ", " NAMES8(56, 57, 58, 59, 60, 61, 62, 63)
#define NAMES72 NAMES64 ", " NAMES8(64, 65, 66, 67, 68, 69, 70, 71)
#define NAMES80 NAMES72 ", " NAMES8(72, 73, 74, 75, 76, 77, 78, 79)
#define NAMES96 \
  NAMES80 ", " NAMES8(80, 81, 82, 83, 84, 85, 86, 87) ", " NAMES8(88, 89, 90, 91, 92, 93, 94, 95)
#define NAMES128                                                                               \
  NAMES96 ", " NAMES8(96, 97, 98, 99, 100, 101, 102, 103) ", " NAMES8(                         \
      104, 105, 106, 107, 108, 109, 110, 111) ", " NAMES8(112, 113, 114, 115, 116, 117, 118,   \
                                                          119) ", " NAMES8(120, 121, 122, 123, \
                                                                           124, 125, 126, 127)

#define SUMS8(i)                                                                              \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define SUMS48 SUMS8(0), SUMS8(8), SUMS8(16), SUMS8(24), SUMS8(32), SUMS8(40)
#define SUMS64 SUMS48, SUMS8(48), SUMS8(56)
#define SUMS72 SUMS64, SUMS8(64)
#define SUMS80 SUMS72, SUMS8(72)
#define SUMS96 SUMS80, SUMS8(80), SUMS8(88)
#define SUMS128 SUMS96, SUMS8(96), SUMS8(104), SUMS8(112), SUMS8(120)

#define MULTIPLY(kColumns, kSums, kA, kB)                                                        \
  template <>                                                                                    \
  __device__ __forceinline__ void Multiply<kColumns>(float(&c)[kSums], uint64_t a, uint64_t b) { \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #kColumns "k16.f32.f16.f16 {" NAMES##kSums  \
                 "}, %" #kA ", %" #kB ", 1, 1, 1, 0, 1;"                                         \
                 : SUMS##kSums                                                                   \
                 : "l"(a), "l"(b));                                                              \
  }
MULTIPLY(96, 48, 48, 49)
MULTIPLY(128, 64, 64, 65)
MULTIPLY(144, 72, 72, 73)
MULTIPLY(160, 80, 80, 81)
MULTIPLY(192, 96, 96, 97)
MULTIPLY(256, 128, 128, 129)

template <int kSwizzle, int kLeading, int kStride>
__device__ uint64_t Descriptor(uint32_t start) {
  constexpr uint64_t kMode = kSwizzle == 128 ? 1 : kSwizzle == 64 ? 2 : 3;
  return uint64_t{(start & 0x3ffff) >> 4} | uint64_t{kLeading >> 4} << 16 |
         uint64_t{kStride >> 4} << 32 | kMode << 62;
}

__device__ void Start(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ void Expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ void Release(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ void Wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra done; bra "
      "again; done: }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ void Copy(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

// ---- the loop

template <int kColumns_, int kGroups_, int kPanelBytes_, int kLastBytes_>
struct Tile {
  static constexpr int kColumns = kColumns_, kGroups = kGroups_, kRows = 64 * kGroups;
  static constexpr int kPanelBytes = kPanelBytes_, kLastBytes = kLastBytes_;
  static constexpr int kPanelColumns = kPanelBytes / kElementBytes,
                       kPanels = (kColumns + kPanelColumns - 1) / kPanelColumns,
                       kPanelSize = kDepth * kPanelBytes;
  static constexpr int kFirst = kRows * kLineBytes, kStage = kFirst + kPanels * kPanelSize,
                       kStages = std::min(kMaxStages, kSharedBytes / kStage);
  static constexpr int kCopied = kFirst + (kPanels - 1) * kPanelSize + kDepth * kLastBytes;
  // Bytes that the units read.
  static constexpr int kRead = kGroups * (64 * kLineBytes + kDepth * kColumns * kElementBytes);
  static constexpr int kTileColumns = (kExtent + kColumns - 1) / kColumns,
                       kTileRows = (kExtent + kRows - 1) / kRows,
                       kBlocks = std::min(kMaxBlocks, kTileRows* kTileColumns);
};

template <typename T>
__global__ void __launch_bounds__(128 * T::kGroups + 32, 1)
    Loop(const __grid_constant__ CUtensorMap first, const __grid_constant__ CUtensorMap panels,
         const __grid_constant__ CUtensorMap last, long long* cycles, float* out) {
  extern __shared__ unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * T::kStages];
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + kAlignment - 1) /
                        kAlignment * kAlignment;
  const auto filled = static_cast<uint32_t>(__cvta_generic_to_shared(barriers)),
             emptied = filled + 8 * T::kStages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < T::kStages; ++i) {
      Start(filled + 8 * i, 1);
      Start(emptied + 8 * i, T::kGroups);
    }
  }
  __syncthreads();
  asm volatile("fence.proxy.async;" ::: "memory");
  const int row = blockIdx.x / T::kTileColumns * T::kRows,
            column = blockIdx.x % T::kTileColumns * T::kColumns,
            group = static_cast<int>(threadIdx.x) / 128;
  const long long start = clock64();
  if (threadIdx.x == 128 * T::kGroups) {
    for (int i = 0; i < kIterations; ++i) {
      const int s = i % T::kStages, k = i % (kExtent / kDepth) * kDepth;
      if (i >= T::kStages) Wait(emptied + 8 * s, (i / T::kStages + 1) % 2);
      Expect(filled + 8 * s, T::kCopied);
      const uint32_t stage = base + s * T::kStage, second = stage + T::kFirst;
      Copy(stage, &first, filled + 8 * s, k, row);
      for (int p = 0; p < T::kPanels; ++p)
        Copy(second + p * T::kPanelSize, p + 1 < T::kPanels ? &panels : &last, filled + 8 * s,
             column + p * T::kPanelColumns, k);
    }
  } else if (group < T::kGroups) {
    float sums[T::kColumns / 2] = {};
    for (int i = 0; i < kIterations; ++i) {
      const int s = i % T::kStages;
      const uint32_t a = base + s * T::kStage + group * 64 * kLineBytes,
                     b = base + s * T::kStage + T::kFirst;
      Wait(filled + 8 * s, i / T::kStages % 2);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k = 0; k < 4; ++k)
        Multiply<T::kColumns>(sums, Descriptor<kLineBytes, 16, 8 * kLineBytes>(a + k * 32),
                              Descriptor<T::kPanelBytes, T::kPanelSize, 8 * T::kPanelBytes>(
                                  b + k * 16 * T::kPanelBytes));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (threadIdx.x % 128 == 0 && i > 0) Release(emptied + 8 * ((i - 1) % T::kStages));
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float sum = 0;
    for (const float part : sums) sum += part;
    // The test makes the compiler compute the sums.
    if (sum == 12345.f) out[0] = sum;
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - start;
  }
}

// ---- on the host

CUtensorMap MapOf(void* array, int columns, int rows, int swizzle) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  Check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                         cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
  CUtensorMap map;
  const cuuint64_t extents[] = {kExtent, kExtent}, strides[] = {kExtent * kElementBytes};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(columns), static_cast<cuuint32_t>(rows)},
                   steps[] = {1, 1};
  Check(reinterpret_cast<Encode>(encode)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, array, extents,
                                         strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                         : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                         : CU_TENSOR_MAP_SWIZZLE_32B,
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

template <typename T>
void Measure(void* a, void* b, long long* cycles, float* out) {
  const int shared = T::kStages * T::kStage + kAlignment;
  Check(cudaFuncSetAttribute(Loop<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "cudaFuncSetAttribute");
  const CUtensorMap first = MapOf(a, kDepth, T::kRows, kLineBytes),
                    panels = MapOf(b, T::kPanelColumns, kDepth, T::kPanelBytes),
                    last = MapOf(b, T::kLastBytes / kElementBytes, kDepth, T::kPanelBytes);
  for (int i = 0; i < 3; ++i)
    Loop<T><<<T::kBlocks, 128 * T::kGroups + 32, shared>>>(first, panels, last, cycles, out);
  std::vector<long long> taken(T::kBlocks);
  Check(cudaMemcpy(taken.data(), cycles, taken.size() * sizeof(long long), cudaMemcpyDeviceToHost),
        "the loop");
  std::nth_element(taken.begin(), taken.begin() + T::kBlocks / 2, taken.end());
  const double step = static_cast<double>(taken[T::kBlocks / 2]) / kIterations;
  std::printf("| %d x %d | %d, %d | %d | %d | %.0f | %.0f | %.0f + %.0f | %.0f |\n", T::kRows,
              T::kColumns, T::kPanelBytes, T::kLastBytes, T::kBlocks, T::kStages,
              T::kRows * T::kColumns * kDepth / 2048.0, step, T::kCopied / step, T::kRead / step,
              T::kCopied * T::kBlocks / step);
}

}  // namespace

int main() {
  void *a, *b;
  long long* cycles;
  float* out;
  const size_t bytes = size_t{kExtent} * kExtent * kElementBytes;
  Check(cudaMalloc(&a, bytes), "cudaMalloc");
  Check(cudaMalloc(&b, bytes), "cudaMalloc");
  Check(cudaMalloc(&cycles, kMaxBlocks * sizeof(long long)), "cudaMalloc");
  Check(cudaMalloc(&out, sizeof(float)), "cudaMalloc");
  Check(cudaMemset(a, 0, bytes), "cudaMemset");
  Check(cudaMemset(b, 0, bytes), "cudaMemset");
  std::printf(
      "| tile | panel, last | blocks | stages | cycles of the units | cycles | shared bytes a "
      "cycle, "
      "written + read | L2 bytes a cycle |\n|---|---|---|---|---|---|---|---|\n");
  Measure<Tile<256, 2, 128, 128>>(a, b, cycles, out);
  Measure<Tile<192, 2, 128, 128>>(a, b, cycles, out);
  Measure<Tile<128, 3, 128, 128>>(a, b, cycles, out);
  Measure<Tile<128, 2, 128, 128>>(a, b, cycles, out);
  Measure<Tile<160, 2, 64, 64>>(a, b, cycles, out);
  Measure<Tile<160, 2, 128, 64>>(a, b, cycles, out);
  Measure<Tile<144, 2, 32, 32>>(a, b, cycles, out);
  Measure<Tile<144, 2, 128, 128>>(a, b, cycles, out);
  Measure<Tile<144, 2, 128, 32>>(a, b, cycles, out);
  Measure<Tile<96, 3, 64, 64>>(a, b, cycles, out);
  Measure<Tile<96, 3, 128, 64>>(a, b, cycles, out);
}
