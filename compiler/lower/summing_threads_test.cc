#include "compiler/lower/summing_threads.h"

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::lower {
namespace {

using ::testing::HasSubstr;

Status Lowered(std::string_view steps) {
  const auto dag = dag::BuildOp("avg_pool2d_nhwc", "1,5,5,3,2,2,2,0");
  const auto parsed = schedule::ParseSteps(steps);
  const auto state = schedule::Replay(*dag, *parsed);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return Lower(*state, {.gpu = true}).status();
}

// pool_sum is computed outside of the loop over threads of pool_avg.
TEST(SummingThreadsTest, ASumThatAllThreadsWouldDoIsRefused) {
  EXPECT_THAT(Lowered(R"([["CA", 1, 2, 0], ["AN", 2, 1, 6]])"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("stage pool_sum sums into pool_sum, which the 2 threads of a "
                                 "block share along threadIdx.x")));
}

TEST(SummingThreadsTest, ASumOverThreadsOrInsideOfTheirLoopIsFine) {
  EXPECT_OK(Lowered(R"([["CA", 1, 2, 0], ["AN", 2, 1, 6], ["AN", 1, 1, 6]])"));
  EXPECT_OK(Lowered(R"([["CA", 1, 2, 1], ["AN", 2, 1, 6]])"));
}

}  // namespace
}  // namespace kiln::lower
