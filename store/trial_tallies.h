// Sums over the trials of jobs, kept as records come, so that a status need not read all records of
// its job, and a list of jobs those of all of them.
//
// The owner tells it of each change of the database, after the commit. Thread-safe. Memory: one
// entry for each job that has got records, or was asked for, since the start; at most kMostJobs.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "store/record.h"
#include "store/store.h"

namespace kiln::store {

class TrialTallies {
 public:
  // The sums of a job and the runners that they count.
  struct Tally {
    TrialCounts counts;
    std::set<std::string, std::less<>> runners;
  };

  // None: the job is not known, and the database has to be asked.
  std::optional<TrialCounts> Find(std::string_view job_id) const;
  bool Knows(std::string_view job_id) const;
  // Sets what the database has of the job. Forgets all others if there are too many.
  void Begin(std::string_view job_id, Tally tally);
  // These do nothing for jobs that are not known. `record` is a new record.
  void Add(const Record& record);
  // The record has got further readings.
  void Change(const Record& before, const Record& after);
  void Forget(std::string_view job_id);
  void ForgetAll();

  static constexpr size_t kMostJobs = 2'000;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Tally, std::less<>> jobs_;
};

}  // namespace kiln::store
