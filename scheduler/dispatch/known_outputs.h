// Elements of a computation's outputs, computed by the interpreter for the inputs that runners
// fill. A reference must give the same values. The check finds a builder that answers all requests
// with the same wrong program, even if there is no second builder to compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "proto/runner.pb.h"

namespace kiln::scheduler {

// Computes a few hundred elements of all outputs, at places drawn from the seed, and fewer if each
// element is costly. OutOfRange if even a few elements take more than about a second; other errors
// are those of dag::SampleOutputs and dag::Evaluate. `text` is the text that the reference is built
// from. Pure.
StatusOr<std::vector<v1::KnownElements>> KnownOutputs(const dag::DagText& text, uint64_t seed);

}  // namespace kiln::scheduler
