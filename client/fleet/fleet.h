// Keeps as many workers of a farm alive as its queue needs, as jobs of a cluster that Slurm
// schedules. The fleet decides how many workers there are; Slurm decides where and when they run.
//
// The fleet keeps no file: each look asks the farm and the cluster what there is, so a fleet that
// is started again goes on with its jobs. While one of the two does not answer, the fleet changes
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/fleet/demand_history.h"
#include "client/fleet/farm_queue.h"
#include "client/fleet/fleet_plan.h"
#include "client/fleet/fleet_view.h"
#include "client/fleet/slurm_cluster.h"
#include "client/fleet/submit_pause.h"

namespace kiln::client {

// One kind of workers of a fleet.
struct FleetKindOptions {
  v1::WorkerKind kind = v1::RUNNER;
  FleetLimits limits = {};
  // Slots of one Slurm job.
  int slots = 1;
  SlurmJobRequest request = {};
  // Path of its logs for people; "%j" stands for the job's number.
  std::string log_file = {};
  FleetKeys keys = {};
};

struct FleetOptions {
  std::string name = {};
  // Slots must have been wanted for so long before a worker is started for them.
  double grow_after_s = 10;
  // A worker must have been spare for so long before it is drained.
  double shrink_after_s = 120;
  std::vector<FleetKindOptions> kinds = {};
};

// For one thread. The cluster, the farm's queue and the clock outlive the fleet.
class Fleet {
 public:
  // `print` gets a line of text for each change.
  Fleet(FleetOptions options, SlurmCluster& cluster, FarmQueue& farm, Clock& clock,
        std::function<void(const std::string&)> print);
  ~Fleet();

  // Looks once, and does what the plan says.
  void Tick();

  // From now on no worker is wanted: those that work are drained, and then all jobs are cancelled.
  void End() { ending_ = true; }
  // Tells whether the last look after End found no job but those that are cancelled, or whose
  // workers a person has stopped.
  bool ended() const { return ending_ && nothing_left_; }

 private:
  // One kind of workers, from one look to the next.
  struct Kind;
  // A Slurm job as the fleet has seen it.
  struct KnownJob {
    SlurmJobState state = SlurmJobState::kPending;
    std::string detail = {};
    bool announced = false;
  };

  // The two answers of one look.
  struct Look {
    v1::ListReply farm = {};
    std::vector<SlurmJob> jobs = {};
  };

  StatusOr<Look> LookAround();
  void TickKind(const Look& look, Kind& kind);
  // Prints what has become of the jobs, and counts those that ended before they announced a worker.
  void Follow(const FleetView& view, const std::vector<SlurmJob>& jobs, Kind& kind);
  void FollowJob(const FleetJob& job, const std::string& detail, Kind& kind);
  void FollowLost(int64_t id, const KnownJob& job, Kind& kind);
  FleetPlan Plan(const FleetView& view, const Kind& kind) const;
  void Do(const FleetPlan& plan, const FleetView& view, const Look& look, Kind& kind);
  void Submit(int count, const FleetView& view, Kind& kind);
  void Ask(const std::vector<int64_t>& jobs, v1::WorkerMode mode, const FleetView& view,
           const Look& look, const Kind& kind);
  void Cancel(const std::vector<int64_t>& jobs, const FleetView& view, const Kind& kind);
  // Prints a trouble when it begins or changes, and its end when `status` is OK.
  void Tell(std::string_view what, const Status& status);

  const FleetOptions options_;
  SlurmCluster& cluster_;
  FarmQueue& farm_;
  Clock& clock_;
  const std::function<void(const std::string&)> print_;
  std::vector<std::unique_ptr<Kind>> kinds_;
  std::set<int64_t> cancelled_;
  // The troubles that were told, by what does not work.
  std::map<std::string, std::string, std::less<>> troubles_;
  bool ending_ = false;
  bool nothing_left_ = false;
};

}  // namespace kiln::client
