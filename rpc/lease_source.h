// A source of workers for a scheduler: the interface, and the handle that it gives out. This file
// has no RPC: LeaseKeeper is the real source, FakeLeaseSource the source for tests.
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

// One slot of one worker, which the holder may use until the handle is destroyed or the lease is
// lost. Moves, does not copy. The handle belongs to one thread; any thread may use lost, wanted and
// the token. A handle may outlive its source: its lease is then lost.
class LeasedWorker {
 public:
  struct Signals {
    std::stop_source lost;
    std::atomic<bool> wanted = false;
  };

  // `release` is called once, when the handle lets go, even if the lease was lost.
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

  // The lease has expired, or the worker is gone. The holder must stop using the worker now, and do
  // a trial in hand again elsewhere.
  bool lost() const { return signals_->lost.stop_requested(); }
  // Fires when the lease is lost, to cancel the call that runs on the worker.
  std::stop_token lost_token() const { return signals_->lost.get_token(); }
  // Others wait for the slot: the holder should let go when the trial in hand is done. Can become
  // false again.
  bool wanted() const { return signals_->wanted; }

  // Has `call` run, once, after the slot was given back.
  void AlsoOnRelease(std::function<void()> call) {
    release_ = [first = std::exchange(release_, nullptr), call = std::move(call)] {
      if (first) first();
      call();
    };
  }

  // Gives the slot back, as the destructor does. Does not block.
  void Release() {
    if (auto release = std::exchange(release_, nullptr)) release();
  }

 private:
  v1::Lease lease_;
  std::shared_ptr<Signals> signals_;
  // Null once the slot was given back.
  std::function<void()> release_;
};

class LeaseSource {
 public:
  virtual ~LeaseSource() = default;

  // Waits for a worker. DeadlineExceeded after `timeout`, with the reason (no such worker, all
  // busy, no tracker); Cancelled if `stop` was requested; InvalidArgument if the source can never
  // serve the request. `avoid` has ids of workers that are of no use just now: the call waits for
  // others. Thread-safe: several threads may wait.
  virtual StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                         const std::vector<std::string>& avoid) = 0;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop) {
    return Acquire(timeout, std::move(stop), {});
  }
};

}  // namespace kiln
