// Tests schedules that are source, for every operator of the library on both targets. The search's
// draws, and its sketches with their blanks, print as texts that read back as the same schedules
// and lower to the same programs.
//
// KILN_CANDIDATES (default 12) is the number of draws for each sketch.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample.h"
#include "search/space/sketch.h"

namespace kiln::search {
namespace {

int NumDraws() {
  const char* text = std::getenv("KILN_CANDIDATES");
  return text == nullptr ? 12 : std::atoi(text);
}

// Leaves out the extents that SP steps note, which have no effect.
std::string StepsText(const schedule::State& state) {
  std::string text;
  for (const schedule::StepPtr& step : state.steps()) {
    const auto* split = schedule::As<schedule::SplitStep>(*step);
    text += split == nullptr ? step->ToJson()
                             : schedule::SplitStep(split->stage_id, split->loop, 0, split->lengths,
                                                   split->inner_to_outer)
                                   .ToJson();
  }
  return text;
}

std::string ProgramOf(const schedule::State& state, bool gpu) {
  const StatusOr<ir::Program> program = lower::Lower(state, {.gpu = gpu});
  return program.ok() ? ir::ProgramText(*program) : std::string(Message(program.status()));
}

void CheckRoundTrip(const schedule::State& state, bool gpu) {
  const std::string printed = schedule::PrintPrimitives(state);
  const StatusOr<schedule::State> read = schedule::ParsePrimitives(state.initial_dag(), printed);
  ASSERT_TRUE(read.ok()) << Message(read.status()) << "\n" << printed;
  EXPECT_EQ(StepsText(*read), StepsText(state)) << printed;
  EXPECT_EQ(schedule::PrintPrimitives(*read), printed);
  if (!state.concrete()) return;
  EXPECT_EQ(ProgramOf(*read, gpu), ProgramOf(state, gpu)) << printed;
}

// Returns how many schedules were drawn.
int CheckOperator(const dag::OpCase& one, std::string_view target, uint64_t seed) {
  target::HardwareParams hardware;
  const target::Target parsed = *target::ParseTarget(target);
  if (!parsed.is_gpu()) hardware.num_cores = 2;
  const Task task(one.Build(), parsed, hardware, "[]");
  const Parameters parameters;
  Rng rng(seed);
  int drawn = 0;
  for (const Sketch& sketch : GenerateSketches({task, parameters})) {
    CheckRoundTrip(sketch.state, parsed.is_gpu());
    for (int i = 0; i < NumDraws(); ++i) {
      const StatusOr<schedule::State> state = Sample(sketch, task, parameters, rng);
      if (!state.ok()) continue;
      CheckRoundTrip(*state, parsed.is_gpu());
      ++drawn;
    }
  }
  return drawn;
}

TEST(ScheduleSource, WhatTheSearchDrawsReadsBack) {
  uint64_t seed = 1;
  int drawn = 0;
  for (const dag::OpCase& one : dag::SmallOpCases()) {
    for (const std::string_view target : {"llvm", "cuda -arch=sm_90", "cuda -thread_warp_size=4"}) {
      SCOPED_TRACE(testing::Message() << one.Name() << " for " << target << ", seed " << seed);
      drawn += CheckOperator(one, target, seed++);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(drawn, 5000);
  std::printf("%d schedules\n", drawn);
}

}  // namespace
}  // namespace kiln::search
