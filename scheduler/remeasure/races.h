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
#include "scheduler/values/worker_calls.h"
#include "search/tuning/device_drift.h"
#include "store/store.h"

namespace kiln::scheduler {

// Returns the re-measurement that the record has.
store::Remeasurement KnownOf(const store::Record& record);

struct Finalist {
  int64_t record_id = 0;
  std::string steps;
  store::Remeasurement known = {};     // earlier readings of the finalist
  std::optional<double> first_s = {};  // its trial's own reading, if that is known
};
struct Finalists {
  int task = 0;
  std::vector<Finalist> entries;
};

// Finalists while they are built and measured. Until all are built, only answers of builders change
// the race, through SetBuilt. From then on the race belongs to the runner that measures it.
struct Race {
  struct Entry {
    Finalist finalist;
    std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: not built, or not yet
    // If it has an error, the reason why the entry is out.
    v1::TrialResult failure = {};
  };
  // Adds a finalist, which has to be built if `artifact` is null. Call before the first SetBuilt.
  void Add(Finalist finalist, std::shared_ptr<const v1::Artifact> artifact);
  // Returns the entries that have to be built.
  std::vector<size_t> Missing() const;
  // Returns true if this was the last missing entry. An entry that has neither an artifact nor an
  // error is out of the race, and no result of it is reported.
  bool SetBuilt(size_t entry, v1::BuildReply reply);

  std::vector<Entry> entries;
  // No turn begins after this time (Clock::MonotonicSeconds).
  double until_s = std::numeric_limits<double>::infinity();

 private:
  std::mutex mutex_;
  size_t to_build_ = 0;
};

// The drift of each device, as one job has observed it. Thread-safe.
class DeviceDrifts {
 public:
  // The reference is valid as long as this object.
  search::DeviceDrift& Of(const std::string& device);

 private:
  std::mutex mutex_;
  std::map<std::string, search::DeviceDrift> drifts_;  // entries are added and never removed
};

// Sets how the best candidates of a job with so many trials are measured again. Readings are longer
// than those of trials, except in a job of few trials. If idle time is used, readings are no longer
// than a new trial may wait.
void SetRemeasurement(uint32_t trials, v1::MeasureOptions& options);

// Tells whether another program may have caused the failure. If so, only a second failure counts.
bool MayBeTransient(v1::ErrorKind error);

// Measures an artifact once on the race's runner.
using MeasureOnce =
    std::function<CallResult(const v1::Artifact& artifact, v1::MeasureReply* reply)>;

// Returns true if another job should have the runner now.
using IsWanted = std::function<bool()>;

// Runs the race to its end. `remeasured` then has the results of all entries that were measured. A
// call that failed ends the race, which begins anew elsewhere, because readings of two devices do
// not compare. `device` names the device that measures; earlier readings by other devices are left
// out. `drift` is the drift of the device in this job; it learns from the race and widens the
// confidence intervals.
//
// The race yields if `is_wanted` returns true before a turn, or after a turn that failed. Then the
// status is Aborted, and the entries keep their readings, so that the next call goes on with them.
CallResult RunRace(Race& race, const std::string& device, const MeasureOnce& measure,
                   const IsWanted& is_wanted, search::DeviceDrift& drift,
                   std::vector<store::Remeasurement>* remeasured);

}  // namespace kiln::scheduler
