// The finals of a task: its best candidates, measured in turns by one device (search/final_race.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "proto/runner.pb.h"
#include "proto/trial.pb.h"
#include "scheduler/worker_calls.h"
#include "search/device_drift.h"
#include "store/store.h"

namespace kiln::scheduler {

struct Finalist {
  int64_t record_id = 0;
  std::string steps;
  store::Finals known = {};  // what was read of it before
  double first_s = 0;        // its trial's own reading; 0 = not known
};
struct Finalists {
  int task = 0;
  std::vector<Finalist> entries;
};

// Finalists while they are built and measured.
struct Race {
  struct Entry {
    Finalist finalist;
    std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: not built (yet)
    v1::TrialResult failure = {};                            // has an error: why it is out
  };
  std::vector<Entry> entries;
  size_t to_build = 0;
  // No turn begins from then on (Clock::MonotonicSeconds).
  double until_s = std::numeric_limits<double>::infinity();
};

// How readings of the best candidates of a job of so many trials are taken: longer than those of
// trials, but not in a job of few, and, where idle time is used, no longer than a trial that comes
// may wait.
void SetFinalReading(uint32_t trials, v1::MeasureOptions& options);

// May the failure be another program's? Then only a second one counts.
bool MayBeChance(v1::ErrorKind error);

// Measures an artifact once on the race's runner.
using MeasureOnce =
    std::function<CallResult(const v1::Artifact& artifact, v1::MeasureReply* reply)>;

// Runs it to its end; `finals` is then what came of each that was measured. A call that failed ends
// it: it begins anew elsewhere, as readings of two devices do not compare. `device`: who measures;
// what other devices have read before is left out. `drift`: of the device, in this job; learns what
// the race tells of it, and is in the intervals.
CallResult RunRace(Race& race, const std::string& device, const MeasureOnce& measure,
                   search::DeviceDrift& drift, std::vector<store::Finals>* finals);

}  // namespace kiln::scheduler
