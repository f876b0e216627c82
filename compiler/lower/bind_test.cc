#include "compiler/lower/bind.h"

#include "base/status_testing.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

// Returns the steps that binding adds to a state made by `steps`.
std::string Added(std::string_view dag, std::string_view steps = "[]") {
  const schedule::State state = StateFrom(dag, steps);
  const StatusOr<schedule::State> bound = BindUnbound(state);
  KILN_CHECK(bound.ok(), "{}", Message(bound.status()));
  const auto all = bound->steps();
  KILN_CHECK(all.size() >= state.steps().size());
  return schedule::PrintSteps(
      {all.begin() + static_cast<std::ptrdiff_t>(state.steps().size()), all.end()});
}

constexpr std::string_view kCopy = R"(
    input A: float32[40, 30]
    B[i: 40, j: 30] = A[i, j] + 1.0)";

// Block x is annotation 5, thread x is 6 (docs/steps.md).
TEST(BindUnbound, FusesSplitsAndBinds) {
  EXPECT_EQ(
      Added(kCopy),
      R"([["FU", 1, [0, 1]], ["SP", 1, 0, 1200, [256], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6]])");
}

TEST(BindUnbound, OneLoopIsNotFused) {
  EXPECT_EQ(Added("input A: float32[40] B[i: 40] = A[i] + 1.0"),
            R"([["SP", 1, 0, 40, [40], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6]])");
}

TEST(BindUnbound, ReductionsStayInTheThread) {
  EXPECT_EQ(Added("input A: float32[7, 9] B[i: 7] = sum(k: 9) A[i, k]"),
            R"([["SP", 1, 0, 7, [7], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6]])");
}

TEST(BindUnbound, AScalarHasNothingToBind) {
  EXPECT_EQ(Added("input A: float32[7] B[] = sum(k: 7) A[k]"), "[]");
}

TEST(BindUnbound, EveryRootStage) {
  EXPECT_EQ(Added(R"(
      input A: float32[8]
      B[i: 8] = sum(k: 8) A[k]
      C[i: 8] = sum(k: 8) B[k])"),
            R"([["SP", 1, 0, 8, [8], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6], )"
            R"(["SP", 2, 0, 8, [8], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]])");
}

TEST(BindUnbound, ABoundNestIsLeftAlone) {
  EXPECT_EQ(Added(kCopy, R"([["AN", 1, 1, 6]])"), "[]");
  // The nest is bound by a stage that is attached to it.
  EXPECT_EQ(Added(R"(
      input A: float32[8, 4]
      B[i: 8, j: 4] = A[i, j] + 1.0
      C[i: 8] = sum(k: 4) B[i, k])",
                  R"([["CA", 1, 2, 0], ["AN", 1, 1, 6]])"),
            "[]");
}

TEST(BindUnbound, InlinedStagesAreNoNests) {
  EXPECT_EQ(Added(R"(
      input A: float32[8]
      B[i: 8] = A[i] + 1.0
      C[i: 8] = B[i]*2.0)",
                  R"([["CI", 1]])"),
            R"([["SP", 2, 0, 8, [8], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]])");
}

// Loops up to one that has an attached stage or an annotation stay as they are.
TEST(BindUnbound, StopsAtAttachmentsAndAnnotations) {
  constexpr std::string_view kChain = R"(
      input A: float32[8, 4]
      B[i: 8, j: 4] = A[i, j] + 1.0
      C[i: 8, j: 4] = B[i, j]*2.0)";
  EXPECT_EQ(Added(kChain, R"([["CA", 1, 2, 0]])"), "[]");
  EXPECT_EQ(Added(kChain, R"([["CA", 1, 2, 1]])"),
            R"([["SP", 2, 0, 8, [8], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]])");
  EXPECT_EQ(Added(kCopy, R"([["AN", 1, 1, 1]])"),
            R"([["SP", 1, 0, 40, [40], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6]])");
}

TEST(BindUnbound, BindingTwiceChangesNothing) {
  const schedule::State state = StateFrom(kCopy, "[]");
  ASSERT_OK_AND_ASSIGN(const schedule::State once, BindUnbound(state));
  EXPECT_NE(schedule::PrintSteps(once.steps()), "[]");
  ASSERT_OK_AND_ASSIGN(const schedule::State twice, BindUnbound(once));
  EXPECT_EQ(schedule::PrintSteps(twice.steps()), schedule::PrintSteps(once.steps()));
}

}  // namespace
}  // namespace kiln::lower
