// The stream of one watcher: the records of a job as they are committed, and its status.
//
// Reads the store whenever the hub says that something changed, so a slow watcher needs no memory
// and misses nothing. One thread.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "scheduler/event_hub.h"
#include "scheduler/jobs.h"
#include "store/store.h"

namespace kiln::scheduler {

struct WatchOptions {
  std::string job_id;
  uint32_t from_trial = 0;
  std::function<bool()> cancelled;                 // looked at several times a second
  std::function<bool(const v1::JobEvent&)> write;  // false: the watcher is gone
};

// Until the job has ended and all was written. NotFound without such a job, Cancelled when the
// watcher has gone, Unavailable when the hub was closed.
Status WatchJob(store::Store& store, const Jobs& jobs, const EventHub& events,
                const WatchOptions& options);

}  // namespace kiln::scheduler
