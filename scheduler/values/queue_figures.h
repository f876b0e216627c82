// How many trials wait for workers, by stage and kind of target, for a monitoring system.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "base/metrics/metrics.h"

namespace kiln::scheduler {

// Thread-safe.
class QueueFigures {
 public:
  // The queues of one job.
  struct Sizes {
    // Text of the target: "cuda -arch=sm_90".
    std::string target;
    size_t build = 0;
    size_t run = 0;
  };

  // Has `read` called for each Collect, until the returned object ends, which waits for a call that
  // runs. This object outlives the returned one.
  [[nodiscard]] std::shared_ptr<void> Add(std::function<Sizes()> read);

  // Adds kiln_queue_items{stage,target}, the sums over all jobs.
  void Collect(MetricSheet& sheet) const;

 private:
  // Held while the queues are read.
  mutable std::mutex mutex_;
  std::list<std::function<Sizes()>> jobs_;
};

}  // namespace kiln::scheduler
