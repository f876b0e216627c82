#include "scheduler/jobs/shared_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/hash/digest.h"

namespace kiln::scheduler {
namespace {

// Returns the options that tell how a task is searched and measured, and none that tell how long.
v1::TuneOptions WayOf(v1::TuneOptions options) {
  options.clear_trials();
  options.clear_trials_per_round();
  options.clear_build_timeout_ms();
  options.clear_early_stopping();
  options.clear_total_early_stopping();
  options.clear_latency_target_s();
  options.clear_time_budget_s();
  options.clear_objective();
  options.clear_task_strategy();
  options.clear_task_alpha();
  options.clear_task_beta();
  options.clear_task_window();
  options.clear_lock_step();
  options.mutable_measure()->clear_timeout_ms();
  options.mutable_measure()->clear_idle_ms();
  options.mutable_measure()->clear_best_cost_s();
  return options;
}

// Returns the same bytes for equal messages, in whatever order their maps are.
std::string BytesOf(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

bool IsForItself(const v1::JobSpec& spec) {
  const v1::TuneOptions& options = spec.options();
  return options.no_warm_start() || options.calibrate() || !options.faults().empty() ||
         spec.has_served();
}

}  // namespace

TaskKeys TaskKeysOf(const v1::JobSpec& spec) {
  TaskKeys keys(static_cast<size_t>(spec.tasks_size()));
  if (IsForItself(spec)) return keys;
  const std::string way = BytesOf(WayOf(spec.options()));
  for (int i = 0; i < spec.tasks_size(); ++i) {
    const v1::TaskSpec& task = spec.tasks(i);
    Sha256 digest;
    // A length before each part keeps two parts from being read as one.
    for (const std::string* const part : {&task.dag(), &task.target(), &spec.device(), &way})
      digest.Update(fmt::format("{}:", part->size())).Update(*part);
    keys[static_cast<size_t>(i)] = digest.FinishHex();
  }
  return keys;
}

bool IsBefore(const JobPlace& a, const JobPlace& b) {
  return std::pair(-int64_t{a.priority}, a.turn) < std::pair(-int64_t{b.priority}, b.turn);
}

void TunedTasks::Add(const std::string& job_id, const JobPlace& place, const TaskKeys& keys) {
  for (const std::string& key : keys) {
    if (!key.empty()) tuners_[key].push_back({job_id, place});
  }
}

std::vector<std::string> TunedTasks::TunersOf(const TaskKeys& keys, const JobPlace& place) const {
  std::vector<std::string> tuners(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto at = tuners_.find(keys[i]);
    if (at == tuners_.end()) continue;
    const Tuner* first = nullptr;
    for (const Tuner& tuner : at->second) {
      const std::string& device = tuner.place.device;
      const bool elsewhere = !device.empty() && !place.device.empty() && device != place.device;
      if (elsewhere || !IsBefore(tuner.place, place)) continue;
      if (first == nullptr || IsBefore(tuner.place, first->place)) first = &tuner;
    }
    if (first != nullptr) tuners[i] = first->job_id;
  }
  return tuners;
}

TaskKeys AwaitedBeforeBegin(const TaskKeys& keys) {
  const bool some_own = std::ranges::any_of(keys, &std::string::empty);
  return some_own ? TaskKeys(keys.size()) : keys;
}

bool WaitsForAll(const TaskKeys& awaited, const std::vector<std::string>& tuners) {
  bool awaits = false;
  for (size_t i = 0; i < awaited.size(); ++i) {
    if (awaited[i].empty()) continue;
    if (tuners[i].empty()) return false;
    awaits = true;
  }
  return awaits;
}

std::string WaitPhase(const std::vector<std::string>& tuners) {
  std::set<std::string> jobs(tuners.begin(), tuners.end());
  jobs.erase("");
  const auto tasks = std::ssize(tuners) - std::ranges::count(tuners, "");
  return fmt::format("waits for the results of job{} {}, which tune{} the same {}",
                     jobs.size() == 1 ? "" : "s", fmt::join(jobs, ", "),
                     jobs.size() == 1 ? "s" : "", tasks == 1 ? "task" : "tasks");
}

}  // namespace kiln::scheduler
