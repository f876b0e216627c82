// Takes further readings of the elites on devices that would be idle (elites.h), as long as the job
// wants them, and writes them to the store.
//
// Thread-safe. The mutex guards whether readings are taken: after End none is taken or noted.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_items.h"
#include "scheduler/remeasure/elites.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

class IdleReadings {
 public:
  // The store outlives this object.
  IdleReadings(const Dispatcher::Job& job, store::Store& store);

  // ---- trials
  // Tells whether the trial's artifact is worth keeping.
  bool MayBeElite(int task, const store::Record& record) const;
  // Adds a trial that has a record. Moves its artifact out of `measured`.
  void Add(MeasuredTrial& measured);

  // ---- runners
  // Returns the elite that the device reads next, or nothing.
  std::optional<EliteSet::Turn> Next(const std::string& device);
  void Note(const EliteSet::Turn& turn, const std::string& device, const v1::TrialResult& result);

  // ---- the search
  std::vector<search::Correction> TakeCorrections();

  // ---- the store
  bool has_unwritten() const { return elites_.has_unwritten(); }
  bool has_failures() const { return elites_.has_failures(); }
  // Writes the results since the last call.
  Status Write();
  // Writes the results, and takes no more readings.
  Status End();

  // ---- the final race
  store::Remeasurement KnownOn(int64_t record_id, const std::string& device) const {
    return elites_.KnownOn(record_id, device);
  }
  std::shared_ptr<const v1::Artifact> ArtifactOf(int64_t record_id) const {
    return elites_.ArtifactOf(record_id);
  }

 private:
  bool taken() const;

  const std::string job_id_;
  store::Store& store_;
  EliteSet elites_;
  mutable std::mutex mutex_;
  bool taken_;  // whether readings are taken
  // Keeps the order of writes: results that were taken first are written first.
  std::mutex writing_;
};

}  // namespace kiln::scheduler
