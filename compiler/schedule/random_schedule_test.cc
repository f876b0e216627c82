#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/soundness_testing.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

TEST(RandomSchedule, IsSoundAndUsesEveryKind) {
  const dag::DagPtr dags[] = {
      MatmulRelu(8, 12, 10), Softmax(4, 9), Conv2d({6, 3, 4, 3, 1, 1}, true),
      ReduceRows(dag::Combiner::kSum, 3, 4, 5), ReduceAll(dag::Combiner::kMin, 4, 6)};
  std::map<std::string_view, int> kinds;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const State state = RandomSchedule(dags[seed % 5], seed, 12);
    EXPECT_TRUE(CheckSound(state).ok()) << "seed " << seed << CheckSound(state);
    EXPECT_TRUE(state.concrete());
    EXPECT_EQ(state.steps().size(), 12u) << "seed " << seed;
    for (const StepPtr& step : state.steps()) ++kinds[step->tag()];
  }
  for (const std::string_view kind : StepTags()) {
    // These steps are not for a CPU.
    if (kind == "BF" || kind == "OS") continue;
    // The inputs get other shapes (merge_axes_test.cc).
    if (kind == "MA") continue;
    // No step follows what it prepares (move_stage_test.cc).
    if (kind == "MV") continue;
    EXPECT_GT(kinds[kind], 30) << kind;
  }
}

TEST(RandomSchedule, SameSeedSameSteps) {
  const dag::DagPtr dag = MatmulRelu(8, 12, 10);
  EXPECT_EQ(PrintSteps(RandomSchedule(dag, 5, 10).steps()),
            PrintSteps(RandomSchedule(dag, 5, 10).steps()));
  EXPECT_NE(PrintSteps(RandomSchedule(dag, 5, 10).steps()),
            PrintSteps(RandomSchedule(dag, 6, 10).steps()));
}

TEST(EnumerateSteps, AllApplyAndNoneIsTwice) {
  const State start(MatmulRelu(2, 3, 4));
  for (const StepPtr& first : EnumerateSteps(start)) {
    State one = start;
    ASSERT_OK(one.Apply(first));
    std::set<std::string> seen;
    for (const StepPtr& second : EnumerateSteps(one)) {
      EXPECT_TRUE(seen.insert(second->ToJson()).second) << second->ToJson();
      State two = one;
      ASSERT_OK(two.Apply(second));
      EXPECT_OK(CheckSound(two));
    }
    EXPECT_GT(seen.size(), 10u) << first->ToJson();
  }
}

TEST(EnumerateSteps, TinyDag) {
  const State start(TwoElementwise(2, 3));
  EnumerateOptions options;
  options.lengths = {{2}};
  options.outer_to_inner = false;
  options.new_stages = false;
  std::string all;
  for (const StepPtr& step : EnumerateSteps(start, options)) all += step->ToJson() + "\n";
  EXPECT_EQ(all, R"(["SP", 1, 0, 2, [2], 1]
["SP", 1, 1, 3, [2], 1]
["FU", 1, [0, 1]]
["RE", 1, [1, 0]]
["AN", 1, 0, 3]
["AN", 1, 0, 1]
["AN", 1, 1, 3]
["AN", 1, 1, 2]
["AN", 1, 1, 1]
["PR", 1, 0, "auto_unroll_max_step$16"]
["CI", 1]
["CA", 1, 2, 0]
["CA", 1, 2, 1]
["SP", 2, 0, 2, [2], 1]
["SP", 2, 1, 3, [2], 1]
["FU", 2, [0, 1]]
["RE", 2, [1, 0]]
["AN", 2, 0, 3]
["AN", 2, 0, 1]
["AN", 2, 1, 3]
["AN", 2, 1, 2]
["AN", 2, 1, 1]
["PR", 2, 0, "auto_unroll_max_step$16"]
)");
}

TEST(CheckSound, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["CA", 1, 2, 0]])", ""},
      {R"([["CA", 2, 4, 0]])",
       "stage 2 (exp) is computed at loop 0 of stage 4 (norm), outside of which stage 3 (sum) "
       "reads it"},
      {R"([["CA", 2, 4, 0], ["CA", 3, 4, 0]])", ""},
      {R"([["CA", 2, 4, 1], ["CA", 3, 4, 0]])", "outside of which stage 3 (sum)"},
      {R"([["AN", 3, 1, 3]])", "stage 3 (sum): parallel loop k is not spatial"},
      {R"([["AN", 3, 1, 2]])", "vectorize loop k is not spatial"},
      {R"([["AN", 4, 0, 2]])", "vectorize loop i is not innermost"},
      {R"([["AN", 4, 1, 2], ["CA", 1, 4, 1], ["CA", 2, 4, 1], ["CA", 3, 4, 1]])",
       "has stages attached"},
      {R"([["SP", 4, 1, 40, [20], 1], ["AN", 4, 2, 2]])", "above 16"},
      {R"([["AN", 4, 0, 3], ["AN", 4, 1, 3]])", "loop j is inside another parallel loop"},
      {R"([["AN", 2, 0, 3], ["CA", 1, 2, 0], ["AN", 1, 0, 3]])", "is inside another parallel loop"},
      {R"([["AN", 4, 0, 5]])", "blockIdx.x loop i has no meaning on a CPU"},
  };
  for (const auto& [text, message] : cases) {
    ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(text));
    ASSERT_OK_AND_ASSIGN(const State state, Replay(Softmax(4, 40), steps));
    if (*message == 0) {
      EXPECT_TRUE(CheckSound(state).ok()) << text << CheckSound(state);
    } else {
      EXPECT_THAT(CheckSound(state), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
          << text;
    }
  }
}

}  // namespace
}  // namespace kiln::schedule
