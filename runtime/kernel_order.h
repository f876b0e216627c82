// Which kernels of a network must wait for which, and how they are spread over streams so that
// branches run beside each other.
//
// Pure functions of a network that CheckNetwork accepts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/network.h"

namespace kiln::runtime {

// For each kernel those before it that it must come after, none of which comes after another of
// them anyway. Two kernels must stay in order where they touch the same bytes and one of them
// writes: of arena buffers that share memory, too. Cost: quadratic in the number of kernels at
// worst; milliseconds for a thousand.
std::vector<std::vector<int32_t>> DependenciesOf(const Network& network);

struct StreamPlan {
  struct Step {
    int stream = 0;
    std::vector<int32_t> waits;  // kernels of other streams
    bool awaited = false;        // a kernel of another stream, or the end, waits for this one
  };
  std::vector<Step> steps;     // one per kernel
  std::vector<int32_t> joins;  // the last kernel of each stream but stream 0 that is used
  int streams = 1;             // that are used
};

// A kernel follows one that it depends on in its stream, if none has yet; else it takes a stream on
// which it waits for nobody in vain, as long as there is one.
StreamPlan PlanStreams(const Network& network, int most_streams);

}  // namespace kiln::runtime
