// Further readings of the elites by devices that would be idle (elites.h), while that is wanted,
// and their way to the store.
//
// Thread-safe. The mutex says whether readings are taken: after End none is, nor noted.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch.h"
#include "scheduler/dispatch_items.h"
#include "scheduler/elites.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

class IdleReadings {
 public:
  // The store outlives this.
  IdleReadings(const Dispatcher::Job& job, store::Store& store);

  // ---- trials
  // Is its artifact worth keeping?
  bool MayBeElite(int task, const store::Record& record) const;
  // A trial that has a record; takes its artifact.
  void Add(MeasuredTrial& measured);

  // ---- the lanes of runners
  // What the device reads next; none: nothing.
  std::optional<EliteSet::Turn> Next(const std::string& device);
  void Note(const EliteSet::Turn& turn, const std::string& device, const v1::TrialResult& result);

  // ---- the search
  std::vector<search::Correction> TakeCorrections();

  // ---- the store
  bool has_unwritten() const { return elites_.has_unwritten(); }
  bool has_failures() const { return elites_.has_failures(); }
  // What was said since the last call.
  Status Write();
  // Writes, and takes no more of them.
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
  bool taken_;          // readings are
  std::mutex writing_;  // what was taken from the elites is written before what is taken next
};

}  // namespace kiln::scheduler
