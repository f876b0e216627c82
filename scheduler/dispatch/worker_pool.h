// Leases workers of one kind and feeds them from a queue.
//
// The pool asks for leases when there are items, keeps them while there are items, and lets one go
// when it is lost, when others want it, or when there was no item for a while. The while is a short
// one if the items were done on other workers before the lease came. A pool that has leases asks
// for more when an item has waited for a moment: the workers in hand may take it as soon. The pool
// asks for a few leases at a time: the tracker keeps a call open for each.
//
// An item that failed on a worker goes back to the front of the queue and is kept for another
// worker if there is one. The worker that failed is left alone for a while, which doubles with each
// failure: its leases are let go, and others are asked for. A worker that takes nothing for now is
// left alone for the shortest while, and has not failed.
//
// With `ahead`, a worker that has an item gets one more when no other lease can take that item. The
// worker has the item at hand when the first is done, and knows that it waits.
//
// A worker with a lease and without an item may do other work meanwhile, in short pieces; with
// `ahead` a new item is still sent at once.
//
// Thread-safe. Work holds no thread of the pool: it begins in the thread that brought the item or
// the lease, or that ended the work before it, and ends in any thread. The pool has a thread for
// each lease that it asks for at once, one that looks at the time, and one for each piece of other
// work. One mutex guards all state; the owner's functions are called and leases are given back
// without it. The pool knows no RPC: the owner's function does the work with an item on a worker.
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
#include "scheduler/values/helper_threads.h"

