#include "store/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/arrays/packed_key.h"

namespace kiln::store {
namespace {

constexpr std::pair<JobState, std::string_view> kJobStates[] = {
    {JobState::kQueued, "queued"},       {JobState::kRunning, "running"},
    {JobState::kSucceeded, "succeeded"}, {JobState::kFailed, "failed"},
    {JobState::kCancelled, "cancelled"}, {JobState::kPaused, "paused"},
};

}  // namespace

std::string_view JobStateName(JobState state) {
  for (const auto& [candidate, name] : kJobStates) {
    if (candidate == state) return name;
  }
  KILN_CHECK(false, "job state {}", static_cast<int>(state));
  return {};
}

StatusOr<JobState> ParseJobState(std::string_view name) {
  for (const auto& [state, candidate] : kJobStates) {
    if (candidate == name) return state;
  }
  return InvalidArgument(
      "job state '{}' is unknown, expected queued, running, succeeded, failed, cancelled or paused",
      name);
}

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

double MeanCost(const Record& record) {
  if (record.error != kNoError || record.costs_s.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  return std::accumulate(record.costs_s.begin(), record.costs_s.end(), 0.0) /
         static_cast<double>(record.costs_s.size());
}

double Cost(const Record& record) {
  if (record.error != kNoError || record.remeasured_costs_s.empty()) return MeanCost(record);
  std::vector<double> sorted = record.remeasured_costs_s;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Rank RankOf(const Record& record) {
  return {.failed = record.error != kNoError,
          .measured_as = record.measured_as,
          .stopped_early = record.stopped_early,
          .cost_s = Cost(record),
          .id = record.id};
}

bool BetterThan(const Record& a, const Record& b) { return RankOf(a) < RankOf(b); }

Computation ComputationOf(const Record& record) {
  return {.id = record.workload_id,
          .key = record.workload_key,
          .dag = record.dag,
          .flop_count = record.flop_count};
}

Computation ComputationOf(const TaskRow& task) {
  return {.id = task.workload_id,
          .key = task.workload_key,
          .dag = task.dag,
          .flop_count = task.flop_count};
}

std::string UnboundName(std::string_view workload_key) { return fmt::format("?{}", workload_key); }

std::string WorkloadName(const Record& record) {
  return record.workload_id.empty() ? UnboundName(record.workload_key) : record.workload_id;
}

bool IsImported(const Record& record) { return record.device.empty() && record.runner.empty(); }

bool HasRewrittenLayouts(const Record& record) {
  return HasUnsaidLayouts(record.layout_rewrite_option, record.workload_key);
}

Status CheckCalibration(const CalibrationRow& row) {
  if (row.device.empty()) return InvalidArgument("a calibration needs a device, found none");
  if (row.constants.empty())
    return InvalidArgument("the calibration of '{}' has no constants", row.device);
  return OkStatus();
}

uint64_t StoredBytes(const Record& record) {
  const auto printed = [](const auto& numbers) {
    return fmt::formatted_size("[{}]", fmt::join(numbers, ", "));
  };
  return kRecordBytes + record.steps.size() + record.message.size() + record.times.size() +
         record.device_state.size() + record.mark.size() + record.target.size() +
         record.workload_key.size() + printed(record.hardware) + printed(record.costs_s) +
         printed(record.remeasured_costs_s);
}

Status CheckLimits(const UserLimits& limits) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (!std::isfinite(limits.weight) || limits.weight <= 0 || limits.weight > 1e6) {
    return InvalidArgument("the weight of a user is {}; expected a number above 0, at most 1e6",
                           limits.weight);
  }
  if (limits.trials_per_day > kMost || limits.stored_bytes > kMost) {
    return InvalidArgument("a limit of a user is {}; expected at most 2^62, or 0 for no limit",
                           std::max(limits.trials_per_day, limits.stored_bytes));
  }
  return OkStatus();
}

Status CheckModel(const ModelRow& row) {
  constexpr size_t kLongest = 128;
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (row.name.empty() || row.name.size() > kLongest ||
      row.name.find_first_not_of(kCharacters) != std::string::npos) {
    return InvalidArgument(
        "the name of a cost model has 1 to {} letters, digits, '.', '_' and '-', found '{}'",
        kLongest, row.name.substr(0, kLongest));
  }
  if (row.file.empty()) return InvalidArgument("the cost model '{}' has no bytes", row.name);
  return OkStatus();
}

Status CheckPinnedSchedule(const PinnedSchedule& pinned) {
  if (pinned.workload_id.empty())
    return InvalidArgument("a schedule needs a computation, found none");
  if (pinned.target.empty()) return InvalidArgument("a schedule needs a target, found none");
  if (pinned.steps.empty()) return InvalidArgument("a schedule without steps, expected a list");
  return OkStatus();
}

Status ValidateRecord(const Record& record) {
  return ValidateRecord(record, record.job_id, record.trial);
}

Status ValidateRecord(const Record& record, std::string_view job_id, uint32_t trial) {
  if (job_id.empty()) return InvalidArgument("a record needs a job id, found none");
  if (record.error < 0 || record.error >= kNumErrorKinds) {
    return InvalidArgument("trial {} of job {}: error kind {}, expected 0 to {}", trial, job_id,
                           record.error, kNumErrorKinds - 1);
  }
  if (record.error == kNoError && record.costs_s.empty()) {
    return InvalidArgument(
        "trial {} of job {}: no error and no costs, expected one cost per repeat", trial, job_id);
  }
  for (double cost : record.costs_s) {
    if (!std::isfinite(cost) || (cost <= 0 && record.error == kNoError)) {
      return InvalidArgument("trial {} of job {}: cost {} s, expected a positive finite number",
                             trial, job_id, cost);
    }
  }
  for (double cost : record.remeasured_costs_s) {
    if (!std::isfinite(cost) || cost <= 0) {
      return InvalidArgument(
          "trial {} of job {}: final cost {} s, expected a positive finite number", trial, job_id,
          cost);
    }
  }
  return OkStatus();
}

}  // namespace kiln::store
