// The scheduler's half of the tracker contract: leases workers of one kind and key, and keeps them
// leased.
//
// One thread renews what is held and sends releases. While the tracker is away the leases in hand
// stay valid for outage_ms, so that its restart costs no trial; then they are lost. Thread-safe.
// Handles may outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/secret.h"
#include "rpc/lease_source.h"

namespace kiln {

class LeaseKeeper : public LeaseSource {
 public:
  struct Options {
    std::string tracker;  // HOST:PORT
    Secret secret;        // of the farm
    // Keepers may share it. Unique for the life of the scheduler process; or, with an incarnation
    // that grows, the same after its restart: the tracker releases then what the dead one held.
    std::string scheduler_id;
    uint64_t incarnation = 0;
    v1::WorkerKind kind = v1::RUNNER;
    std::string key;
    std::string user;
    int32_t priority = 0;
    int max_leases = 1;     // more Acquires wait here, not at the tracker
    uint32_t lease_ms = 0;  // 0 = the tracker's default
    int64_t outage_ms = 30'000;
  };

  explicit LeaseKeeper(Options options);
  // Releases everything (takes a second at most), wakes all who wait in Acquire with Cancelled.
  // None may be inside Acquire once this returns.
  ~LeaseKeeper() override;

  using LeaseSource::Acquire;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override;

  struct Snapshot {
    int held = 0;
    int waiting = 0;                 // inside Acquire
    bool tracker_reachable = false;  // as of the last call
    std::string tracker_error;       // of the last call, when it failed
    uint32_t matching_slots =
        0;  // of the tracker's last word to a waiting request: 0 = there is no such worker
    uint32_t queue_position = 0;
  };
  Snapshot snapshot() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // handles hold it weakly
  std::thread thread_;
};

}  // namespace kiln
