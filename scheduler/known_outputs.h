// Elements of a computation's outputs, by the interpreter, for the inputs that runners fill: what a
// reference must give. So a builder that makes the same other program for all requests is found
// out, even where there is no second one to compare it with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "proto/runner.pb.h"

namespace kiln::scheduler {

// A few hundred elements of all outputs, at places drawn from the seed; fewer where each is dear.
// OutOfRange where even a few take more than about a second; else as dag::SampleOutputs and
// dag::Evaluate. `text`: what the reference is built of. Pure.
StatusOr<std::vector<v1::KnownElements>> KnownOutputs(const dag::DagText& text, uint64_t seed);

}  // namespace kiln::scheduler
