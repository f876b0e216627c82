#include "compiler/lower/online_softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln::lower {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// `tile` is [rows, keys, warps, depth, matrix_unit, ...] of the last stage.
StatusOr<schedule::State> Scheduled(const dag::DagPtr& dag, std::string_view tile) {
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(fmt::format("[[\"OS\", {}, {}]]",
                                                                           dag->size() - 1, tile)));
  return schedule::Replay(dag, steps);
}

StatusOr<ir::Program> Lowered(const dag::DagPtr& dag, std::string_view tile) {
  KILN_ASSIGN_OR_RETURN(const schedule::State state, Scheduled(dag, tile));
  return Lower(state, {.gpu = true});
}

// The program is well formed, reads back, has no races, and computes the values of the DAG.
void ExpectRight(const dag::DagPtr& dag, std::string_view tile, double tolerance = 2e-3) {
  SCOPED_TRACE(fmt::format("{}\n{}", tile, dag::PrintDag(*dag)));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, Lowered(dag, tile));
  ASSERT_OK(ir::Verify(program));
  const std::string text = ir::ProgramText(program);
  ASSERT_OK_AND_ASSIGN(const ir::Program read, ir::ParseProgram(text));
  EXPECT_TRUE(ir::Equal(read, program));
  std::vector<ir::NDArray> inputs = dag::RandomInputs(*dag, 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> want, dag::Evaluate(*dag, inputs));
  ir::NDArray output(want[0].type(), want[0].shape());
  output.Poison();
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& input : inputs) arguments.push_back(&input);
  arguments.push_back(&output);
  SCOPED_TRACE(text);
  ASSERT_OK(ir::Interpret(program, arguments));
  for (int64_t i = 0; i < output.num_elements(); ++i) {
    ASSERT_NEAR(output.GetDouble(i), want[0].GetDouble(i), tolerance)
        << fmt::format("at [{}]", fmt::join(output.Unflatten(i), ", "));
  }
}

dag::DagPtr Attention(std::string_view args, ir::Type type = ir::kFloat16) {
  StatusOr<dag::DagPtr> dag = dag::BuildOp("attention", args, {.dtype = type});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *std::move(dag);
}

TEST(OnlineSoftmax, EveryLength) {
  for (const int rows : {1, 7, 16, 49, 128}) {
    for (const bool causal : {false, true}) {
      const dag::DagPtr dag = Attention(fmt::format("2,{},8,causal={:d}", rows, causal));
      ExpectRight(dag, "16, 16, 1, 1, 1");
      ExpectRight(dag, "16, 32, 2, 2, 1");
      ExpectRight(dag, "32, 16, 2, 3, 1");
      ExpectRight(dag, "16, 32, 4, 1, 2");
      ExpectRight(dag, "16, 16, 8, 2, 2");
      ExpectRight(dag, "16, 32, 4, 3, 2");
    }
  }
}

TEST(OnlineSoftmax, WarpsShareTheKeys) {
  for (const int rows : {1, 7, 33, 64, 100}) {
    for (const bool causal : {false, true}) {
      const dag::DagPtr dag = Attention(fmt::format("2,{},8,causal={:d},values=12", rows, causal));
      ExpectRight(dag, "16, 32, 1, 1, 1, 2");
      ExpectRight(dag, "16, 64, 2, 2, 1, 4");
      ExpectRight(dag, "32, 128, 1, 1, 0, 8");
    }
  }
  ExpectRight(Attention("2,21,8,keys=35,mask=1"), "16, 32, 1, 2, 1, 2");
  ExpectRight(Attention("1,40,24", ir::kFloat32), "16, 48, 2, 1, 0, 3", 1e-5);
}

TEST(OnlineSoftmax, BlocksShareTheKeys) {
  for (const std::string_view splits : {"2", "3", "2, 1", "4, 1"}) {
    for (const int rows : {1, 5, 33}) {
      for (const bool causal : {false, true}) {
        const dag::DagPtr dag =
            Attention(fmt::format("3,{},8,causal={:d},keys=112,values=12", rows, causal));
        // Seven tiles of keys, of which the last block has fewer; four.
        ExpectRight(dag, fmt::format("16, 16, 1, 2, 1, 1, {}", splits));
        ExpectRight(dag, fmt::format("16, 16, 2, 1, 0, 1, {}", splits));
        if (splits != "3") ExpectRight(dag, fmt::format("16, 32, 1, 3, 1, 2, {}", splits));
      }
    }
  }
  // The keys of the last block end within its only tile; odd columns; a mask; many problems.
  ExpectRight(Attention("2,1,8,keys=35,mask=1,values=5"), "16, 16, 1, 2, 1, 1, 3");
  ExpectRight(Attention("2,1,8,keys=35,mask=1,values=5"), "16, 32, 1, 1, 1, 2, 2, 1");
  ExpectRight(Attention("70,1,16,keys=64"), "16, 16, 1, 2, 1, 1, 4");
  ExpectRight(Attention("1,40,24", ir::kFloat32), "16, 16, 2, 1, 0, 1, 3", 1e-5);
}

