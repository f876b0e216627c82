// Records as a tuning job leaves them. The times of the programs are made up: those of an analytic
// model of another device. So there is something to learn, and it is always the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/features/features.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "costmodel/analytic_model.h"
#include "search/policies/policy.h"
#include "search/policies/samples.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::training {

inline search::Task TestTask(const std::string& op, const std::string& args,
                             std::string_view target = "llvm") {
  const auto parsed = target::ParseTarget(target);
  const auto dag = dag::BuildOp(op, args, {});
  KILN_CHECK(parsed.ok() && dag.ok());
  return search::Task(*dag, *parsed, target::DefaultHardware(*parsed, 2), dag::WorkloadId(**dag));
}

// Returns the time on a device with slow memory and cheap forks.
inline double MadeUpSeconds(const search::Task& task, std::span<const schedule::StepPtr> steps) {
  device::Calibration constants;
  constants.cpu_clock_hz = 1e9;
  constants.line_cycles_l2 = 30;
  constants.line_cycles_memory = 400;
  constants.fork_s = 1e-7;
  static const auto model = costmodel::AnalyticModel::Make(features::FeatureNames(), constants);
  KILN_CHECK(model.ok());
  const auto rows = search::FeatureRows(task, steps);
  KILN_CHECK(rows.ok(), "{}", Message(rows.status()));
  const FloatMatrix* const programs[] = {&*rows};
  return -(*model)->Predict(programs)[0];
}

inline store::Record RecordOf(const search::Task& task, std::span<const schedule::StepPtr> steps,
                              double cost_s) {
  store::Record record;
  record.workload_id = dag::WorkloadId(*task.dag);
  record.workload_key = dag::WorkloadKey(*task.dag);
  record.dag = dag::PrintDag(*task.dag);
  record.target = target::PrintTarget(task.target);
  record.hardware = HardwareRowOf(task.hardware);
  record.steps = schedule::PrintSteps(steps);
  record.costs_s = {cost_s};
  record.device = "made up";
  record.timestamp_s = 1'700'000'000;
  return record;
}

// Adds records as trials of a job that exists. Every eighth one failed.
inline void AddMeasured(store::Store& store, const std::string& job, const search::Task& task,
                        int count, uint32_t first_trial = 0, uint64_t seed = 3) {
  ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, seed));
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(count));
  ASSERT_EQ(std::ssize(candidates), count);
  std::vector<store::Record> records;
  for (int i = 0; i < count; ++i) {
    const auto& steps = candidates[static_cast<size_t>(i)].steps;
    store::Record record = RecordOf(task, steps, MadeUpSeconds(task, steps));
    record.job_id = job;
    record.trial = first_trial + static_cast<uint32_t>(i);
    if (i % 8 == 7) {
      record.error = 2;
      record.costs_s.clear();
    }
    records.push_back(std::move(record));
  }
  ASSERT_OK(store.AddRecords(records).status());
}

}  // namespace kiln::training
