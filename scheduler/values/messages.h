// Messages and rows that only the scheduler makes: results that the store accepts, and the status
// of a job that may be running. Other conversions between rows and messages are in store/wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "scheduler/values/busy_meter.h"
#include "store/store.h"

namespace kiln::scheduler {

// Puts a result into the record of its trial. A result that the store would refuse (a success
// without costs, a cost of 0, an unknown error kind) becomes an UNKNOWN_ERROR with the reason.
void SetResult(const v1::TrialResult& result, store::Record& record);

// Cuts the text to at most max_bytes: it takes bytes out of the middle, at borders of characters.
std::string CutText(std::string_view text, size_t max_bytes);

// Facts about a job that are known only while it runs.
struct LiveStatus {
  bool waiting_for_workers = false;
  std::string blocked_reason;    // why the job waits
  std::string database_problem;  // why nothing can be written or read now
  std::string device;
  std::string phase;                  // "" while it searches
  std::optional<uint32_t> next_task;  // task of the newest round; empty before the first one
  // Results of earlier jobs, by task.
  struct Known {
    struct Best {
      int64_t record_id = 0;
      double cost_s = 0;
    };
    uint32_t states = 0;
    std::optional<Best> best;
  };
  std::vector<Known> known;  // one for each task, or empty
  // Jobs whose results this one waits for, one for each task, or empty.
  std::vector<std::string> tuned_by;
  std::vector<std::string> notices;
  BusyMeter::Reading busy;
};

// Joins the status in the store with `live`. `now_ms` gives the elapsed time of a job that runs.
StatusOr<v1::JobStatus> StatusMessage(store::Store& store, const store::JobRow& job,
                                      const LiveStatus& live, int64_t now_ms);

// Removes the DAG texts, which can be large, for lists and repeated events.
void DropDagTexts(v1::JobStatus& status);

}  // namespace kiln::scheduler
