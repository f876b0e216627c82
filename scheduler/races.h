// The final race of a task: its best candidates, measured in turns by one device
// (search/tuning/final_race.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "proto/trial.pb.h"
#include "scheduler/worker_calls.h"
#include "search/tuning/device_drift.h"
#include "store/store.h"

namespace kiln::scheduler {

// What the record says was read of it again.
store::Remeasurement KnownOf(const store::Record& record);

struct Finalist {
  int64_t record_id = 0;
  std::string steps;
  store::Remeasurement known = {};     // what was read of it before
  std::optional<double> first_s = {};  // its trial's own reading, where it is known
};
struct Finalists {
  int task = 0;
  std::vector<Finalist> entries;
};

// Finalists while they are built and measured. Until all are built, builders' lanes call SetBuilt
// and nobody changes anything else; then the race is that of the runner that has it.
struct Race {
  struct Entry {
    Finalist finalist;
    std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: not built (yet)
    v1::TrialResult failure = {};                            // has an error: why it is out
  };
  // `artifact` null: it is to be built. Before the first SetBuilt.
  void Add(Finalist finalist, std::shared_ptr<const v1::Artifact> artifact);
  // The entries that are to be built.
  std::vector<size_t> Missing() const;
  // True: it was the last one that was missing. Without an artifact and without an error it is out,
  // but nothing is said of it.
  bool SetBuilt(size_t entry, v1::BuildReply reply);

  std::vector<Entry> entries;
  // No turn begins from then on (Clock::MonotonicSeconds).
  double until_s = std::numeric_limits<double>::infinity();

 private:
  std::mutex mutex_;
  size_t to_build_ = 0;
};

// How much each device drifts, as one job has seen it. Thread-safe.
class DeviceDrifts {
 public:
  // As long as this.
  search::DeviceDrift& Of(const std::string& device);

 private:
  std::mutex mutex_;
  std::map<std::string, search::DeviceDrift> drifts_;  // only added to
};

// How readings of the best candidates of a job of so many trials are taken: longer than those of
// trials, but not in a job of few, and, where idle time is used, no longer than a trial that comes
// may wait.
void SetRemeasurement(uint32_t trials, v1::MeasureOptions& options);

// May the failure be another program's? Then only a second one counts.
bool MayBeChance(v1::ErrorKind error);

// Measures an artifact once on the race's runner.
using MeasureOnce =
    std::function<CallResult(const v1::Artifact& artifact, v1::MeasureReply* reply)>;

// True: somebody else is to have the runner now.
using IsWanted = std::function<bool()>;

// Runs it to its end; `remeasured` is then what came of each that was measured. A call that failed
// ends it: it begins anew elsewhere, as readings of two devices do not compare. `device`: who
// measures; what other devices have read before is left out. `drift`: of the device, in this job;
// learns what the race tells of it, and is in the intervals.
//
// The race yields where `is_wanted` says so before a turn, or after a turn that failed: the status
// is Aborted, and what was read is kept in its entries, with which it goes on at the next call.
CallResult RunRace(Race& race, const std::string& device, const MeasureOnce& measure,
                   const IsWanted& is_wanted, search::DeviceDrift& drift,
                   std::vector<store::Remeasurement>* remeasured);

}  // namespace kiln::scheduler
