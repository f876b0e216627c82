// When the trials of jobs were measured, kept as records come, so that the trials of a user's last
// day are counted without reading his records.
//
// The owner tells it of each change of the database, after the commit. Thread-safe. Memory: 16
// bytes for each second of a job in which it has a trial; at most kMostSeconds of all jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::store {

class TrialTimes {
 public:
  // The trials of one second. Unix time.
  struct Second {
    int64_t at_s = 0;
    uint64_t trials = 0;
  };

  // Returns the number of the job's trials from `since_s` on. None: the job is not known, and the
  // database has to be asked. Cost: a binary search.
  std::optional<uint64_t> CountSince(std::string_view job_id, int64_t since_s) const;
  // Sets what the database has of the job: its seconds in ascending order. Forgets all other jobs
  // if there are too many seconds.
  void Begin(std::string_view job_id, const std::vector<Second>& seconds);
  // Does nothing for jobs that are not known. Cost: constant if the trial is one of the last ones.
  void Add(std::string_view job_id, int64_t at_s);
  void ForgetAll();

  static constexpr size_t kMostSeconds = 4'000'000;

 private:
  // Member `trials` of a second counts the trials up to that second.
  using Sums = std::vector<Second>;

  mutable std::mutex mutex_;
  std::map<std::string, Sums, std::less<>> jobs_;
  // Number of seconds of all jobs.
  size_t seconds_ = 0;
};

}  // namespace kiln::store
