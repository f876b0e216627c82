// Schedules for tests: random ones, and all short ones.
//
// Every state that they lead to is complete and passes CheckSound, so it must lower and compute the
// values of its DAG.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

// Applies `length` random steps for a CPU, of all kinds: splits by factors that do not divide,
// compute_at anywhere, rfactor, cache reads and writes, ... Applies fewer steps if the DAG offers
// none. The same arguments give the same steps.
State RandomSchedule(const dag::DagPtr& dag, uint64_t seed, int length);

struct EnumerateOptions {
  // Lengths of splits.
  std::vector<std::vector<int64_t>> lengths = {{2}, {3}};
  // Splits go in both directions.
  bool outer_to_inner = true;
  bool annotations = true;
  // Includes CHR, CHW and RF.
  bool new_stages = true;
};

// Returns all steps, with parameters bounded by the options, that apply to the state and leave it
// sound. No step occurs twice.
std::vector<StepPtr> EnumerateSteps(const State& state, const EnumerateOptions& options = {});

}  // namespace kiln::schedule
