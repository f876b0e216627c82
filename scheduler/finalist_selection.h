// The entries of the final race of a job's tasks: its fastest trials by their first readings, beside
// them the schedules that were chosen without measuring and the unscheduled loops unless these are
// much slower, and nobody of an alternative that is much slower than the fastest one.
//
// A race may put its own winner behind a trial that had a lucky first reading: those are in the
// next final race, with the winner. So the selection knows who was in a race before.
//
// Belongs to one thread. Reads the job's records at each call.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/job_spec.h"
#include "scheduler/races.h"
#include "store/store.h"

namespace kiln::scheduler {

class FinalistSelection {
 public:
  // Job and store outlive this.
  FinalistSelection(const CheckedJob& job, std::string job_id, store::Store& store)
      : job_(job), job_id_(std::move(job_id)), store_(store) {}

  // By task; tasks whose readings are known well enough are left out. From now on these have been
  // in a race.
  StatusOr<std::vector<Finalists>> Next();

 private:
  using Best = std::vector<std::optional<store::Record>>;  // by task

  Finalists FinalistsOf(uint32_t task, std::span<const store::Record> records, const Best& best);
  // Is the best of the task much slower than that of its alternatives?
  bool IsOutclassed(uint32_t task, const Best& best) const;

  const CheckedJob& job_;
  const std::string job_id_;
  store::Store& store_;
  std::set<int64_t> raced_;  // by record id
};

}  // namespace kiln::scheduler
