// Reads the best records of tasks, also if trials of another job count as their own
// (TaskRow::known_job).
//
// One thread. Reads the tasks of each known job once, and the records at each call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

class TaskResults {
 public:
  // The store outlives this object.
  explicit TaskResults(Store& store) : store_(store) {}

  // Returns the better one of the task's own best record and Known(). The record keeps its job and
  // trial; its task_index is that of `task`.
  StatusOr<std::optional<Record>> Best(const TaskRow& task);
  // Returns the best record of the known job's trials of this task. None: there is no such job, or
  // it has no such record.
  StatusOr<std::optional<Record>> Known(const TaskRow& task);
  // Returns Store::UnscheduledOfJob of the task, or of the known job if the task has none.
  StatusOr<std::optional<Record>> Unscheduled(const TaskRow& task);

 private:
  // Returns the known job's task; null: there is none.
  StatusOr<const TaskRow*> KnownTaskOf(const TaskRow& task);

  Store& store_;
  std::map<std::string, std::vector<TaskRow>> tasks_;  // key: known job
};

}  // namespace kiln::store
