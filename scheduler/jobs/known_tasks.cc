#include "scheduler/jobs/known_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/counted.h"
#include "compiler/target/target.h"
#include "scheduler/jobs/shared_tasks.h"

namespace kiln::scheduler {
namespace {

// Trials of one task, by job.
using TrialsByJob = std::map<std::string, uint32_t>;

StatusOr<TrialsByJob> TrialsOf(const std::string& job_id, const std::string& workload_id,
                               const search::Task& task, const std::string& device,
                               store::Store& store) {
  store::RecordFilter filter;
  filter.workload.id = workload_id;
  filter.target = target::PrintTarget(task.target);
  filter.device = device;
  filter.include_errors = true;
  TrialsByJob trials;
  KILN_RETURN_IF_ERROR(store.ForEachRecord(filter, [&](const store::Record& record) {
    const bool counts = record.target == filter.target && record.job_id != job_id &&
                        record.error != store::kUnknownError;
    if (counts) ++trials[record.job_id];
    return OkStatus();
  }));
  return trials;
}

// The keys of jobs that have succeeded, read once for each job.
class SucceededJobs {
 public:
  explicit SucceededJobs(store::Store& store) : store_(store) {}

  StatusOr<bool> AskedFor(const std::string& job_id, const std::string& key) {
    auto at = keys_.find(job_id);
    if (at == keys_.end()) {
      KILN_ASSIGN_OR_RETURN(TaskKeys keys, KeysOf(job_id));
      at = keys_.emplace(job_id, std::move(keys)).first;
    }
    return std::ranges::find(at->second, key) != at->second.end();
  }

 private:
  StatusOr<TaskKeys> KeysOf(const std::string& job_id) {
    KILN_ASSIGN_OR_RETURN(const store::JobRow row, store_.GetJob(job_id));
    v1::JobSpec spec;
    const bool is_one = row.state == store::JobState::kSucceeded && spec.ParseFromString(row.spec);
    return is_one ? TaskKeysOf(spec) : TaskKeys();
  }

  store::Store& store_;
  std::map<std::string, TaskKeys> keys_;
};

}  // namespace

StatusOr<std::vector<KnownTask>> FindKnownTasks(const std::string& job_id, const CheckedJob& job,
                                                std::span<const search::Task> tasks,
                                                const std::string& device, store::Store& store) {
  std::vector<KnownTask> known(tasks.size());
  const TaskKeys keys = TaskKeysOf(job.spec);
  SucceededJobs jobs(store);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (keys[i].empty()) continue;
    KILN_ASSIGN_OR_RETURN(const TrialsByJob trials,
                          TrialsOf(job_id, job.tasks[i].workload_id, tasks[i], device, store));
    for (const auto& [id, count] : trials) {
      if (count <= known[i].trials) continue;
      KILN_ASSIGN_OR_RETURN(const bool asked_for, jobs.AskedFor(id, keys[i]));
      if (asked_for) known[i] = {id, count};
    }
  }
  const bool all = std::ranges::none_of(known, &std::string::empty, &KnownTask::job_id);
  const uint32_t share = ShareOfTask(job.spec);
  for (KnownTask& task : known) {
    if (!all) task.trials = std::min(task.trials, share);
  }
  return known;
}

uint32_t ShareOfTask(const v1::JobSpec& spec) {
  const auto tasks = static_cast<uint32_t>(std::max(1, spec.tasks_size()));
  return std::max(1u, spec.options().trials() / tasks);
}

Status KeepKnownTasks(std::span<const KnownTask> known, std::vector<store::TaskRow>& rows,
                      store::Store& store) {
  for (store::TaskRow& row : rows) {
    if (row.index >= known.size() || row.known_trials > 0) continue;
    const KnownTask& task = known[row.index];
    if (task.job_id.empty()) continue;
    KILN_RETURN_IF_ERROR(store.SetKnownTask(row.job_id, row.index, task.job_id, task.trials));
    row.known_job = task.job_id;
    row.known_trials = task.trials;
  }
  return OkStatus();
}

uint64_t KnownTrials(std::span<const store::TaskRow> rows) {
  uint64_t trials = 0;
  for (const store::TaskRow& row : rows) trials += row.known_trials;
  return trials;
}

std::string KnownRemark(std::span<const store::TaskRow> rows) {
  const uint64_t trials = KnownTrials(rows);
  if (trials == 0) return "";
  std::set<std::string> jobs;
  for (const store::TaskRow& row : rows) {
    if (row.known_trials > 0) jobs.insert(row.known_job);
  }
  return fmt::format("known: {} of job{} {}", Counted(static_cast<int64_t>(trials), "trial"),
                     jobs.size() == 1 ? "" : "s", fmt::join(jobs, ", "));
}

}  // namespace kiln::scheduler
