// The scheduler's half of the tracker contract: leases workers of one kind and key, and keeps them
// leased.
//
// One thread renews the leases and sends releases. While the tracker is away, the leases in hand
// stay valid for outage_ms, so that a restart of the tracker costs no trial; then they are lost.
// Thread-safe. Handles may outlive the keeper.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rpc/farm_access.h"
#include "rpc/lease_source.h"
#include "rpc/retry_pause.h"

namespace kiln {

class LeaseKeeper : public LeaseSource {
 public:
  struct Options {
    // HOST:PORT.
    std::string tracker;
    FarmAccess access;
    // Id of the scheduler, which several keepers may share. It is unique for the life of the
    // scheduler process, or the same after a restart if the incarnation grows: the tracker then
    // releases the leases of the dead process.
    std::string scheduler_id;
    uint64_t incarnation = 0;
    v1::WorkerKind kind = v1::RUNNER;
    std::string key;
    std::string user;
    int32_t priority = 0;
    // Returns the user's use of the farm, which the tracker is told with each request and renewal
    // (AcquireRequest.use). Any thread. Null: 0.
    std::function<double()> use = nullptr;
    // Further Acquires wait here, not at the tracker.
    int max_leases = 1;
    // 0 = the tracker's default.
    uint32_t lease_ms = 0;
    int64_t outage_ms = 30'000;
    // For the pauses between calls that fail.
    Random random = RealRandom();
  };

  explicit LeaseKeeper(Options options);
  // Releases everything, which takes a second at most, and wakes all threads in Acquire with
  // Cancelled. No thread may be inside Acquire once this returns.
  ~LeaseKeeper() override;

  using LeaseSource::Acquire;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override;

  struct Snapshot {
    int held = 0;
    // Number of threads inside Acquire.
    int waiting = 0;
    // Whether the last call reached the tracker.
    bool tracker_reachable = false;
    // Error of the last call, if it failed.
    std::string tracker_error;
    // Numbers of the tracker's last answer to a waiting request; no slots: there is no such worker.
    uint32_t matching_slots = 0;
    uint32_t queue_position = 0;
  };
  Snapshot snapshot() const;

 private:
  class Core;
  // Handles hold the core weakly.
  std::shared_ptr<Core> core_;
  std::thread thread_;
};

}  // namespace kiln
