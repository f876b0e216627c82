// Products of one task that have the same form, as the two of silu(x W1) * (x W3) have. What is best
// for one of them is best for the other, and a choice that each has for itself squares the number of
// sketches. The same holds for the choices of a schedule: a search whose draws and changes were
// independent would have to find what is best for each product.
//
// Pure functions. Cost: linear in the operators of the task, and in the stages; of choices, the
// steps for each stage of the products.
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

// ---- what a schedule chooses for each product: tiles, parts of sums, how tiles are fetched, laid
// out and buffered, hints (alike_choices.cc)

// Returns sets of step numbers. The steps of a set choose the same thing, each for another product
// of one form that matrix units compute, the products in their order.
std::vector<std::vector<int>> AlikeChoices(const schedule::State& state);

// Returns the step with the choice of a step of the same set. If it has that choice, it stays the
// same object.
schedule::StepPtr WithChoiceOf(const schedule::StepPtr& step, const schedule::Step& other);

// Gives all products of one form the choices of the last one, in `steps`, which are those of the
// state. Returns whether a step changed.
bool ChooseAlike(const schedule::State& state, std::vector<schedule::StepPtr>& steps);

// Changes in `after` those choices alike that were the same in the state `before`: where one of
// them was changed, the others are too.
void ChangeAlike(const schedule::State& before, std::vector<schedule::StepPtr>& after);

}  // namespace kiln::search
