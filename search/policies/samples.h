// Measured candidates as samples of a cost model: replayed, lowered, turned into feature rows.
//
// Cost: what lowering and features take (tests/bench:features_bench), spread over the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/float_matrix.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/schedule/step.h"
#include "costmodel/cost_model.h"
#include "search/space/task.h"

namespace kiln::search {

// The rows that a cost model sees of the candidate. Refused when it does not replay or lower.
StatusOr<FloatMatrix> FeatureRows(const Task& task, std::span<const schedule::StepPtr> steps);

// The task's identity to a cost model: workload and target, and, where costs of several devices of
// one target meet, the device.
uint64_t SampleTask(const Task& task, std::string_view device = "");

struct Measured {
  const Task* task = nullptr;  // not owned
  std::vector<schedule::StepPtr> steps;
  std::optional<double> cost_s = {};  // none: it failed
  uint64_t sample_task = 0;
};

// In the order given. Those that do not replay or lower are left out: a program that never was one
// teaches nothing.
std::vector<costmodel::Sample> MakeSamples(std::span<const Measured> measured, ThreadPool& pool);

}  // namespace kiln::search
