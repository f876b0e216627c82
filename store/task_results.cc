#include "store/task_results.h"

#include <utility>

namespace kiln::store {

StatusOr<const TaskRow*> TaskResults::KnownTaskOf(const TaskRow& task) {
  const TaskRow* const none = nullptr;
  if (task.known_job.empty()) return none;
  auto at = tasks_.find(task.known_job);
  if (at == tasks_.end()) {
    KILN_ASSIGN_OR_RETURN(std::vector<TaskRow> tasks, store_.TasksOfJob(task.known_job));
    at = tasks_.emplace(task.known_job, std::move(tasks)).first;
  }
  for (const TaskRow& other : at->second) {
    if (other.workload_id == task.workload_id && other.target == task.target) return &other;
  }
  return none;
}

StatusOr<std::optional<Record>> TaskResults::Known(const TaskRow& task) {
  KILN_ASSIGN_OR_RETURN(const TaskRow* const other, KnownTaskOf(task));
  if (other == nullptr) return std::optional<Record>();
  KILN_ASSIGN_OR_RETURN(std::optional<Record> best, store_.BestOfJob(other->job_id, other->index));
  if (best.has_value()) best->task_index = task.index;
  return best;
}

StatusOr<std::optional<Record>> TaskResults::Best(const TaskRow& task) {
  KILN_ASSIGN_OR_RETURN(std::optional<Record> best, store_.BestOfJob(task.job_id, task.index));
  KILN_ASSIGN_OR_RETURN(std::optional<Record> known, Known(task));
  const bool is_better = known.has_value() && (!best.has_value() || BetterThan(*known, *best));
  return is_better ? known : best;
}

StatusOr<std::optional<Record>> TaskResults::Unscheduled(const TaskRow& task) {
  KILN_ASSIGN_OR_RETURN(std::optional<Record> own,
                        store_.UnscheduledOfJob(task.job_id, task.index));
  if (own.has_value()) return own;
  KILN_ASSIGN_OR_RETURN(const TaskRow* const other, KnownTaskOf(task));
  if (other == nullptr) return own;
  return store_.UnscheduledOfJob(other->job_id, other->index);
}

}  // namespace kiln::store
