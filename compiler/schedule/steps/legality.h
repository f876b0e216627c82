// Checks that several step kinds share. Each returns the bare reason: State::Apply adds which step
// it was.
#pragma once

#include <span>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// The stage computes something (a placeholder has no loops).
Status CheckComputes(const State& state, int stage);
// Loop `loop` of the stage exists.
Status CheckLoop(const State& state, int stage, int loop);
// It exists and has no annotation.
Status CheckPlainLoop(const State& state, int stage, int loop);
// Every length is positive, or 0 = blank, and their product is at most 2^40.
Status CheckLengths(std::span<const int64_t> lengths);
// The loop exists and has no annotation, and so many pieces of it leave the stage and the nest
// within dag/limits.h.
Status CheckSplittable(const State& state, int stage, int loop, size_t lengths);
// There may be one stage more than there are.
Status CheckRoomForStage(const State& state);
// The loops are those that the operator came with and carry nothing: what a step that replaces the
// operator may throw away.
Status CheckUntouched(const State& state, int stage);

// "1 (j), 2 (k)": stages by number and name, for messages.
std::string DescribeStages(const State& state, std::span<const int> stages);
std::string DescribeLoop(const State& state, int stage, int loop);  // "loop 2 (i.0)"

}  // namespace kiln::schedule
