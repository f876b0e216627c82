// Figures of a runner's device for a monitoring system.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/metrics/metrics.h"
#include "proto/runner.pb.h"
#include "proto/tracker.pb.h"
#include "runner/device_slot.h"

namespace kiln::runner {

// A value. One that was made by default counts nothing. Thread-safe.
class RunnerMetrics {
 public:
  RunnerMetrics() = default;
  // `device` as in --device: "cpu", "cuda:0".
  RunnerMetrics(const std::string& device, Metrics& metrics);

  // Notes a trial that was answered.
  void Note(const v1::MeasureReply& reply) const;

 private:
  std::array<Counter, v1::ErrorKind_ARRAYSIZE> trials_;
  Counter busy_s_;
  Histogram run_s_;
  Histogram wait_s_;
};

// Adds what is known of the device now: its mode, canary and state, and the counts of its slot.
void CollectDevice(const std::string& device, const v1::WorkerState& state,
                   const DeviceSlot::Stats& stats, MetricSheet& sheet);

}  // namespace kiln::runner
