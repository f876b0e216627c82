// Leases workers of one kind and feeds them from a queue: one thread (a lane) serves each lease.
//
// A lane asks for a lease when there are items, keeps the lease while there are items, and lets it
// go when it is lost, when others want it, or when there was no item for a while. The while is a
// short one if other lanes have taken the items before the lease came. A few lanes ask
// at a time: the tracker keeps a call open for each, and the next lane asks when one has its lease.
// An item that failed on a worker goes back to the front of the queue and is kept for another
// worker if there is one. The worker that failed is left alone for a while, which doubles with each
// failure: its leases are let go, and others are asked for. A worker that takes nothing for now is
// left alone for the shortest while, and has not failed.
//
// With `ahead`, a lane whose worker has an item sends it one more when no other lane can take that
// item. The worker has the item at hand when the first is done, and knows that it waits.
//
// A lane with a lease and without an item may do other work meanwhile, in short pieces; with
// `ahead` a new item is still sent at once.
//
// Thread-safe. The pool knows no RPC: the owner's function does the work with an item on a worker.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
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

// An item of a pool. The pool sets avoid_worker, the owner sets the rest before it pushes the item.
struct WorkItem {
  virtual ~WorkItem() = default;
  std::string avoid_worker = {};  // id of the worker where the item failed last
  // Ids of workers that take the item only if no others can.
  std::vector<std::string> last_choices = {};
  // Whether the item is never sent ahead, because it takes a worker for long.
  bool in_turn = false;
};
using WorkItemPtr = std::unique_ptr<WorkItem>;

// The result of an item on a worker.
struct Attempt {
  // If not null, the item is not done and goes back to the queue.
  WorkItemPtr again = nullptr;
  // If not empty, the reason why the worker should be left alone for a while.
  std::string complaint = {};
  // If not empty, the reason why the worker takes nothing for now.
  std::string rest = {};
};

