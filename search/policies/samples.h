// Makes samples of a cost model from measured candidates: replays and lowers them, and computes
// their feature rows.
//
// Cost: that of lowering and features (tests/bench:features_bench), spread over the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/float_matrix.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/schedule/step.h"
#include "costmodel/cost_model.h"
#include "search/space/task.h"

namespace kiln::search {

// Returns the rows that a cost model sees of the candidate. Refused if the steps do not replay or
// lower.
StatusOr<FloatMatrix> FeatureRows(const Task& task, std::span<const schedule::StepPtr> steps);

// Returns the task's identity for a cost model: workload and target, and also the device if costs
// of several devices of one target meet.
uint64_t SampleTask(const Task& task, std::string_view device = "");

struct Measured {
  const Task* task = nullptr;  // not owned
  std::vector<schedule::StepPtr> steps;
  std::optional<double> cost_s = {};  // empty if the trial failed
  uint64_t sample_task = 0;
};

// Keeps the order. Leaves out candidates that do not replay or lower: without a program there is
// nothing to learn.
std::vector<costmodel::Sample> MakeSamples(std::span<const Measured> measured, ThreadPool& pool);

}  // namespace kiln::search