namespace kiln::scheduler {

// An item of a pool. The pool sets avoid_worker, the owner sets the rest before it pushes the item.
struct WorkItem {
  virtual ~WorkItem() = default;
  std::string avoid_worker = {};  // id of the worker where the item failed last
  // Ids of workers that take the item only if no others can.
  std::vector<std::string> last_choices = {};
  // Whether the item is never sent ahead, because it takes a worker for long.
  bool in_turn = false;
  std::chrono::steady_clock::time_point queued_at = {};  // the pool sets it
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
    int most_leases = 8;
    bool ahead = false;
    int most_asking = 4;  // leases that are asked for at a time
    // Time for which an item waits before a pool that has leases asks for another one.
    std::chrono::milliseconds ask_after{20};
    std::chrono::milliseconds idle_release{2'000};
    std::chrono::milliseconds first_backoff{1'000};
    std::chrono::milliseconds longest_backoff{15'000};
  };
  // Ends the work with an item. Called once, by any thread.
  using Done = std::function<void(Attempt attempt)>;
  // Begins the work with an item, which it owns from then on, and returns soon. The worker is valid
  // until `done` is called. The work must end soon after `stop`, and after the lease is lost.
  using Work = std::function<void(WorkItemPtr item, const LeasedWorker& worker,
                                  std::stop_token stop, Done done)>;

  // A piece of other work, which runs in a thread of its own.
  using Piece = std::function<Attempt()>;
  // Returns, soon, what a worker does that has no item and whose lease nobody wants; null: there is
  // nothing to do. The worker is valid until the piece has run. A piece must end soon after `stop`.
  using Meanwhile = std::function<Piece(const LeasedWorker& worker, std::stop_token stop)>;

  // `source` outlives the pool. `first` is a lease to begin with. `accept` returns the reason why a
  // worker can't be used, or "" if it can. If `accept` is null, all workers can be used.
  WorkerPool(Options options, LeaseSource& source, Work work,
             std::function<std::string(const v1::WorkerState&)> accept = nullptr,
             std::optional<LeasedWorker> first = std::nullopt, Meanwhile meanwhile = nullptr);
  // Stops, and waits like Join. Items that are left are dropped.
  ~WorkerPool();

  void Push(WorkItemPtr item);
  void PushFirst(WorkItemPtr item);
  // Tells workers without an item that there may be other work to do meanwhile.
  void Poke();

  // Gives out no more items, and tells the work in hand to stop. Does not block.
  void Stop();
  // Gives out no more items. Does not block. Stop may follow.
  void Drain();
  // Waits until all work has ended and all leases were given back. Call after Stop or Drain.
  void Join();

  // Returns the number of items that wait for a worker.
  size_t queued() const;
  // Returns how often the pool has looked at the time: as long as it has leases, at least once in
  // idle_release, and seldom oftener.
  uint64_t looks() const;
  // Returns the number of leases in hand on workers that are not left alone.
  int usable() const;
  // Tells whether there is a lease on another worker than this one that is not left alone.
  bool HasOther(const std::string& worker) const;
  // Returns the last complaint, which may be "", if items wait and there is no usable worker.
  // Returns nullopt if no item is blocked.
  std::optional<std::string> BlockedReason() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Backoff {
    int failures = 0;
    Clock::time_point until;
  };

  // A lease, and what its worker does.
  struct Place {
    explicit Place(LeasedWorker worker) : lease(std::move(worker)) {}
    const std::string& id() const { return lease.worker().id(); }

    LeasedWorker lease;
    bool works = false;            // on an item, or on other work
    bool ahead_works = false;      // on an item that was sent ahead
    bool is_idle = false;          // in idle_; the worker may have an item that was sent ahead
    bool is_counted = false;       // in usable_
    uint64_t seen_events = 0;      // the events before the last look for other work
    Clock::time_point idle_until;  // when the lease is let go if it has no item
    // Has the pool look when the lease is lost.
    std::optional<std::stop_callback<std::function<void()>>> on_lost;
  };
  using PlacePtr = std::shared_ptr<Place>;
  enum class Hand { kFirst, kAhead };
  // Work that begins when the lock is released. No item: other work.
  struct Start {
    PlacePtr place;
    Hand hand = Hand::kFirst;
    WorkItemPtr item;
  };

  // ---- leases
  void Ask();
  // Tells whether one more lease should be asked for. Lock held.
  bool NeedsLease() const;
  // Tells whether one more lease should be asked for once the first item has waited for
  // long enough. Lock held.
  bool MayNeedLease() const;
  bool MayAsk() const { return static_cast<int>(places_.size()) + asking_ < options_.most_leases; }
  // `patience` is how long the lease waits for its first item.
  void Take(LeasedWorker lease, std::chrono::milliseconds patience);
  // Tells whether the lease has to be let go once its work is done. Lock held.
  bool IsOver(const Place& place) const;
  // Puts the lease among those that the next Proceed gives back. Lock held.
  void LetGo(const PlacePtr& place);
  void Count(Place& place);    // lock held
  void Uncount(Place& place);  // lock held
  // Gives leases back that had no item for too long, or are lost, until the pool stops.
  void WatchTime();
  // Lets such leases go, and notes when the next one is due. Lock held.
  void LetIdleGo();
  // Has WatchTime look at that time at the latest. Lock held.
  void LookAt(Clock::time_point time);

  // ---- work
  // Begins all work that can begin, and gives back the leases that were let go. Releases the lock
  // meanwhile. A thread that is in here already goes on with it itself.
  void Proceed(Lock& lock);
  // Takes the items that can begin, and the leases that look for other work. Lock held.
  std::vector<Start> Starts();
  void AddStartsAhead(std::vector<Start>& starts);  // lock held
  void Begin(Start start);
  void BeginMeanwhile(const PlacePtr& place);
  void End(PlacePtr place, Hand hand, Attempt attempt);
  void NoteEnd();  // of work in hand; lock held
  // Notes that the worker has one item less: it is idle, let go, or still at work. Lock held.
  void Rest(const PlacePtr& place);
  // Notes what came of an item, or of other work. Lock held.
  void Settle(const LeasedWorker& lease, Attempt attempt);
  // Notes why nothing is done on the worker, which is left alone until then. Lock held.
  void LeaveAlone(const LeasedWorker& lease, std::chrono::milliseconds pause,
                  std::string_view reason);
  // Returns the workers to leave alone now, and the time when the first of them may be tried again.
  // Lock held.
  std::vector<std::string> BackedOffWorkers(Clock::time_point* until) const;
  bool IsBackedOff(const std::string& worker) const;
  // Returns the first item for this worker, or the end. Lock held.
  std::deque<WorkItemPtr>::iterator FindTakeable(const std::string& worker, bool ahead = false);

  const Options options_;
  LeaseSource& source_;
  const Work work_;
  const std::function<std::string(const v1::WorkerState&)> accept_;
  const Meanwhile meanwhile_;
  std::stop_source stop_;
  // Tells the work in hand to stop. Requested after stop_.
  std::stop_source stop_items_;

  mutable std::mutex mutex_;
  std::condition_variable asked_;    // the threads that ask for leases wait on it
  std::condition_variable refused_;  // those whose source refused wait on it
  std::condition_variable timed_;    // the thread that looks at the time waits on it
  std::condition_variable ended_;    // Join waits on it
  std::deque<WorkItemPtr> queue_;
  std::list<PlacePtr> places_;
  std::list<PlacePtr> idle_;                 // those that can take an item, the latest first
  std::vector<PlacePtr> let_go_;             // given back by the next Proceed
  std::vector<std::thread::id> proceeding_;  // threads that are in Proceed
  int asking_ = 0;                           // leases that are being asked for
  int in_hand_ = 0;                          // work that has not ended
  Clock::time_point next_look_;              // of the thread that looks at the time
  uint64_t looks_ = 0;
  uint64_t events_ = 0;                     // grows when there may be other work to do meanwhile
  std::map<std::string, int> usable_;       // worker id -> leases that can be used now
  int usable_places_ = 0;                   // their sum
  std::map<std::string, Backoff> trouble_;  // key: worker id
  std::string problem_;                     // the last complaint or refusal; "" after a success
  HelperThreads helpers_;                   // the rest uses the other members
  std::vector<std::thread> threads_;
};

}  // namespace kiln::scheduler