class WorkerPool {
 public:
  struct Options {
    std::string name = "worker";  // used in logs and reasons for a block
    int lanes = 8;
    bool ahead = false;
    size_t most_asking = 4;  // lanes that ask for a lease at a time
    std::chrono::milliseconds idle_release{2'000};
    std::chrono::milliseconds first_backoff{1'000};
    std::chrono::milliseconds longest_backoff{15'000};
  };
  // Runs in a lane, with an item that it owns from then on. Must end soon after `stop`, and after
  // the lease is lost.
  using Work =
      std::function<Attempt(WorkItemPtr item, const LeasedWorker& worker, std::stop_token stop)>;

  // Runs in a lane whose worker has no item and whose lease nobody wants. Returns nothing if there
  // was nothing to do. Must end soon after an item comes.
  using Meanwhile =
      std::function<std::optional<Attempt>(const LeasedWorker& worker, std::stop_token stop)>;

  // `source` outlives the pool. `first` is a lease to begin with. `accept` returns the reason why a
  // worker can't be used, or "" if it can. If `accept` is null, all workers can be used.
  WorkerPool(Options options, LeaseSource& source, Work work,
             std::function<std::string(const v1::WorkerState&)> accept = nullptr,
             std::optional<LeasedWorker> first = std::nullopt, Meanwhile meanwhile = nullptr);
  // Stops. Items that are left are dropped.
  ~WorkerPool();

  void Push(WorkItemPtr item);
  void PushFirst(WorkItemPtr item);
  // Tells idle lanes that there may be other work to do meanwhile.
  void Poke();

  // Lets lanes end after the item in hand, which is told to stop. Does not block.
  void Stop();
  // Lets lanes end when the item in hand is done. Does not block. Stop may follow.
  void Drain();
  // Waits until all lanes have ended.
  void Join();

  // Returns the number of items that wait for a worker.
  size_t queued() const;
  // Returns the number of leases in hand on workers that are not left alone.
  int usable() const;
  // Tells whether another worker than this one has a lane and is not left alone.
  bool HasOther(const std::string& worker) const;
  // Returns the last complaint, which may be "", if items wait and there is no usable worker.
  // Returns nullopt if no item is blocked.
  std::optional<std::string> BlockedReason() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Backoff {
    int failures = 0;
    Clock::time_point until;
  };

  // A lane that has a lease and waits for an item, or for other work to do meanwhile.
  struct IdleLane {
    const std::string& worker;
    std::condition_variable called = {};
    bool is_called = false;
  };

  // Wakes those that a change of the queue or of the leases concerns: for each item one idle lane
  // that can take it, or else one resting lane, which wakes the next. Lock held.
  void Notify();
  // Wakes all who wait, for a change that concerns all. Lock held.
  void NotifyAll();
  // Calls idle lanes until there is one for each item. Lock held.
  void CallIdleLanes();
  // Calls all idle lanes, because there may be other work to do meanwhile. Lock held.
  void CallToMeanwhile();
  void Call(std::list<IdleLane*>::iterator lane);
  // Waits until the lane is called and `done`, or until the time; false: it was the time.
  bool WaitIdle(std::unique_lock<std::mutex>& lock, const std::string& worker,
                Clock::time_point until, const std::function<bool()>& done);
  // Tells whether a resting lane should ask for a lease. Lock held.
  bool NeedsLease() const {
    return queue_.size() > seeking_ && seeking_ - idle_ < options_.most_asking;
  }
  void RunLane(std::optional<LeasedWorker> lease);
  // Returns false when the pool stops.
  bool WaitForWork();
  std::optional<LeasedWorker> AcquireLease();
  // Serves until the lease has to be let go. `waits` as in Serving.
  void Serve(const LeasedWorker& lease, bool waits);
  // The state that the two threads of a lease share. The mutex guards it.
  struct Serving {
    bool over = false;         // ServeInTurn has ended
    bool ahead_works = false;  // ServeAhead has an item in hand
    // An item was done with the lease, or is to come: the lease waits for the next one.
    bool waits = false;
  };
  void ServeInTurn(const LeasedWorker& lease, Serving& serving);
  // Sends items ahead beside ServeInTurn, until that is over.
  void ServeAhead(const LeasedWorker& lease, Serving& serving);
  // Tells whether the queue has an item that would have to wait for this worker anyway. Lock held.
  bool MayGoAhead(const std::string& worker);
  // Returns the workers to leave alone now, and the time when the first of them may be tried again.
  // Lock held.
  std::vector<std::string> BackedOffWorkers(Clock::time_point* until) const;
  bool IsBackedOff(const std::string& worker) const;
  WorkItemPtr Take(std::unique_lock<std::mutex>& lock, const LeasedWorker& lease,
                   const Serving& serving);
  // Returns the first item for this worker, or the end. Lock held.
  std::deque<WorkItemPtr>::iterator FindTakeable(const std::string& worker, bool ahead = false);
  void Settle(const LeasedWorker& lease, Attempt attempt);
  // Notes why nothing is done on the worker, which is left alone until then. Lock held.
  void LeaveAlone(const LeasedWorker& lease, std::chrono::milliseconds pause,
                  std::string_view reason);

  const Options options_;
  LeaseSource& source_;
  const Work work_;
  const std::function<std::string(const v1::WorkerState&)> accept_;
  const Meanwhile meanwhile_;
  std::stop_source stop_;
  // Tells the items in hand to stop. Requested after stop_.
  std::stop_source stop_items_;

  mutable std::mutex mutex_;
  // Threads that send items ahead wait on it, and lanes whose source refused.
  std::condition_variable changed_;
  // Resting lanes wait on it.
  std::condition_variable rested_;
  std::list<IdleLane*> idle_lanes_;  // those that nobody has called, the latest first
  size_t called_ = 0;                // lanes that were called and have not looked yet
  std::deque<WorkItemPtr> queue_;
  // Lanes that will take an item once they can: no more lanes need ask for leases.
  size_t seeking_ = 0;
  size_t idle_ = 0;                         // lanes among them that have a lease
  size_t resting_ = 0;                      // lanes that have no lease and ask for none
  uint64_t events_ = 0;                     // grows when there may be other work to do meanwhile
  std::map<std::string, int> usable_;       // worker id -> lanes that can work on it now
  std::map<std::string, Backoff> trouble_;  // key: worker id
  std::string problem_;                     // the last complaint or refusal; "" after a success
  std::vector<std::thread> lanes_;          // last: they use the other members
};

}  // namespace kiln::scheduler
