// Tests an online softmax whose keys and values the bulk copy engine brings: the CUDA text computes
// what the program says, and the program what the computation says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/gpu_validity.h"
#include "search/space/online_copies.h"
#include "search/space/search_space.h"
#include "tests/schedules/check_program.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;

dag::DagPtr Attention(const std::string& args, ir::Type type = ir::kFloat16) {
  return dag::OpCase{"attention", args.c_str(), "", type}.Build();
}

// Returns the state with the tile, and with the hint.
StatusOr<State> WithBulkCopies(const dag::DagPtr& dag, std::string_view tile) {
  const int last = dag->size() - 1;
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(fmt::format(
                                              R"([["OS", {}, {}], ["PR", {}, 0, "bulk_copies$1"]])",
                                              last, tile, last)));
  return schedule::Replay(dag, steps);
}

target::HardwareParams Hardware() {
  target::HardwareParams hardware;
  hardware.max_shared_memory_per_block_bytes = 227 << 10;
  hardware.max_threads_per_block = 1024;
  return hardware;
}

void ExpectRight(const dag::DagPtr& dag, std::string_view tile) {
  SCOPED_TRACE(fmt::format("{} {}", dag::PrintDag(*dag), tile));
  ASSERT_OK_AND_ASSIGN(const State state, WithBulkCopies(dag, tile));
  EXPECT_TRUE(CanBringTiles(state));
  ASSERT_OK(CheckByInterpreter(MakeWorkload("bulk", dag, 3), state, /*gpu=*/true));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  ASSERT_OK(
      codegen::CheckCudaProgram(program, Hardware(), *target::ParseTarget("cuda -arch=sm_90")));
  ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  EXPECT_EQ(source.kernels[0].tensor_maps.size(), 2u);
  const size_t kernel = source.text.find("__global__ void");
  EXPECT_NE(source.text.find("copy_box(", kernel), source.text.npos);
  const bool has_turns = source.text.find("wait_for_turn<", kernel) != source.text.npos;
  EXPECT_EQ(has_turns, state.online()->warps > 4);
  ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
}

// The cases have one to three groups of warps, lengths that tiles do not divide, tiles that no row
// of a block sees, and rows of heads that are padded.
TEST(OnlineBulkCopies, ComputeWhatTheProgramSays) {
  ExpectRight(Attention("2,130,64,causal=1"), "16, 32, 8, 2, 2");
  ExpectRight(Attention("1,200,32,causal=1"), "16, 64, 4, 2, 2");
  ExpectRight(Attention("1,100,40,keys=170", ir::kBFloat16), "16, 32, 8, 3, 2");
  ExpectRight(Attention("1,192,16"), "16, 48, 12, 2, 2");
  ExpectRight(Attention("1,70,32,keys=600"), "16, 128, 4, 2, 2");
  ExpectRight(Attention("1,130,16,causal=1,keys=600"), "16, 128, 4, 3, 2");
  ExpectRight(Attention("2,130,16,keys=170"), "16, 32, 4, 3, 2");
}

// Keys and values are parts of one tensor.
TEST(OnlineBulkCopies, BringPartsOfATensor) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(
input QKV: float16[150, 3, 2, 32]
S[b: 2, i: 150, j: 150] = sum(k: 32) float32(QKV[i, 0, b, k])*float32(QKV[j, 1, b, k])
M[b: 2, i: 150] = max(n: 150) S[b, i, n]*0.25
P[b: 2, i: 150, j: 150] = exp(S[b, i, j]*0.25 - M[b, i])
L[b: 2, i: 150] = sum(n: 150) P[b, i, n]
O[b: 2, i: 150, d: 32] = sum(n: 150) float32(float16(P[b, i, n]))*float32(QKV[n, 2, b, d])
out[i: 150, b: 2, d: 32] = float16(O[b, i, d]/L[b, i])
)"));
  ExpectRight(dag, "16, 32, 8, 2, 2");
}

TEST(OnlineBulkCopies, BringKeysByColumns) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(
input Q: float16[70, 32]
input K: float16[32, 136]
input V: float16[24, 136]
S[i: 70, j: 136] = sum(k: 32) float32(Q[i, k])*float32(K[k, j])
M[i: 70] = max(n: 136) S[i, n]*0.25
P[i: 70, j: 136] = exp(S[i, j]*0.25 - M[i])
L[i: 70] = sum(n: 136) P[i, n]
O[i: 70, d: 24] = sum(n: 136) float32(float16(P[i, n]))*float32(V[d, n])
out[i: 70, d: 24] = float16(O[i, d]/L[i])
)"));
  ExpectRight(dag, "16, 64, 4, 3, 2");
}

// The emulator refuses a text in which groups of warps pass turns for which they have not waited. A
// text that never empties a buffer comes to no end.
TEST(OnlineBulkCopies, EveryCallIsNeeded) {
  ASSERT_OK_AND_ASSIGN(const State state,
                       WithBulkCopies(Attention("1,128,16,keys=160"), "16, 32, 8, 2, 2"));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  EXPECT_OK(codegen::EmulateWithout(program, "nothing").status());
  for (const std::string_view call : {"wait_for_turn<2>();", "fence_async_proxy();"}) {
    SCOPED_TRACE(call);
    EXPECT_DEATH((void)codegen::EmulateWithout(program, call), "");
  }
  EXPECT_FALSE(
      codegen::EmulateWithout(program, "if (threadIdx.x % 32 == 0) release(", "(void)(").ok());
}

TEST(OnlineBulkCopies, AreRefusedWithAReason) {
  const auto refused = [](const std::string& args, std::string_view tile) {
    const State state = *WithBulkCopies(Attention(args), tile);
    EXPECT_FALSE(CanBringTiles(state)) << args << " " << tile;
    return std::string(
        Message(codegen::GenerateCuda(*lower::Lower(state, {.gpu = true})).status()));
  };
  EXPECT_THAT(refused("2,130,64", "16, 32, 4, 1, 2"), HasSubstr("has no ring of buffers"));
  EXPECT_THAT(refused("2,64,64", "16, 64, 4, 2, 2"), HasSubstr("no loop has tiles"));
  EXPECT_THAT(refused("2,130,64", "16, 32, 4, 2, 1"), HasSubstr("is not swizzled"));
}

// Several groups of warps share out all registers of a block, on which ptxas must have counted.
TEST(OnlineBulkCopies, CompileWithoutSpills) {
  if (!codegen::FindNvrtc().ok()) GTEST_SKIP() << "no NVRTC";
  for (const auto& [args, tile, registers] : {std::tuple{"6,2560,128", "16, 160, 8, 2, 2", 168},
                                              {"32,2048,128,causal=1", "16, 128, 8, 2, 2", 168},
                                              {"16,1024,64", "16, 128, 12, 2, 2", 128},
                                              {"6,2560,64,causal=1", "16, 128, 4, 2, 2", 0}}) {
    SCOPED_TRACE(fmt::format("{}: {}", args, tile));
    ASSERT_OK_AND_ASSIGN(const State state, WithBulkCopies(Attention(args), tile));
    EXPECT_OK(CheckGpuLimits(state, Hardware(), 8));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
    EXPECT_EQ(cubin.log, "");
    ASSERT_EQ(cubin.kernels.size(), 1u);
    EXPECT_EQ(cubin.kernels[0].spill_store_bytes, 0);
    if (registers > 0) {
      EXPECT_EQ(cubin.kernels[0].registers, registers);
    }
  }
}

}  // namespace
}  // namespace kiln::search
