// What the scheduler alone makes of messages and rows: results that may be kept, the status of a
// job that may be running. How rows are messages: store/wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "scheduler/busy_meter.h"
#include "store/store.h"

namespace kiln::scheduler {

// Puts a result into the record of its trial, whatever it says: what the store would refuse (a
// success without costs, a cost of 0, an unknown error kind) becomes an UNKNOWN_ERROR that says so.
void SetResult(const v1::TrialResult& result, store::Record& record);

// At most max_bytes, cut in the middle, between characters.
std::string CutText(std::string_view text, size_t max_bytes);

// What is only known while the job runs.
struct LiveStatus {
  bool waiting_for_workers = false;
  std::string blocked_reason;    // what it waits for
  std::string database_problem;  // why nothing can be written or read now
  std::string device;
  std::string phase;                  // "": it searches
  std::optional<uint32_t> next_task;  // of the newest round; none yet
  // By task: what earlier jobs measured of it.
  struct Known {
    struct Best {
      int64_t record_id = 0;
      double cost_s = 0;
    };
    uint32_t states = 0;
    std::optional<Best> best;
  };
  std::vector<Known> known;  // or nothing
  std::vector<std::string> notices;
  BusyMeter::Reading busy;
};

// The status as the store has it, and `live`; `now_ms` for the elapsed time of a job that runs.
StatusOr<v1::JobStatus> StatusMessage(store::Store& store, const store::JobRow& job,
                                      const LiveStatus& live, int64_t now_ms);

// The DAG texts can be large: lists and repeated events do without.
void DropDagTexts(v1::JobStatus& status);

}  // namespace kiln::scheduler
