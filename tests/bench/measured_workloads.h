// What databases hold, as a cost model sees it: by workload and target, the programs that worked.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "search/task.h"

namespace kiln {

struct MeasuredWorkload {
  std::string key;
  std::unique_ptr<search::Task> task;  // for the hardware of its first record
  // In the order of the databases and their records. Costs are the shortest readings: other
  // processes only ever make one longer.
  std::vector<costmodel::Sample> samples;
};

// Those with at least `at_least` programs. Takes half a second for 5,000 CUDA programs on two
// cores.
StatusOr<std::vector<MeasuredWorkload>> ReadMeasuredWorkloads(
    std::span<const std::string> databases, size_t at_least);

}  // namespace kiln
