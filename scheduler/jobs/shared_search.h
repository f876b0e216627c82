// The tasks of a running job that other jobs tune (shared_tasks.h), as the job's search sees them.
//
// A task that another job tunes is held: the search gives it no trials, and the results of the
// other job count as known ones as they come. An even share of the job's trials is kept for each
// held task. When the other job has succeeded, its trials of the task count as those of this job
// (known_tasks.h). If they are as many as the share, the task gets no further trials; otherwise it
// gets some of those that are missing. When the other job has ended in another way, or rests, the
// search tunes the task from then on, and keeps what it knows.
//
// The store keeps which job a held task has results of, so the task has a result whenever this job
// ends. Belongs to the thread that tunes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "scheduler/jobs/job_results.h"
#include "scheduler/jobs/task_tuners.h"
#include "scheduler/jobs/warm_start.h"
#include "scheduler/values/job_spec.h"
#include "scheduler/values/messages.h"
#include "search/space/task.h"
#include "search/tuning/other_searches.h"
#include "store/store.h"

namespace kiln::scheduler {

class SharedSearch final : public search::OtherSearches {
 public:
  struct Job {
    std::string id;
    const CheckedJob* job = nullptr;      // outlives the search
    std::span<const search::Task> tasks;  // those of the leased device; they outlive the search
    std::string device;                   // its model
    const TaskTuners* tuners = nullptr;   // outlives the search
    std::vector<store::TaskRow> rows;     // the job's tasks in the store
    // The tuners of the tasks before the look-up of what the store knows of them.
    std::vector<std::string> tuners_before = {};
  };
  // Shows people what is known of each task, and the jobs that tune it ("": none).
  using Show =
      std::function<void(std::vector<LiveStatus::Known> known, std::vector<std::string> tuned_by)>;

  // `start` has what the job knew before. The store outlives the search.
  SharedSearch(Job job, const WarmStart& start, store::Store& store, Show show);

  // Returns errors of the store. Reads it only after a change, and while a task is held.
  StatusOr<search::NewsOfOthers> Take() override;

  // Returns for each task whether another job tunes it, as the last Take saw it.
  std::vector<bool> held() const;

 private:
  struct SharedTask {
    std::optional<JobResults> other;  // none: the job tunes the task itself
    std::unordered_set<uint64_t> known;
    uint32_t results = 0;  // of `other`
  };
  // Takes the trials of jobs that have ended since the look-up of what the store knows.
  Status TakeEndedBeforeBegin(const std::vector<std::string>& tuners);
  Status Change(std::vector<std::string> tuners, std::vector<search::KnownResult>& results);
  Status Begin(size_t task, const std::string& tuner);
  Status Read(size_t task, std::vector<search::KnownResult>& results);
  // Takes the trials of jobs that have succeeded for the tasks that they tuned until now.
  Status TakeEnded(const std::vector<bool>& ended);
  // Adds the best known cost of each task with known trials.
  Status AddBestOfKnown(std::vector<search::KnownResult>& results);
  std::vector<search::TunedBy> TunedByNow() const;
  uint32_t TrialsNow() const;
  void ShowNow() const;

  const Job job_;
  store::Store& store_;
  const Show show_;
  std::vector<store::TaskRow> rows_;
  std::vector<SharedTask> tasks_;
  std::vector<LiveStatus::Known> known_;
  bool begun_ = false;
};

}  // namespace kiln::scheduler
