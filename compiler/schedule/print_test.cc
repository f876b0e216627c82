// Expected texts of the two readable forms of a schedule.
#include "compiler/schedule/source/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

State Scheduled(dag::DagPtr dag, std::string_view steps) {
  StatusOr<std::vector<StepPtr>> parsed = ParseSteps(steps);
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  StatusOr<State> state = Replay(std::move(dag), *parsed);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

State TiledMatmul() {
  return Scheduled(
      MatmulRelu(64, 48, 32),
      R"([["SP", 2, 0, 64, [4, 2], 1], ["SP", 2, 3, 48, [8], 1], ["SP", 2, 5, 32, [4], 1], )"
      R"(["RE", 2, [0, 3, 1, 5, 6, 2, 4]], ["FSP", 3, 0, 0, 1], ["FSP", 3, 2, 1, 1], )"
      R"(["RE", 3, [0, 2, 1, 3]], ["CA", 2, 3, 1], ["FU", 3, [0, 1]], ["AN", 3, 0, 3], )"
      R"(["PR", 2, 0, "auto_unroll_max_step$16"], ["AN", 2, 6, 2]])");
}

TEST(PrintLoops, NestsAttachedStages) {
  EXPECT_EQ(PrintLoops(TiledMatmul()), R"(Placeholder: A, B
parallel i.0@j.0@ (0,48)
  C auto_unroll: 16
  for i.0 (None)
    for j.0 (None)
      for i.1 (None)
        for k.0 (None)
          for k.1 (None)
            for i.2 (None)
              vectorize j.1 (None)
                C = ...
  for i.1 (0,8)
    for j.1 (0,8)
      D = ...
)");
}

TEST(PrintLoops, OmitsUnitLoops) {
  const State state = Scheduled(MatmulRelu(1, 4, 8), R"([["SA", 2, 0, 8, 3]])");
  EXPECT_EQ(PrintLoops(state), R"(Placeholder: A, B
C storage_offset: 3
for j (0,4)
  for k (0,8)
    C = ...
for j (0,4)
  D = ...
)");
  EXPECT_EQ(PrintLoops(state, false), R"(Placeholder: A, B
C storage_offset: 3
for i (0,1)
  for j (0,4)
    for k (0,8)
      C = ...
for i (0,1)
  for j (0,4)
    D = ...
)");
}

TEST(PrintPrimitives, EveryKindOfStep) {
  const State state = Scheduled(
      Softmax(64, 100),
      R"([["CHW", 4, "local"], ["SP", 3, 1, 100, [10], 1], ["RF", 3, 2, 1], ["CHR", 0, "shared", [1]], )"
      R"(["FU", 7, [0, 1]], ["SP", 7, 0, 6400, [10, 8], 0], ["FSP", 6, 0, 5, 2], ["FFSP", 6, 3, [5], 1, 1], )"
      R"(["RE", 7, [0, 2, 1]], ["CI", 3], ["CA", 5, 6, 0], ["CR", 5], ["AN", 7, 0, 5], ["AN", 7, 1, 2], )"
      R"(["SA", 4, 0, 8, 1], ["PR", 4, 0, "auto_unroll_max_step$64"], ["PR", 5, 0, "debug_skip_region"]])");
  EXPECT_EQ(PrintPrimitives(state), R"(max_i, max_k = s[max].axes
exp_i, exp_j = s[exp].axes
sum_i, sum_k = s[sum].axes
norm_i, norm_j = s[norm].axes
norm_local = s.cache_write(norm, "local")
norm_local_i, norm_local_j = s[norm_local].axes
norm_i, norm_j = s[norm].axes
sum_k_0, sum_k_1 = s[sum].split(sum_k, factor=10)
sum_rf = s.rfactor(sum, sum_k_1, 1)
sum_rf_i, sum_rf_k_1, sum_rf_k_0 = s[sum_rf].axes
sum_i, sum_k_1 = s[sum].axes
data_shared = s.cache_read(data, "shared", [max])
data_shared_ax0, data_shared_ax1 = s[data_shared].axes
norm_i_j = s[norm].fuse(norm_i, norm_j)
norm_i_j_0, norm_i_j_1, norm_i_j_2 = s[norm].split(norm_i_j, nparts=[10, 8])
norm_local_i_0, norm_local_i_1, norm_local_i_2 = s[norm_local].split(norm_local_i, follow=norm_i_j, parts=3)
norm_local_j_0, norm_local_j_1 = s[norm_local].split(norm_local_j, follow_factor=[norm_i_j], level=1)
s[norm].reorder(norm_i_j_0, norm_i_j_2, norm_i_j_1)
s[exp].compute_inline()
s[sum].compute_at(s[norm_local], norm_local_i_0)
s[sum].compute_root()
s[norm].bind(norm_i_j_0, "blockIdx.x")
s[norm].vectorize(norm_i_j_2)
s[sum_rf].storage_align(sum_rf_i, 8, 1)
s[sum_rf].pragma(sum_rf_i, "auto_unroll_max_step", 64)
s[sum].pragma(sum_i, "debug_skip_region")
)");
}

TEST(PrintPrimitives, ScalarStage) {
  const State state = Scheduled(ReduceAll(dag::Combiner::kSum, 4, 8),
                                R"([["CHW", 1, "local"], ["FU", 2, []], ["CA", 1, 2, 0]])");
  EXPECT_EQ(PrintPrimitives(state), R"(S_i, S_j = s[S].axes
S_local = s.cache_write(S, "local")
S_local_i, S_local_j = s[S_local].axes
S_unit = s[S].fuse()
s[S_local].compute_at(s[S], S_unit)
)");
}

// A printer that takes quadratic time would not end.
TEST(PrintPrimitives, LongChainsTakeTimeInProportion) {
  constexpr int kLength = 64'000;
  std::string text = "input X0: float32[8]\n", steps;
  for (int i = 1; i <= kLength; ++i) {
    text += fmt::format("X{}[i: 8] = X{}[i] + 1.0\n", i, i - 1);
    if (i < kLength)
      steps += fmt::format("{}[\"PR\", {}, 0, \"auto_unroll_max_step$1\"]", i > 1 ? ", " : "", i);
  }
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(text));
  const std::string printed = PrintPrimitives(Scheduled(dag, "[" + steps + "]"));
  EXPECT_THAT(printed, testing::StartsWith("X1_i = s[X1].axes\nX2_i = s[X2].axes\n"));
  EXPECT_THAT(printed,
              testing::EndsWith("s[X63999].pragma(X63999_i, \"auto_unroll_max_step\", 1)\n"));
}

}  // namespace
}  // namespace kiln::schedule
