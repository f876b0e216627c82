// The statuses of jobs, kept for a moment: a list of jobs is asked for again and again, by several
// browsers, and each status takes queries for each task.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "scheduler/pages/recent.h"
#include "scheduler/pages/round_curve.h"
#include "store/store.h"

namespace kiln::scheduler {

// Reads the status of a row of the store (Jobs::StatusOf).
using ReadStatus = std::function<StatusOr<v1::JobStatus>(const store::JobRow&)>;

// A status without the texts of its computations, and the job's curve.
struct SeenJob {
  v1::JobStatus status;
  RoundCurve curve;
};

// Thread-safe. Two threads that ask for the same job read it once; jobs do not wait for each other.
class JobStatuses {
 public:
  struct Options {
    size_t most = 600;
    // So old may be what is shown of a job that goes on, and of one that has ended.
    absl::Duration age = absl::Seconds(1);
    absl::Duration final_age = absl::Minutes(1);
  };

  // Store and clock outlive this object.
  JobStatuses(store::Store& store, ReadStatus read, Clock& clock)
      : JobStatuses(store, std::move(read), clock, Options()) {}
  JobStatuses(store::Store& store, ReadStatus read, Clock& clock, const Options& options)
      : store_(store),
        read_(std::move(read)),
        clock_(clock),
        options_(options),
        entries_(options.most) {}

  // A status of another state than the row's is read anew.
  StatusOr<std::shared_ptr<const SeenJob>> Of(const store::JobRow& job);
  // Returns what is known already; null: nothing that is young enough.
  std::shared_ptr<const SeenJob> Known(const store::JobRow& job);

 private:
  struct Entry {
    std::mutex mutex;
    // All are guarded by the mutex.
    std::shared_ptr<const SeenJob> seen;
    double read_at_s = 0;
  };

  bool IsYoung(const store::JobRow& job, const Entry& entry) const;

  store::Store& store_;
  const ReadStatus read_;
  Clock& clock_;
  const Options options_;
  Recent<Entry> entries_;
};

}  // namespace kiln::scheduler
