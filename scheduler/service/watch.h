// The stream of one watcher: the records of a job as they are committed, and its status.
//
// Reads the store whenever the hub says that something changed, so a slow watcher needs no memory
// and misses nothing. One thread. While results come, a watcher lets 50 ms pass between two looks,
// and more if there are many watchers (ResultsInterval), so that a look finds several results.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "scheduler/jobs/event_hub.h"
#include "scheduler/jobs/jobs.h"
#include "store/store.h"

namespace kiln::scheduler {

struct WatchOptions {
  std::string job_id;
  uint32_t from_trial = 0;
  std::function<bool()> cancelled;                 // asked several times a second
  std::function<bool(const v1::JobEvent&)> write;  // returns false if the watcher is gone
};

// Returns the time that a watcher lets pass after it has sent results: all together look at the
// store some 300 times a second, and each one at least four times.
absl::Duration ResultsInterval(int watchers);

// Streams until the job has ended and everything was written. NotFound if there is no such job,
// Cancelled if the watcher has gone, Unavailable if the hub was closed.
Status WatchJob(store::Store& store, const Jobs& jobs, const EventHub& events,
                const WatchOptions& options);

}  // namespace kiln::scheduler
