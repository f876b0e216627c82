// The pages show this of a job's trials, in bounded memory: each task's way to its best candidate,
// the spread of what was measured on the way, what failed and why, and where a page of trials
// begins.
//
// A digest grows by one record after another, in the order of their ids, and is never read anew: a
// record that is measured again later keeps the place that it had. A value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/record.h"
#include "store/store.h"

namespace kiln::scheduler {

// A task's trials whose numbers lie between two numbers, both included.
struct TrialBucket {
  uint32_t first = 0;
  uint32_t last = 0;
  // Fastest and slowest of the measured trials, in seconds.
  double low_s = 0;
  double high_s = 0;
  uint32_t measured = 0;
  uint32_t failed = 0;

  bool operator==(const TrialBucket&) const = default;
};

// A trial that was better than all before it.
struct BestPoint {
  uint32_t trial = 0;
  double cost_s = 0;

  bool operator==(const BestPoint&) const = default;
};

struct TaskDigest {
  // In the order of the trials, the costs falling.
  std::vector<BestPoint> best;
  // The key is the number of the bucket: trial / width.
  std::map<uint32_t, TrialBucket> buckets;
  // Trials in a bucket, a power of two.
  uint32_t width = 1;
  // The best records so far.
  std::set<store::Rank> top;
};

// Trials that failed alike: messages that differ in numbers alone are one cause.
struct FailureCause {
  int error = 0;
  // Message of the last one of them.
  std::string message;
  uint64_t count = 0;
  uint32_t first_trial = 0;
  uint32_t last_trial = 0;
  // Record of the last one of them.
  int64_t record = 0;
};

class TrialDigest {
 public:
  // Trials of one page.
  static constexpr uint32_t kPageTrials = 50;
  // The first kManyTasks tasks have the first number of buckets, each further one the second.
  static constexpr size_t kManyTasks = 64, kMostBuckets = 128, kFewBuckets = 16;
  static constexpr size_t kMostBestPoints = 256, kMostTop = 20;
  // Further causes count as one for each kind of error.
  static constexpr size_t kMostCauses = 50;

  // The record's id is larger than all before.
  void Add(const store::Record& record);

  // Number of records so far, and the id of the last one.
  uint64_t trials() const { return trials_; }
  int64_t last_id() const { return last_id_; }
  const std::map<uint32_t, TaskDigest>& tasks() const { return tasks_; }
  // The most frequent first.
  std::vector<FailureCause> causes() const;
  // Id of the first record of each page.
  const std::vector<int64_t>& page_starts() const { return page_starts_; }

 private:
  // Kind of error and message without its numbers.
  using CauseKey = std::pair<int, std::string>;

  void AddMeasured(const store::Record& record, TaskDigest& task);
  void AddFailure(const store::Record& record);
  void AddToBucket(const store::Record& record, size_t most, TaskDigest& task);

  uint64_t trials_ = 0;
  int64_t last_id_ = 0;
  std::map<uint32_t, TaskDigest> tasks_;
  std::map<CauseKey, FailureCause> causes_;
  std::vector<int64_t> page_starts_;
};

// Returns the next records of the job after `after_id`, in the order of their ids, at most `most`.
// Cost: the ids of the job's records and the records that are returned.
StatusOr<std::vector<store::Record>> NextRecords(store::Store& store, const std::string& job_id,
                                                 int64_t after_id, uint32_t most);

// Adds the next records of the job to the digest, at most `most`. Returns whether none is left.
StatusOr<bool> ReadTrials(store::Store& store, const std::string& job_id, uint32_t most,
                          TrialDigest& digest);

}  // namespace kiln::scheduler
