// Finds which kernels of a network must wait for which, and spreads them over streams so that
// branches run beside each other.
//
// Pure functions of a network that CheckNetwork accepts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/network.h"

namespace kiln::runtime {

// Returns for each kernel the kernels before it that it must come after. None of these comes after
// another of them anyway. Two kernels must stay in order if they touch the same bytes and one of
// them writes, also in arena buffers that share memory. Cost: quadratic in the number of kernels at
// worst; milliseconds for a thousand.
std::vector<std::vector<int32_t>> DependenciesOf(const Network& network);

struct StreamPlan {
  struct Step {
    int stream = 0;
    // Kernels of other streams that this kernel waits for.
    std::vector<int32_t> waits;
    // True if a kernel of another stream, or the end, waits for this kernel.
    bool awaited = false;
  };
  // One step per kernel.
  std::vector<Step> steps;
  // The last kernel of each stream that is used, except stream 0.
  std::vector<int32_t> joins;
  // Number of streams that are used.
  int streams = 1;
};

// A kernel follows a kernel that it depends on in the same stream, unless another kernel follows
// that one already. Otherwise it takes a stream in which it waits for no other work than it must,
// as long as there is one.
StreamPlan PlanStreams(const Network& network, int most_streams);

}  // namespace kiln::runtime
