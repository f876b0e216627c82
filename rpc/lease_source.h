// Where a scheduler gets workers from: the interface, and the handle it gives out. No RPC in here:
// LeaseKeeper is the real source, FakeLeaseSource the one for tests.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln {

// One slot of one worker, ours until this is destroyed or lost. Moves, does not copy. The handle
// belongs to one thread; lost, wanted and the token may be used by any. It may outlive its source:
// the lease is lost then.
class LeasedWorker {
 public:
  struct Signals {
    std::stop_source lost;
    std::atomic<bool> wanted = false;
  };

  // `release` is called once, when the handle lets go, whether or not the lease was lost.
  LeasedWorker(v1::Lease lease, std::shared_ptr<Signals> signals, std::function<void()> release)
      : lease_(std::move(lease)), signals_(std::move(signals)), release_(std::move(release)) {}
  LeasedWorker(LeasedWorker&& other) noexcept
      : lease_(std::move(other.lease_)),
        signals_(std::move(other.signals_)),
        release_(std::exchange(other.release_, nullptr)) {}
  LeasedWorker& operator=(LeasedWorker&& other) noexcept {
    if (this == &other) return *this;
    Release();
    lease_ = std::move(other.lease_);
    signals_ = std::move(other.signals_);
    release_ = std::exchange(other.release_, nullptr);
    return *this;
  }
  ~LeasedWorker() { Release(); }

  const v1::WorkerState& worker() const { return lease_.worker(); }
  const std::string& lease_id() const { return lease_.id(); }

  // Expired, or the worker is gone: stop using it now, a trial in hand must be done again
  // elsewhere.
  bool lost() const { return signals_->lost.stop_requested(); }
  // Fires when the lease is lost: cancels the call that runs on the worker.
  std::stop_token lost_token() const { return signals_->lost.get_token(); }
  // Others wait for it: let go when the trial in hand is done. Can become false again.
  bool wanted() const { return signals_->wanted; }

  // Gives the slot back, as the destructor does; does not block.
  void Release() {
    if (auto release = std::exchange(release_, nullptr)) release();
  }

 private:
  v1::Lease lease_;
  std::shared_ptr<Signals> signals_;
  std::function<void()> release_;  // null: let go
};

class LeaseSource {
 public:
  virtual ~LeaseSource() = default;

  // Waits for a worker. DeadlineExceeded after `timeout` with what stood in the way (no such
  // worker, all busy, no tracker); Cancelled when `stop` was requested; InvalidArgument when the
  // source can never serve it. Thread-safe: several threads may wait.
  // `avoid`: ids of workers that are of no use just now; it waits for others.
  virtual StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                         const std::vector<std::string>& avoid) = 0;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop) {
    return Acquire(timeout, std::move(stop), {});
  }
};

}  // namespace kiln
