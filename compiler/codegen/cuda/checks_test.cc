#include "compiler/codegen/cuda/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/programs_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::HasSubstr;

constexpr target::HardwareParams kGpu{.max_shared_memory_per_block_bytes = 48 << 10,
                                      .max_local_memory_per_block_bytes = INT32_MAX,
                                      .max_threads_per_block = 1024,
                                      .max_vthread_extent = 8,
                                      .warp_size = 32};

Status Check(std::string_view text, const target::HardwareParams& hardware = kGpu) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, ir::ParseProgram(text));
  return CheckCudaProgram(program, hardware);
}

std::string Kernel(std::string_view grid, std::string_view block, std::string_view body) {
  return fmt::format(
      "program(a: input float32[8], out: output float32[8]) {{ stage s kernel k grid {} block {} "
      "{{ {} }} }}",
      grid, block, body);
}

Status Refused(std::string_view grid, std::string_view block, std::string_view body) {
  return Check(Kernel(grid, block, body));
}

auto Says(std::string_view text) {
  return StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(text)));
}

TEST(CudaChecks, GoodPrograms) {
  for (std::string_view text : {kTiledMatmul, kConv, kReduction, kOdd}) EXPECT_OK(Check(text));
}

TEST(CudaChecks, Launch) {
  const std::string_view store = "out[0] = a[0] @ s";
  EXPECT_OK(Refused("[1, 1, 1]", "[1024, 1, 1]", store));
  EXPECT_THAT(Refused("[1, 1, 1]", "[1025, 1, 1]", store), Says("1025 threads along x"));
  EXPECT_THAT(Refused("[1, 1, 1]", "[32, 33, 1]", store), Says("1056 threads, at most 1024"));
  EXPECT_THAT(Refused("[1, 1, 1]", "[1, 1, 65]", store), Says("65 threads along z, at most 64"));
  EXPECT_OK(Refused("[2147483647, 65535, 1]", "[1, 1, 1]", store));
  EXPECT_THAT(Refused("[1, 65536, 1]", "[1, 1, 1]", store), Says("65536 blocks along y"));
  EXPECT_THAT(Refused("[2147483648, 1, 1]", "[1, 1, 1]", store), Says("blocks along x"));
}

TEST(CudaChecks, Memory) {
  const auto shared = [](int64_t n) {
    return Kernel("[1, 1, 1]", "[1, 1, 1]",
                  fmt::format("alloc m: shared float32[{}] m[0] = a[0] @ s", n));
  };
  EXPECT_OK(Check(shared(12288)));
  EXPECT_THAT(Check(shared(12289)), Says("kernel 'k': a block needs 49168 bytes of shared memory, "
                                         "there are 49152"));
  target::HardwareParams opt_in = kGpu;
  opt_in.max_shared_memory_per_block_bytes = 227 << 10;
  EXPECT_OK(Check(shared(12289), opt_in));
  EXPECT_THAT(
      Check(Kernel("[1, 1, 1]", "[1, 1, 1]", "alloc m: local float32[131073] m[0] = a[0] @ s")),
      Says("524292 bytes of local buffers, at most 524288"));
}

TEST(CudaChecks, VirtualThreads) {
  EXPECT_OK(Refused("[1, 1, 1]", "[1, 1, 1]", "vthread v in 0..8 { out[v] = a[v] @ s }"));
  EXPECT_THAT(Refused("[1, 1, 1]", "[1, 1, 1]",
                      "vthread v in 0..2 { vthread w in 0..5 { out[0] = a[0] @ s } }"),
              Says("virtual thread loops have 10 iterations, at most 8"));
}

TEST(CudaChecks, Barriers) {
  EXPECT_THAT(Refused("[1, 1, 1]", "[8, 1, 1]", "threadIdx.x t in 0..8 { if t < 4 { barrier } }"),
              Says("barrier stands under a condition"));
  EXPECT_OK(Refused("[8, 1, 1]", "[8, 1, 1]", "blockIdx.x b in 0..8 { if b < 4 { barrier } }"));
  EXPECT_OK(Refused("[1, 1, 1]", "[8, 1, 1]", "for i in 0..8 { if i < 4 { barrier } }"));
}

TEST(CudaChecks, Clusters) {
  const auto cluster = [](int64_t size, int arch) -> Status {
    KILN_ASSIGN_OR_RETURN(
        const ir::Program program,
        ir::ParseProgram(fmt::format(
            "program(a: input float32[8], out: output float32[8]) {{ stage s kernel k grid [1, 1, "
            "1] block [1, 1, 1] cluster {} {{ cluster c in 0..{} {{ out[0] = a[0] @ s }} }} }}",
            size, size)));
    return CheckCudaProgram(program, kGpu,
                            *target::ParseTarget(fmt::format("cuda -arch=sm_{}", arch)));
  };
  for (const int64_t size : {2, 4, 8}) EXPECT_OK(cluster(size, 90));
  EXPECT_THAT(cluster(3, 90), Says("a cluster has 3 blocks, expected 2, 4 or 8"));
  EXPECT_THAT(cluster(16, 90), Says("a cluster has 16 blocks"));
  EXPECT_THAT(cluster(2, 80),
              Says("clusters of 2, which exist from sm_90 on, the target is sm_80"));
  EXPECT_OK(Check(kClusterSum));
  // One block has a part of what they share.
  const std::string half(kClusterSum);
  target::HardwareParams small = kGpu;
  small.max_shared_memory_per_block_bytes = 128;
  EXPECT_OK(Check(half, small));
  small.max_shared_memory_per_block_bytes = 127;
  EXPECT_THAT(Check(half, small), Says("needs 128 bytes of shared memory"));
  EXPECT_THAT(
      Check("program(a: input float32[8], out: output float32[8]) { stage s kernel k grid [1, "
            "1, 1] block [1, 1, 1] cluster 2 { cluster c in 0..2 { if c < 1 { "
            "cluster_barrier } } } }"),
      Says("barrier stands under a condition"));
}

}  // namespace
}  // namespace kiln::codegen
