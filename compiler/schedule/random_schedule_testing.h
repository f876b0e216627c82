// Schedules for tests: random ones, and all short ones.
//
// Every state they lead to is complete and passes CheckSound: it has to lower, and to compute what
// its DAG says.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

// `length` random steps for a CPU, of all kinds: splits by factors that do not divide, compute_at
// anywhere, rfactor, cache reads and writes, ... Fewer steps when the DAG offers none. The same
// arguments give the same steps.
State RandomSchedule(const dag::DagPtr& dag, uint64_t seed, int length);

struct EnumerateOptions {
  std::vector<std::vector<int64_t>> lengths = {{2}, {3}};  // of splits
  bool outer_to_inner = true;                              // splits in both directions
  bool annotations = true;
  bool new_stages = true;  // CHR, CHW, RF
};

// All steps, with parameters bounded by the options, that apply to the state and leave it sound. No
// step twice.
std::vector<StepPtr> EnumerateSteps(const State& state, const EnumerateOptions& options = {});

}  // namespace kiln::schedule
