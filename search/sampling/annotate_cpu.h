// Makes the last part of a CPU schedule: runs outer loops in parallel, unrolls loops, and
// vectorizes inner loops.
//
// The last part depends on extents and on the places of attached stages. When an earlier part
// changes, the last part is made anew from the choices that were made before.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "base/numbers/rng.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// Choices by stage. Choices that are missing are made anew.
struct CpuChoices {
  std::map<int, int> parallel_loops = {};  // for root stages: outer loops fused and run in parallel
  std::map<int, int> vector_loops = {};    // inner loops fused and vectorized
  std::map<std::pair<int, ir::Hint>, int32_t> hints = {};
};

// Reads the choices that the last steps of a state made. `steps` begins where the first of them may
// be.
CpuChoices ReadCpuChoices(std::span<const schedule::StepPtr> steps);

struct CpuLimits {
  int num_cores = 1;
  int max_lanes = 64;
};
CpuLimits CpuLimitsOf(const Task& task, const Parameters& parameters);

// Makes as many loops parallel as give every core 16 pieces of work, and draws unroll depths and
// vector widths at random, unless `choices` has a value. A choice that has become impossible is cut
// to a possible one. Fills the extents that it needs.
StatusOr<schedule::State> AnnotateCpu(schedule::State state, const CpuLimits& limits,
                                      const CpuChoices& choices, Rng& rng);

}  // namespace kiln::search
