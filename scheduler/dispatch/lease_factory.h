// The source of a job's workers: the tracker in the daemon, a fake in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rpc/farm_access.h"
#include "rpc/lease_source.h"

namespace kiln::scheduler {

struct LeaseSpec {
  v1::WorkerKind kind = v1::RUNNER;
  std::string key;
  std::string job_id;
  std::string user;
  int32_t priority = 0;
  // The user's use of the farm, by which waiting users are ordered (rpc/lease_keeper.h). Null: 0.
  std::function<double()> use = nullptr;
  int max_leases = 1;
};

struct Leases {
  std::unique_ptr<LeaseSource> source;
  // Returns the reason why no worker comes, for people; "" if no reason is known. Any thread.
  std::function<std::string()> why_waiting = [] { return std::string(); };
};

using LeaseFactory = std::function<Leases(const LeaseSpec&)>;

// Returns leases from the tracker at HOST:PORT. `scheduler_id` stays the same over restarts,
// `incarnation` grows with each restart. To the tracker each job is a holder of its own, so the
// jobs of one scheduler share workers as the jobs of several schedulers would.
LeaseFactory TrackerLeases(std::string tracker, std::string scheduler_id, uint64_t incarnation,
                           FarmAccess access = {});

}  // namespace kiln::scheduler