TEST(OnlineSoftmax, BlocksThatShareTheKeysAreJoined) {
  const dag::DagPtr dag = Attention("2,1,16,keys=128");
  ASSERT_OK_AND_ASSIGN(const ir::Program by_kernel, Lowered(dag, "16, 32, 1, 2, 1, 1, 4"));
  ASSERT_EQ(by_kernel.kernels.size(), 2u);
  EXPECT_EQ(by_kernel.kernels[0].grid[0], 8);
  EXPECT_EQ(by_kernel.num_args(), 7);
  ASSERT_OK_AND_ASSIGN(const ir::Program in_cluster, Lowered(dag, "16, 32, 1, 2, 1, 1, 4, 1"));
  ASSERT_EQ(in_cluster.kernels.size(), 1u);
  EXPECT_EQ(in_cluster.kernels[0].grid[0], 2);
  EXPECT_EQ(in_cluster.kernels[0].cluster, 4);
  EXPECT_EQ(in_cluster.num_args(), 4);
}

// Queries of heads that share keys are rows of one block.
TEST(OnlineSoftmax, HeadsThatShareKeysAreRows) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(
input Q: float16[2, 8, 1, 16]
input K: float16[2, 96, 16]
input V: float16[2, 96, 16]
S[h: 2, g: 8, i: 1, j: 96] = sum(k: 16) float32(Q[h, g, i, k])*float32(K[h, j, k])
M[h: 2, g: 8, i: 1] = max(n: 96) S[h, g, i, n]*0.25
P[h: 2, g: 8, i: 1, j: 96] = exp(S[h, g, i, j]*0.25 - M[h, g, i])
L[h: 2, g: 8, i: 1] = sum(n: 96) P[h, g, i, n]
O[h: 2, g: 8, i: 1, d: 16] = sum(n: 96) float32(float16(P[h, g, i, n]))*float32(V[h, n, d])
out[h: 2, g: 8, i: 1, d: 16] = float16(O[h, g, i, d]/L[h, g, i])
)"));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, Lowered(dag, "16, 32, 1, 2, 1, 1, 3"));
  EXPECT_EQ(program.kernels[0].grid[0], 2 * 3);
  ExpectRight(dag, "16, 32, 1, 2, 1, 1, 3");
  ExpectRight(dag, "16, 16, 1, 1, 1, 1, 2, 1");
}

TEST(OnlineSoftmax, EverySizeOfHead) {
  for (const int size : {1, 3, 8, 24, 64, 128}) {
    const dag::DagPtr dag = Attention(fmt::format("1,20,{},keys=37,values={}", size, size + 4));
    ExpectRight(dag, "16, 16, 2, 2, 1");
    ExpectRight(dag, "16, 48, 1, 1, 0");
    ExpectRight(dag, "16, 16, 4, 2, 2");
  }
}

TEST(OnlineSoftmax, EveryType) {
  for (const ir::Type type : {ir::kFloat16, ir::kBFloat16, ir::kFloat32}) {
    const dag::DagPtr dag = Attention("3,40,16,causal=1", type);
    ExpectRight(dag, "16, 16, 2, 2, 1", type == ir::kFloat32 ? 1e-5 : 2e-2);
    ExpectRight(dag, "16, 32, 1, 3, 0", type == ir::kFloat32 ? 1e-5 : 2e-2);
  }
}

TEST(OnlineSoftmax, MasksAreAdded) {
  ExpectRight(Attention("2,21,8,keys=35,mask=1"), "16, 16, 1, 2, 1");
  ExpectRight(Attention("2,40,8,causal=1,mask=1"), "16, 16, 1, 1, 1");
  ExpectRight(Attention("2,90,8,causal=1,mask=1"), "16, 32, 4, 2, 2");
}

