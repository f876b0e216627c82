// The stream of one watcher: the records of a job as they are committed, and its status.
//
// Reads the store whenever the hub says that something changed, so a slow watcher needs no memory
// and misses nothing. One thread.
#pragma once

#include <functional>
#include <string>

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

// Streams until the job has ended and everything was written. NotFound if there is no such job,
// Cancelled if the watcher has gone, Unavailable if the hub was closed.
Status WatchJob(store::Store& store, const Jobs& jobs, const EventHub& events,
                const WatchOptions& options);

}  // namespace kiln::scheduler
