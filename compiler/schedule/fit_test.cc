#include "compiler/schedule/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/recorded_layers_testing.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

std::string Matmul(const char* args) { return dag::PrintDag(**dag::BuildOp("matmul", args)); }

TEST(Fit, RecordedSchedulesFitTheirLayersAndNoOthers) {
  for (const RecordedLayer& layer : RecordedLayers()) {
    SCOPED_TRACE(layer.Name());
    EXPECT_OK(CheckFit(dag::PrintDag(*layer.dag), PrintSteps(layer.steps)));
    EXPECT_FALSE(CheckFit(Matmul("127,96,80"), PrintSteps(layer.steps)).ok());
  }
}

// Every step also applies to a product of other extents. The extents noted in the splits show the
// difference.
TEST(Fit, ExtentsThatSplitsNoteAreThoseOfTheAxes) {
  const char* steps = R"([["SP", 2, 0, 127, [1], 1], ["SP", 2, 2, 96, [8], 1]])";
  EXPECT_OK(CheckFit(Matmul("127,96,80"), steps));
  EXPECT_THAT(CheckFit(Matmul("127,80,96"), steps),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("split #1 (SP) is of a loop of 96, found j of stage 2 "
                                 "(T_matmul_NN), of 80")));
}

// A search changes the lengths of a split, and the notes of the steps behind it stay.
TEST(Fit, OtherLoopsMayHaveBeenNotedBefore) {
  EXPECT_OK(
      CheckFit(Matmul("128,96,80"), R"([["SP", 2, 0, 128, [16], 1], ["SP", 2, 1, 32, [4], 1]])"));
  // 0: the extent is not noted.
  EXPECT_OK(CheckFit(Matmul("128,96,80"), R"([["SP", 2, 0, 0, [16], 1]])"));
}

// Only axes of a reduction that RF took apart have the lengths of splits. The name of a stage does
// not matter.
TEST(Fit, ExtentsOfPartialReductionsAreThoseOfSplits) {
  const auto fit = [](std::string_view name, std::string_view steps) {
    return CheckFit(fmt::format("input A: float32[8, 16]\n"
                                "{}[i: 8] = sum(k: 16) A[i, k]\n",
                                name),
                    steps);
  };
  EXPECT_OK(fit("C", R"([["SP", 1, 1, 16, [4], 1], ["RF", 1, 2, 1], ["SP", 1, 1, 8, [2], 1]])"));
  EXPECT_OK(fit("C.rf", R"([["SP", 1, 1, 16, [4], 1]])"));
  EXPECT_THAT(fit("C.rf", R"([["SP", 1, 1, 32, [4], 1]])"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is of a loop of 32")));
}

TEST(Fit, SaysWhatDoesNotApply) {
  EXPECT_THAT(CheckFit(Matmul("8,8,8"), R"([["SP", 7, 0, 8, [2], 1]])"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("#0")));
  EXPECT_FALSE(CheckFit("no text", "[]").ok());
  EXPECT_FALSE(CheckFit(Matmul("8,8,8"), "no steps").ok());
}

}  // namespace
}  // namespace kiln::schedule