TEST(OnlineSoftmax, AsItIsWritten) {
  // Groups of queries that share keys; keys by columns; weights that are not rounded; a division
  // before the product; a window of keys, none of which is in the first tiles.
  const std::string_view texts[] = {R"(
input Q: float16[19, 2, 3, 4]
input K: float16[2, 4, 24]
input V: float16[24, 2, 5]
S[h: 2, g: 3, i: 19, j: 24] = sum(k: 4) float32(K[h, k, j])*float32(Q[i, h, g, k])
M[i: 19, h: 2, g: 3] = max(n: 24) S[h, g, i, n]*0.5
P[h: 2, g: 3, i: 19, j: 24] = exp(S[h, g, i, j]*0.5 - M[i, h, g])
L[g: 3, h: 2, i: 19] = sum(n: 24) P[h, g, i, n]
O[i: 19, g: 3, h: 2, d: 5] = sum(n: 24) P[h, g, i, n]*float32(V[n, h, d])
out[i: 19, h: 2, g: 3, d: 5] = float16(max(O[i, g, h, d]/L[g, h, i], 0.0))
)",
                                    R"(
input Q: bfloat16[30, 8]
input K: bfloat16[40, 8]
input V: bfloat16[40, 8]
S[i: 30, j: 40] = sum(k: 8) float32(Q[i, k])*float32(K[j, k])
X[i: 30, j: 40] = if(j > i + 10 || j < i + 6, -inf, S[i, j])
M[i: 30] = max(j: 40) X[i, j]
P[i: 30, j: 40] = exp(X[i, j] - M[i])
L[i: 30] = sum(j: 40) P[i, j]
W[i: 30, j: 40] = bfloat16(P[i, j]/L[i])
O[i: 30, d: 8] = sum(n: 40) float32(W[i, n])*float32(V[n, d])
out[i: 30, d: 8] = bfloat16(O[i, d])
)",
                                    R"(
input X: float16[24, 48]
S[i: 24, j: 24] = sum(k: 16) float32(X[i, k])*float32(X[j, k + 16]*float16(0.5))
M[i: 24] = max(j: 24) S[i, j]
P[i: 24, j: 24] = exp(S[i, j] - M[i])
L[i: 24] = sum(j: 24) P[i, j]
W[i: 24, j: 24] = float16(P[i, j]/L[i])
out[i: 24, d: 16] = sum(n: 24) float32(W[i, n])*float32(X[n, d + 32])
)"};
  for (const std::string_view text : texts) {
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(text));
    ExpectRight(dag, "16, 16, 1, 1, 1", 2e-2);
    ExpectRight(dag, "16, 16, 2, 2, 1", 2e-2);
  }
  // The window is in one tile of keys, and in more tiles than a ring of them.
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr window, dag::ParseDag(texts[1]));
  for (const std::string_view tile : {"16, 48, 4, 2, 2", "16, 16, 4, 2, 2", "16, 16, 4, 3, 2"})
    ExpectRight(window, tile, 2e-2);
}

TEST(OnlineSoftmax, LeavesOutTilesThatNobodySees) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program,
                       Lowered(Attention("1,64,16,causal=1"), "16, 16, 1, 2, 1"));
  EXPECT_THAT(
      ir::ProgramText(program),
      AllOf(HasSubstr("async p1_shared["), HasSubstr("if key_tile_1*16 < "),
            HasSubstr("stage attention_scores matrix_unit 1\n"),
            HasSubstr("stage attention_values matrix_unit 1\n"), HasSubstr("warp_barrier\n")));
  ASSERT_OK_AND_ASSIGN(const ir::Program all, Lowered(Attention("1,64,16"), "16, 16, 1, 2, 0"));
  EXPECT_THAT(ir::ProgramText(all), AllOf(Not(HasSubstr("*16 < ")), Not(HasSubstr("matrix_unit"))));
}

TEST(OnlineSoftmax, IsRefusedWhereItHasNoMeaning) {
  ASSERT_OK_AND_ASSIGN(const schedule::State state,
                       Scheduled(Attention("1,16,16"), "16, 16, 1, 1, 1"));
  EXPECT_THAT(
      Lower(state, {.gpu = false}),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("its online softmax is for GPUs only")));
  EXPECT_THAT(Lowered(Attention("1,16,16"), "16, 0, 1, 1, 1"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has blanks")));
  const std::string_view tile = "16, 64, 4, 2, 2";
  EXPECT_THAT(
      Lowered(Attention("1,64,16", ir::kFloat32), tile),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("two products of 16-bit floats")));
  EXPECT_THAT(
      Lowered(Attention("1,64,16,values=300"), tile),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("304 columns, expected at most 256")));
}

}  // namespace
}  // namespace kiln::lower
