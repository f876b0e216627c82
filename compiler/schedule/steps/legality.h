// Checks that several step kinds share. Each returns only the reason: State::Apply adds the step.
#pragma once

#include <span>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Checks that the stage computes values. A placeholder has no loops.
Status CheckComputes(const State& state, int stage);
// Checks that loop `loop` of the stage exists.
Status CheckLoop(const State& state, int stage, int loop);
// Checks that the loop exists and has no annotation.
Status CheckPlainLoop(const State& state, int stage, int loop);
// Checks that every length is positive, or 0 for a blank, and that their product is at most 2^40.
Status CheckLengths(std::span<const int64_t> lengths);
// Checks that the loop exists and has no annotation, and that so many pieces of it leave the stage
// and the nest within dag/limits.h.
Status CheckSplittable(const State& state, int stage, int loop, size_t lengths);
// Checks that one more stage is allowed.
Status CheckRoomForStage(const State& state);
// Checks that the loops are the operator's original ones, without annotations and attached stages,
// so that a step that replaces the operator may drop them.
Status CheckUntouched(const State& state, int stage);

// Returns stages by number and name, for messages: "1 (j), 2 (k)".
std::string DescribeStages(const State& state, std::span<const int> stages);
// Returns "loop 2 (i.0)".
std::string DescribeLoop(const State& state, int stage, int loop);

}  // namespace kiln::schedule
