#include "client/fleet/fleet_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace kiln::client {
namespace {

// The jobs by what may be done with them.
struct Sorted {
  // Jobs that serve or will serve.
  std::vector<FleetJob> serving;
  // Jobs that the fleet drains.
  std::vector<FleetJob> draining;
  // All jobs that count against the limit.
  int all = 0;
};

Sorted Sort(const std::vector<FleetJob>& jobs) {
  Sorted sorted;
  for (const FleetJob& job : jobs) {
    if (job.cancelled) continue;
    ++sorted.all;
    const bool runs = job.state == SlurmJobState::kRunning;
    if (runs && job.workers == FleetWorkerState::kStopped) continue;
    if (runs && job.workers == FleetWorkerState::kDrains) {
      sorted.draining.push_back(job);
    } else {
      sorted.serving.push_back(job);
    }
  }
  return sorted;
}

// Tells whether a job can be cancelled without asking its workers.
bool HasNoWorker(const FleetJob& job) {
  return job.state == SlurmJobState::kPending || job.workers == FleetWorkerState::kAbsent;
}

// Orders jobs by what their end costs: those that wait, those that start, idle ones, busy ones; the
// newest of each first.
bool EndsBefore(const FleetJob& a, const FleetJob& b) {
  const auto cost = [](const FleetJob& job) {
    const int stage = job.state == SlurmJobState::kPending ? 0 : HasNoWorker(job) ? 1 : 2;
    return std::tuple(stage, stage == 2 ? job.busy_slots : 0, -job.id);
  };
  return cost(a) < cost(b);
}

// Plans the end of jobs that are too many.
void Shrink(std::vector<FleetJob> serving, size_t surplus, FleetPlan& plan) {
  std::ranges::sort(serving, EndsBefore);
  for (const FleetJob& job : serving) {
    if (surplus == 0) return;
    --surplus;
    // A job that Slurm is ending goes by itself.
    if (job.state == SlurmJobState::kEnding) continue;
    (HasNoWorker(job) ? plan.cancel : plan.drain).push_back(job.id);
  }
}

// Plans that `missing` more jobs serve, as far as the limit allows.
void Grow(std::vector<FleetJob>& draining, int missing, int room, FleetPlan& plan) {
  // The worker that has most in hand loses most by its end.
  std::ranges::sort(draining, [](const FleetJob& a, const FleetJob& b) {
    return std::tuple(-a.busy_slots, a.id) < std::tuple(-b.busy_slots, b.id);
  });
  while (missing > 0 && !draining.empty()) {
    plan.resume.push_back(draining.front().id);
    draining.erase(draining.begin());
    --missing;
  }
  plan.submit = std::clamp(missing, 0, std::max(room, 0));
}

}  // namespace

int JobsFor(int wanted_slots, int slots, const FleetLimits& limits) {
  const int jobs = wanted_slots / slots + (wanted_slots % slots != 0 ? 1 : 0);
  return std::min(std::max(jobs, limits.least), limits.most);
}

FleetPlan PlanFleet(const std::vector<FleetJob>& jobs, const FleetDemand& demand,
                    const FleetLimits& limits, int slots) {
  FleetPlan plan;
  Sorted sorted = Sort(jobs);
  const int serving = static_cast<int>(sorted.serving.size());
  const int needed = JobsFor(demand.lasting, slots, limits);
  const int kept = std::max(needed, JobsFor(demand.peak, slots, limits));
  if (serving < needed) {
    Grow(sorted.draining, needed - serving, limits.most - sorted.all, plan);
  } else if (serving > kept) {
    Shrink(std::move(sorted.serving), static_cast<size_t>(serving - kept), plan);
  }
  for (const FleetJob& job : sorted.draining) {
    if (job.busy_slots == 0) plan.cancel.push_back(job.id);
  }
  return plan;
}

}  // namespace kiln::client
