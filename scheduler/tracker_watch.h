// Learns from the tracker what concerns the scheduler itself, also while no job runs: which
// certificates were revoked, since people come in at the scheduler, and in which spans of time
// devices were slower than usual, since their records are marked.
#pragma once

#include <string>
#include <thread>

#include "rpc/farm_access.h"
#include "scheduler/drift_marks.h"

namespace kiln::scheduler {

// Has one thread, which asks every few seconds, writes newer lists of certificates into the folder
// of the keys, and hands the spans to `marks`.
class TrackerWatch {
 public:
  // `tracker` is HOST:PORT. `scheduler_id` names the caller to the tracker. `marks` outlives this
  // object, whose thread alone uses it.
  TrackerWatch(std::string tracker, std::string scheduler_id, FarmAccess access, DriftMarks& marks);

 private:
  std::jthread thread_;
};

}  // namespace kiln::scheduler
