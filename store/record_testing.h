// Records for tests, and their comparison field by field.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "store/record.h"

namespace kiln::store {

inline constexpr char kTestKey[] = R"(["0fad1b42", [1, 56, 56, 64]])";
// Identity of the computation.
inline constexpr char kTestId[] = "5a1d";
inline constexpr char kTestTarget[] = "cuda -arch=sm_90";

inline Record TestRecord(std::string job_id, uint32_t trial, double cost_s = 1e-3) {
  Record r;
  r.job_id = std::move(job_id);
  r.trial = trial;
  r.task_index = 0;
  r.workload_id = kTestId;
  r.workload_key = kTestKey;
  r.dag = "A = placeholder(1, 56, 56, 64)\n";
  r.target = kTestTarget;
  r.hardware = {-1, 16, 64, 49152, 2147483647, 1024, 8, 32};
  r.steps = fmt::format(R"([["SP", 0, 0, 56, [{}], 1]])", trial);
  r.costs_s = {cost_s};
  r.build_s = 0.5;
  r.run_s = 0.25;
  r.timestamp_s = 1700000000 + trial;
  r.device = "NVIDIA H200";
  r.device_model = "compute_capability=90 multiprocessors=132 name=NVIDIA H200";
  r.builder = "builder-1";
  r.runner = "runner-1";
  r.flop_count = 1e9;
  r.times = std::string("\x09\0t", 3);
  r.sampled_outputs = 8192;
  r.measured_as = "graph/warm/free";
  r.device_state = std::string("\x08\0\x10", 3);
  return r;
}

inline Record FailedRecord(std::string job_id, uint32_t trial, int error) {
  Record r = TestRecord(std::move(job_id), trial);
  r.error = error;
  r.costs_s.clear();
  r.message = "illegal address";
  return r;
}

// Returns all fields but id as text: equal texts mean equal records, and NaN equals NaN.
inline std::string Describe(const Record& r) {
  return fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|"
      "{}|{}|{}|{}|{}|{}|{}",
      r.job_id, r.task_index, r.trial, r.workload_key, r.dag, r.target, fmt::join(r.hardware, ","),
      r.steps, fmt::join(r.costs_s, ","), r.error, r.message, r.build_s, r.run_s, r.timestamp_s,
      r.device, r.builder, r.runner, r.stopped_early, r.max_error, r.flop_count, r.origin,
      r.score.value_or(NAN), fmt::join(r.remeasured_costs_s, ","), r.confidence_s.value_or(-1),
      r.times, r.remeasurements, r.remeasured_run_s, r.remeasured_device, r.workload_id,
      r.unchecked, r.sampled_outputs.value_or(-1), r.device_model, r.measured_as, r.device_state,
      r.mark);
}

}  // namespace kiln::store
