// Products of one task that have the same form, as the two of silu(x W1) * (x W3) have. What is best
// for one of them is best for the other, and a choice that each has for itself squares the number of
// sketches.
//
// Pure functions. Cost: linear in the operators of the task, and in the stages.
#pragma once

#include <vector>

#include "compiler/schedule/state.h"
#include "search/space/sketch.h"

namespace kiln::search {

// How the sums of all stages are shared out (sketch_rules/reduction_split.cc): how many are over
// groups of threads, over blocks, and over the blocks of a cluster.
struct SumSplits {
  int over_groups = 0, over_blocks = 0, over_clusters = 0;
  bool operator==(const SumSplits&) const = default;
};
SumSplits SumSplitsOf(const schedule::State& state);

// Returns the number of products behind stage s, in the initial computation, that have its form: 0
// if s is no product that matrix units could compute.
int NumAlikeBehind(const schedule::State& state, int s);

// Erases the states in which the sums of one more product are not shared out as those of the
// `alike` ones in `before` are. Keeps all if none would be left.
void KeepAlike(const SumSplits& before, int alike, NextStates& states);

}  // namespace kiln::search
