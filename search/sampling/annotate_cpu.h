// The last part of a CPU schedule: which outer loops run in parallel, how deep loops are unrolled,
// which inner loops are vectorized.
//
// It depends on extents and on what is attached where, so a change of the part before it makes it
// anew from the choices that were made.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "base/rng.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// By stage. What is not chosen is decided anew.
struct CpuChoices {
  std::map<int, int> parallel_loops = {};  // of root stages: outer loops fused and run in parallel
  std::map<int, int> vector_loops = {};    // inner loops fused and vectorized
  std::map<std::pair<int, ir::Hint>, int32_t> hints = {};
};

// What the last steps of a state chose; `steps` begins where the first of them may be.
CpuChoices ReadCpuChoices(std::span<const schedule::StepPtr> steps);

struct CpuLimits {
  int num_cores = 1;
  int max_lanes = 64;
};
CpuLimits CpuLimitsOf(const Task& task, const Parameters& parameters);

// As many parallel loops as give every core 16 pieces of work, unroll depths and vector widths by
// chance, all as far as `choices` does not say. A choice that has become impossible is cut to what
// is possible. Fills the extents that it needs.
StatusOr<schedule::State> AnnotateCpu(schedule::State state, const CpuLimits& limits,
                                      const CpuChoices& choices, Rng& rng);

}  // namespace kiln::search
