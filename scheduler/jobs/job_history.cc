#include "scheduler/jobs/job_history.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "scheduler/remeasure/races.h"

namespace kiln::scheduler {
namespace {

void Add(const store::Record& record, search::Candidate candidate, TaskHistory& task) {
  search::Observation o;
  o.candidate = std::move(candidate);
  o.valid = record.error == store::kNoError;
  o.cost_s = o.valid ? store::Cost(record) : 0;
  o.trial = record.trial;
  if (o.valid && !record.stopped_early) {
    if (!task.best_cost_s.has_value() || o.cost_s < *task.best_cost_s) task.best_cost_s = o.cost_s;
    task.elites.push_back({.task = static_cast<int>(record.task_index),
                           .trial = record.trial,
                           .record_id = record.id,
                           .hash = o.candidate.hash,
                           .cost_s = store::MeanCost(record),
                           .known = KnownOf(record)});
  }
  task.observations.push_back(std::move(o));
}

}  // namespace

JobHistory HistoryOf(std::string_view job_id, std::span<const store::Record> records,
                     std::span<const search::Task> tasks) {
  JobHistory history;
  history.trials = records.size();
  history.tasks.resize(tasks.size());
  std::vector<std::string> targets;
  for (const search::Task& task : tasks) targets.push_back(target::PrintTarget(task.target));
  int unreadable = 0;
  for (const store::Record& record : records) {
    while (history.next_trial < record.trial) {
      history.missing_trials.push_back(history.next_trial++);
    }
    history.next_trial = record.trial + 1;
    if (record.task_index >= tasks.size() || record.target != targets[record.task_index]) continue;
    auto candidate = search::ParseCandidate(record.steps);
    if (candidate.ok()) {
      candidate->origin = record.origin;
      Add(record, *std::move(candidate), history.tasks[record.task_index]);
    } else if (++unreadable == 1) {
      LogWarn(
          "job {}: the steps of trial {} do not parse and are left out, as are others like it: "
          "{}",
          job_id, record.trial, Message(candidate.status()));
    }
  }
  return history;
}

}  // namespace kiln::scheduler
