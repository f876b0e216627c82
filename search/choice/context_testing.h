// Tests of the promises that every context keeps (context.h). The test of an implementation
// instantiates this:
//
//   INSTANTIATE_TEST_SUITE_P(HistoryBest, ContextConformance, testing::Values(ContextCase{...}));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/target/target.h"
#include "search/choice/context.h"

namespace kiln::search {

inline Task MatmulTask(const std::string& args, std::string_view target = "llvm -mcpu=znver4") {
  const auto dag = dag::BuildOp("matmul", args, {});
  const auto parsed = target::ParseTarget(target);
  KILN_CHECK(dag.ok() && parsed.ok());
  return Task(*dag, *parsed, target::DefaultHardware(*parsed, 2), dag::WorkloadKey(**dag));
}

// Steps for a matrix product: its rows in tiles of 4, or of 2.
inline constexpr char kTilesOf4[] = "[[\"SP\", 2, 0, 16, [4], 1]]";
inline constexpr char kTilesOf2[] = "[[\"SP\", 2, 0, 16, [2], 1]]";

struct ContextCase {
  std::string name;
  // Makes a new context, within `outer` if it takes one, that knows none of the tested
  // computations.
  std::function<std::shared_ptr<Context>(std::shared_ptr<Context> outer)> make;
  bool takes_outer = true;
  // True if the context has an answer to every query.
  bool always_knows = false;

  friend std::ostream& operator<<(std::ostream& out, const ContextCase& c) { return out << c.name; }
};

class ContextConformance : public testing::TestWithParam<ContextCase> {
 protected:
  static std::shared_ptr<Context> Make(std::shared_ptr<Context> outer = nullptr) {
    return GetParam().make(std::move(outer));
  }
  const Task task_ = MatmulTask("16,16,16");
};

TEST_P(ContextConformance, WhatNobodyKnowsIsNone) {
  ASSERT_OK_AND_ASSIGN(const Choice choice, Make()->Query(task_));
  EXPECT_EQ(choice.source != ChoiceSource::kNone, GetParam().always_knows);
  EXPECT_EQ(choice.steps.empty(), choice.source == ChoiceSource::kNone);
}

TEST_P(ContextConformance, WhatItDoesNotKnowIsAskedOfTheOuterOne) {
  if (!GetParam().takes_outer || GetParam().always_knows) GTEST_SKIP() << "it is the outermost";
  const auto context = Make(std::make_shared<FixedSchedule>(kTilesOf4));
  ASSERT_OK_AND_ASSIGN(const Choice choice, context->Query(task_));
  EXPECT_EQ(choice.steps, kTilesOf4);
}

TEST_P(ContextConformance, WhatUpdateSaysComesFirstAndLaterOnesReplaceIt) {
  const auto context = Make();
  ASSERT_OK(context->Update(task_, kTilesOf4));
  ASSERT_OK_AND_ASSIGN(Choice choice, context->Query(task_));
  EXPECT_EQ(choice.source, ChoiceSource::kSet);
  EXPECT_EQ(choice.steps, kTilesOf4);
  ASSERT_OK(context->Update(task_, kTilesOf2));
  ASSERT_OK_AND_ASSIGN(choice, context->Query(task_));
  EXPECT_EQ(choice.steps, kTilesOf2);
}

TEST_P(ContextConformance, UpdateIsOfTheComputationAndTargetsThatMeanTheSame) {
  const auto context = Make();
  ASSERT_OK(context->Update(task_, kTilesOf4));
  ASSERT_OK_AND_ASSIGN(const Choice same,
                       context->Query(MatmulTask("16,16,16", "llvm -keys=cpu -mcpu=znver4")));
  EXPECT_EQ(same.steps, kTilesOf4);
  for (const Task& other : {MatmulTask("16,16,16", "llvm -mcpu=haswell"), MatmulTask("16,16,32")}) {
    ASSERT_OK_AND_ASSIGN(const Choice choice, context->Query(other));
    EXPECT_NE(choice.source, ChoiceSource::kSet);
  }
}

TEST_P(ContextConformance, UpdateOfAnInnerOneLeavesTheOuterOneAsItIs) {
  if (!GetParam().takes_outer) GTEST_SKIP() << "it is the outermost";
  const auto outer = std::make_shared<FixedSchedule>(kTilesOf4);
  const auto context = Make(outer);
  ASSERT_OK(context->Update(task_, kTilesOf2));
  ASSERT_OK_AND_ASSIGN(const Choice inner_choice, context->Query(task_));
  EXPECT_EQ(inner_choice.steps, kTilesOf2);
  ASSERT_OK_AND_ASSIGN(const Choice outer_choice, outer->Query(task_));
  EXPECT_EQ(outer_choice.steps, kTilesOf4);
}

TEST_P(ContextConformance, StepsThatDoNotApplyAreRefusedAndChangeNothing) {
  const auto context = Make();
  ASSERT_OK(context->Update(task_, kTilesOf4));
  for (const char* steps :
       {"", "no steps", "[[\"SP\", 99, 0, 16, [4], 1]]", "[[\"SP\", 2, 0, 16, [0], 1]]"}) {
    EXPECT_THAT(context->Update(task_, steps),
                StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("")))
        << steps;
  }
  ASSERT_OK_AND_ASSIGN(const Choice choice, context->Query(task_));
  EXPECT_EQ(choice.steps, kTilesOf4);
}

}  // namespace kiln::search
