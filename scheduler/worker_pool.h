// Leases workers of one kind and feeds them from a queue: one thread (a lane) for each lease.
//
// A lane asks for a lease when there is something to do, keeps it while there is, and lets it go
// when it is lost, when others want it, or when there was nothing to do for a while. An item that
// failed on a worker goes back to the front of the queue and is kept for another worker if there is
// one; the worker that failed is left alone for a while, twice as long each time: its leases are
// let go, and others are asked for.
//
// With `ahead`, a lane that is at work sends its worker one more item when no other lane can take
// it: the worker has it at hand when it is done with the first, and knows that it waits.
//
// A lane with a lease and without an item may do something else meanwhile, in short pieces; with
// `ahead` an item that comes is sent at once all the same.
//
// Thread-safe. Knows no RPC: what is done with an item on a worker is the owner's function.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "rpc/lease_source.h"

namespace kiln::scheduler {

// What goes through a pool. The pool sets avoid_worker, the rest is the owner's.
struct WorkItem {
  virtual ~WorkItem() = default;
  std::string avoid_worker = {};  // id of the worker it failed on last
};
using WorkItemPtr = std::unique_ptr<WorkItem>;

// What came of an item on a worker.
struct Attempt {
  // Not null: not done, it goes back to the queue.
  WorkItemPtr again = nullptr;
  // Not empty: why the worker should be left alone for a while.
  std::string complaint = {};
};

class WorkerPool {
 public:
  struct Options {
    std::string name = "worker";  // in logs and blocked_reasons
    int lanes = 8;
    bool ahead = false;
    std::chrono::milliseconds idle_release{2'000};
    std::chrono::milliseconds first_backoff{1'000};
    std::chrono::milliseconds longest_backoff{15'000};
  };
  // Runs in a lane, for an item that it owns from then on. Must end soon after `stop`, and after
  // the lease is lost.
  using Work =
      std::function<Attempt(WorkItemPtr item, const LeasedWorker& worker, std::stop_token stop)>;

  // Runs in a lane whose worker has nothing in hand and whose lease nobody wants. Nothing: there
  // was nothing to do. Must end soon after an item comes.
  using Meanwhile =
      std::function<std::optional<Attempt>(const LeasedWorker& worker, std::stop_token stop)>;

  // `source` outlives this. `first`: a lease to begin with. `accept` says why a worker can't be
  // used, "" when it can; null: all can.
  WorkerPool(Options options, LeaseSource& source, Work work,
             std::function<std::string(const v1::WorkerState&)> accept = nullptr,
             std::optional<LeasedWorker> first = std::nullopt, Meanwhile meanwhile = nullptr);
  // Stops. Items that are left are dropped.
  ~WorkerPool();

  void Push(WorkItemPtr item);
  void PushFirst(WorkItemPtr item);
  // There may be something to do meanwhile.
  void Poke();

  // Lanes end after the item in hand, which is told to stop. Does not block.
  void Stop();
  // Until all lanes have ended.
  void Join();

  // Leases in hand on workers that are not left alone.
  int usable() const;
  // A worker that is not left alone has a lane, and is not this one.
  bool HasOther(const std::string& worker) const;
  // Work waits and there is no usable worker: what stands in the way, as far as the pool knows it;
  // nullopt: nothing does.
  std::optional<std::string> BlockedReason() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Trouble {
    int failures = 0;
    Clock::time_point until;
  };

  void RunLane(std::optional<LeasedWorker> lease);
  // False: the pool stops.
  bool WaitForWork();
  std::optional<LeasedWorker> AcquireLease();
  // Serves until the lease is to be let go.
  void Serve(const LeasedWorker& lease);
  // What the two threads of a lease know of each other; guarded by the mutex.
  struct Serving {
    bool over = false;         // ServeInTurn has ended
    bool ahead_works = false;  // ServeAhead has an item in hand
  };
  void ServeInTurn(const LeasedWorker& lease, const Serving& serving);
  // Beside ServeInTurn, until it is over.
  void ServeAhead(const LeasedWorker& lease, Serving& serving);
  // What the items of this worker's lane would have to wait for anyway; lock held.
  bool MayGoAhead(const std::string& worker);
  // The workers to leave alone now, and when the first of them may be tried again; lock held.
  std::vector<std::string> InTroubleNow(Clock::time_point* until) const;
  bool InTrouble(const std::string& worker) const;
  WorkItemPtr Take(std::unique_lock<std::mutex>& lock, const LeasedWorker& lease,
                   const Serving& serving);
  std::deque<WorkItemPtr>::iterator FindTakeable(const std::string& worker);
  void Settle(const LeasedWorker& lease, Attempt attempt);

  const Options options_;
  LeaseSource& source_;
  const Work work_;
  const std::function<std::string(const v1::WorkerState&)> accept_;
  const Meanwhile meanwhile_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkItemPtr> queue_;
  size_t seeking_ = 0;   // lanes that will take an item once they can: more need not ask for leases
  size_t idle_ = 0;      // of these, the ones that have a lease
  size_t resting_ = 0;   // lanes that have none and ask for none
  uint64_t events_ = 0;  // grows when there may be something to do meanwhile
  std::map<std::string, int> usable_;       // worker id -> lanes that can work on it now
  std::map<std::string, Trouble> trouble_;  // by worker id
  std::string problem_;                     // the last complaint or refusal; "" after a success
  std::vector<std::thread> lanes_;          // last: they use the rest
};

}  // namespace kiln::scheduler
