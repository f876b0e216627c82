// The next step of a fleet, as a function of what it sees: which Slurm jobs there are, which
// workers have announced themselves, and how many slots the farm's jobs want. It is a function of
// values, and knows no clock, no Slurm and no RPC.
//
// Runners and builders have a plan each. A plan keeps three rules:
//   - there are at most `limits.most` Slurm jobs, and at least `limits.least` that serve;
//   - a worker that serves is drained before its Slurm job is cancelled;
//   - a drained worker is asked to serve again before a new one is started.
#pragma once

#include <cstdint>
#include <vector>

#include "client/fleet/slurm_cluster.h"

namespace kiln::client {

// Workers of a kind: numbers of Slurm jobs, each of which runs one worker process.
struct FleetLimits {
  int least = 0;
  int most = 0;

  bool operator==(const FleetLimits&) const = default;
};

// The workers of a Slurm job, by what they do. A process with several GPUs is several workers.
enum class FleetWorkerState {
  // No worker of the job has announced itself.
  kAbsent,
  // A worker of the job takes trials, or would if its device were well.
  kServes,
  // All workers of the job end what they have in hand, because the fleet has asked them to.
  kDrains,
  // A person has stopped all workers of the job. The fleet leaves them alone.
  kStopped,
};

struct FleetJob {
  int64_t id = 0;
  SlurmJobState state = SlurmJobState::kPending;
  FleetWorkerState workers = FleetWorkerState::kAbsent;
  // Slots of its workers that are leased.
  int busy_slots = 0;
  // The fleet has cancelled it.
  bool cancelled = false;
};

// Numbers of slots, leased and waited for.
struct FleetDemand {
  // Slots that were wanted all the time of late: so many workers are started.
  int lasting = 0;
  // Most slots that were wanted at any time of late: so many workers are kept. At least `lasting`.
  int peak = 0;
};

// Numbers of Slurm jobs, and how many new ones to submit.
struct FleetPlan {
  int submit = 0;
  std::vector<int64_t> resume = {};
  std::vector<int64_t> drain = {};
  std::vector<int64_t> cancel = {};

  bool operator==(const FleetPlan&) const = default;
};

// `slots` is the number of slots of one Slurm job, at least 1.
FleetPlan PlanFleet(const std::vector<FleetJob>& jobs, const FleetDemand& demand,
                    const FleetLimits& limits, int slots);

// Returns how many Slurm jobs serve so many slots, within the limits.
int JobsFor(int wanted_slots, int slots, const FleetLimits& limits);

}  // namespace kiln::client
