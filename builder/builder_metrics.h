// Figures of a builder for a monitoring system.
#pragma once

#include <array>
#include <memory>

#include "base/metrics/metrics.h"
#include "builder/cache.h"
#include "proto/builder.pb.h"

namespace kiln::builder {

// A value. One that was made by default counts nothing. Thread-safe.
class BuilderMetrics {
 public:
  BuilderMetrics() = default;
  explicit BuilderMetrics(Metrics& metrics);

  // Notes a build that was answered.
  void Note(const v1::BuildReply& reply) const;

 private:
  std::array<Counter, v1::ErrorKind_ARRAYSIZE> builds_;
  Histogram build_s_;
  Histogram wait_s_;
};

// Shows the slots and the cache while the returned object lives. `cache` outlives it.
std::shared_ptr<void> ShowBuilder(const BuildCache& cache, int slots, Metrics& metrics);

}  // namespace kiln::builder
