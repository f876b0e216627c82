// The tracker's state machine: workers, leases and the queue of waiting requests.
//
// Pure: no gRPC, no threads, no clock, and no chance but new_lease_id. Every call passes the time
// (milliseconds of a monotonic clock); time that runs backwards counts as standing still. Not
// thread-safe: the caller locks.
//
// Rules
//   worker   A worker is gone when it is silent for deadline_ms, when it says `leaving`, or when a
//            new worker announces its address after it has missed an announcement (one process can
//            hold an address, so the old worker is dead). Its leases are lost with it. While a
//            worker announces itself, another id is refused at its address, and its id is refused
//            at another address.
//   lease    A lease is one slot for one scheduler. It ends lease_ms after the last Renew. Renew
//            recreates a lease that the registry does not know (after a restart, or expired) if the
//            slot is still free and the lease's id bears the seal that a registry of this farm gave
//            it for this scheduler, worker, user and priority. A released lease is never recreated.
//   use      A number that schedulers send for each user and kind of worker: how much of the farm
//            the user has had, divided by his weight (scheduler/fair_share). The last one that was
//            sent counts for all requests and leases of the user. A kind for which nobody sends a
//            number has 0 for all.
//   request  Requests are ordered by priority (high first), then by the use of their user (small
//            first), then by the fewest leases of that worker kind held by their user, then by
//            arrival. A request is granted as soon as a matching slot is free; a request that no
//            free worker serves does not hold up others.
//            It is dropped when it is not polled for request_idle_ms, with its lease if nobody
//            fetched the lease. A newer incarnation of its scheduler drops the request, and the
//            leases of the older incarnation.
//   mode     A worker's mode is the stricter one of the mode that it announces and of the mode that
//            an operator asks for, until the worker announces that it knows of the wish
//            (rpc/worker_modes.h has the order). Only a worker that serves gets new leases. A wish
//            lives as long as its worker: the worker repeats it, and a registry that knows no wish
//            takes that.
//   wanted   All leases of a worker that drains, is quarantined or paused are wanted. Another lease
//            is wanted if a waiting request should have its slot. The request then has the
//            higher priority; or it has the same priority, the lease is older than turn_ms, and its
//            user has the smaller use. Of users with equal use, and of two schedulers of one user,
//            a lease is wanted if its holder holds so much more that moving one slot is fairer (or
//            the waiting one holds nothing: slots then go round). A lease that is named counts as
//            moved for one turn when the next request is looked at, so that a small difference
//            moves one slot, and not all.
//
// After a restart, workers that are `rejoining` get no new leases for refill_ms, so that holders
// can renew first.
//
// Cost, with R waiting requests, W workers and L leases: an announcement that changes nothing, and
// a renewal of a lease, O(log W + log L). O(R log W) when a request or a lease comes or goes, or a
// worker changes, and per grant; workers with free slots that take no leases now are looked at
// besides. O(W + R + L) when something is due, and for the first request of a scheduler. Leases are
// marked as wanted with O(R log R + R * L), but when that is much, only so often that it takes a
// small share of the time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash/unique_id.h"
#include "base/status.h"
#include "proto/tracker.pb.h"
#include "rpc/worker_modes.h"
#include "tracker/worker_index.h"

namespace kiln::tracker {

struct RegistryOptions {
  // A worker that is silent for so long is gone.
  int64_t deadline_ms = 10'000;
  // Workers announce themselves so often, or 500 times a second all together if they are more than
  // 200, but at least four times in deadline_ms. A worker learns in this time that it should pause,
  // and then has half a second to stop its program (runner/child_process.h): a second in all, or
  // three for a thousand workers.
  int64_t announce_ms = 400;
  int64_t default_lease_ms = 10'000;
  int64_t max_lease_ms = 600'000;
  int64_t request_idle_ms = 5'000;
  // Interval between renewals that holders are told; less if a lease is short. More than 100
  // holders are told to renew 200 times a second all together, but at least once in turn_ms.
  // Holders learn within this time that a lease is wanted.
  int64_t renew_ms = 500;
  // Time without new leases on a rejoining worker: two renewals and a reconnect.
  int64_t refill_ms = 5'000;
  // A lease is not wanted for fairness before it is this old. Shares of users are exact to about
  // one turn.
  int64_t turn_ms = 2'000;
  size_t max_waiting = 10'000;
  size_t max_workers = 10'000;
  // Most ids of released leases that are remembered for the last minute.
  size_t max_remembered = 100'000;
  // Makes names for leases. Holders bring leases back under old names, and clients may make names
  // up, so a name that is in use is drawn again.
  std::function<std::string()> new_lease_id = [] { return UniqueId(); };
  // Makes the seal of a text, which only this farm's trackers can make, and make again after a
  // restart. Null: leases bear no seal, and any lease that fits is recreated.
  std::function<std::string(std::string_view text)> seal = nullptr;
};

class Registry {
 public:
  static constexpr uint32_t kMaxWaitMs = 30'000;
  // Most spans of drift in a reply, the newest ones.
  static constexpr size_t kMaxDrifts = 1'000;

  // `now_ms` is the time of the start. Leases on workers that have not announced themselves yet are
  // recreated during the first deadline_ms.
  Registry(RegistryOptions options, int64_t now_ms);

  // Takes the worker's whole state. InvalidArgument names the field. Nothing changes on an error.
  StatusOr<v1::AnnounceReply> Announce(const v1::AnnounceRequest& request, int64_t now_ms);

  // Queues the request or finds it again, and grants whatever can be granted, to other requests too
  // (TakeGranted). The caller promises to look again within wait_ms + request_idle_ms.
  StatusOr<v1::AcquireReply> Acquire(const v1::AcquireRequest& request, int64_t now_ms);

  // Returns the answer for a request that Acquire accepted. If the lease is unset, the request
  // still waits, or was dropped.
  v1::AcquireReply Poll(std::string_view request_id, int64_t now_ms);

  // Says that the caller has gone away: the request is dropped unless it is acquired again within
  // request_idle_ms.
  void StopPolling(std::string_view request_id, int64_t now_ms);

  // Returns ids of the requests granted since the last call, in the order of the grants.
  std::vector<std::string> TakeGranted();

  // Returns events since the last call that an operator wants to read, one line each: workers that
  // came and went, leases that were lost.
  std::vector<std::string> TakeEvents();

  StatusOr<v1::RenewReply> Renew(const v1::RenewRequest& request, int64_t now_ms);

  // Ignores unknown ids, and leases of other schedulers.
  void Release(const v1::ReleaseRequest& request, int64_t now_ms);

  // Notes an operator's wish for the workers that the request names, and returns their ids.
  // InvalidArgument: workers are not asked for such a mode; NotFound, FailedPrecondition: none or
  // several workers bear the name.
  StatusOr<v1::SetWorkerModeReply> SetWorkerMode(const v1::SetWorkerModeRequest& request,
                                                 int64_t now_ms);

  // Lets time pass: expires, drops and grants leases and requests that are due.
  void Advance(int64_t now_ms);

  // Returns the time at which Advance next has something to do, or a time before it; none: nothing
  // is pending.
  std::optional<int64_t> NextEventMs() const;

  v1::ListReply List(int64_t now_ms);

  // Counts since the start.
  struct Totals {
    // Workers that fell silent, or whose address another one took.
    uint64_t workers_lost = 0;
    // Leases of workers that were gone, for whatever reason.
    uint64_t leases_lost = 0;
    uint64_t leases_granted = 0;
  };
  const Totals& totals() const { return totals_; }

  int64_t NextAnnounceMs() const;
  int64_t NextRenewMs() const;

 private:
  using KindKey = std::pair<v1::WorkerKind, std::string>;

  // An operator's wish for a worker.
  struct Wish {
    v1::WorkerMode mode = v1::WORKER_SERVES;
    std::string by;
  };
  struct Worker {
    v1::WorkerState state;
    std::optional<Wish> wish;
    int64_t gone_at_ms = 0;
    // Time of the worker's last announcement.
    int64_t heard_ms = 0;
    int64_t grantable_from_ms = 0;
    // False if the worker is known from a renewed lease only.
    bool announced = false;
    uint64_t last_grant = 0;
    std::set<std::string> leases;
  };
  struct LeaseEntry {
    // The lease with its worker as it was when granted.
    v1::Lease lease;
    std::string scheduler_id;
    // Empty if Renew recreated the lease.
    std::string request_id;
    v1::WorkerKind kind = v1::WORKER_KIND_UNSPECIFIED;
    int64_t expires_ms = 0;
    int64_t granted_ms = 0;
    // Order of grants.
    uint64_t serial = 0;
    // Incarnation of the scheduler.
    uint64_t incarnation = 0;
    // Whether a waiting request should have the slot.
    bool wanted = false;
  };
  struct Request {
    v1::AcquireRequest request;
    uint64_t arrival = 0;
    int64_t keep_until_ms = 0;
    // Empty while the request waits.
    std::string lease_id;
    // True after a Poll has answered the lease.
    bool delivered = false;
  };
  // A lease that might go to a request, as MarkWanted looks at it.
  struct Candidate {
    LeaseEntry* lease = nullptr;
    const Worker* worker = nullptr;
    bool named = false;
  };
  struct Held {
    std::map<std::pair<v1::WorkerKind, std::string>, int64_t> by_user;
    std::map<std::pair<v1::WorkerKind, std::string>, int64_t> by_scheduler;
    int64_t User(v1::WorkerKind kind, const std::string& user) const;
    int64_t Scheduler(v1::WorkerKind kind, const std::string& scheduler_id) const;
    void Add(const LeaseEntry& entry, int64_t n);
  };

  // The leases and uses of the users, as MarkWanted sees it when some leases have moved.
  struct Shares {
    Held held;
    std::map<KindKey, double> use;
    double Use(v1::WorkerKind kind, const std::string& user) const;
    // Moves the lease to the request's user for one turn.
    void Move(const LeaseEntry& lease, const Request& request, double turn_s);
  };

  using Workers = std::map<std::string, Worker, std::less<>>;
  using Leases = std::map<std::string, LeaseEntry, std::less<>>;
  using Requests = std::map<std::string, Request, std::less<>>;

  void SetNow(int64_t now_ms);
  // Notes that Advance has something to do at this time.
  void NoteDue(int64_t at_ms) { due_ms_ = std::min(due_ms_.value_or(at_ms), at_ms); }
  void ExpireAll();
  std::optional<int64_t> SoonestMs() const;
  bool InFirstDeadline() const;
  EffectiveMode ModeOf(const Worker& worker) const;
  // Finds the worker by its id, its address or a unique part of its id.
  StatusOr<Workers::iterator> FindNamed(const std::string& name);
  // Returns the longest time until an announcement, after which a silent worker may be dead.
  int64_t PatienceMs() const;
  // Returns the slots that may be granted now.
  int64_t FreeSlots(const Worker& worker) const;
  bool Before(const Request& a, const Request& b) const;
  // Keeps the user's number. A number that is not finite is ignored.
  void NoteUse(v1::WorkerKind kind, const std::string& user, double use);
  void ForgetUsesOfTheGone();
  std::vector<Request*> WaitingInOrder();

  void Match();
  std::string NewLeaseName() const;
  std::string SealedId(std::string_view name, const v1::Lease& lease,
                       std::string_view scheduler_id) const;
  bool HasValidSeal(const v1::Lease& lease, std::string_view scheduler_id) const;
  void Grant(Request& request, Worker& worker);
  Worker* PickWorker(const v1::AcquireRequest& request);

  // Tells the index how many of the worker's slots are leased.
  void NoteLeases(const Worker& worker);
  void AddLease(LeaseEntry entry, Worker& worker);
  void RemoveLease(std::string_view id, bool released);
  void RemoveWorker(Workers::iterator worker, std::string_view why);
  void RememberReleased(const std::string& id);
  void RemoveRequest(Requests::iterator request);
  Status CheckIsOneProcess(const Worker& known, const v1::WorkerState& state) const;
  Status CheckAddressIsFree(const v1::WorkerState& state) const;
  void EvictAddress(const v1::WorkerState& state);
  void RevokeSurplus(Worker& worker);
  // Tells operators if the worker's mode is another one than before.
  void NoteMode(const Worker& worker, const EffectiveMode& before);

  void ReleaseEarlier(const std::string& scheduler_id, uint64_t incarnation);
  bool RenewOne(const v1::Lease& lease, const v1::RenewRequest& by);
  // Adds the spans of drift of all workers.
  void AddDrifts(v1::RenewReply& reply) const;
  bool Recreate(const v1::Lease& lease, const v1::RenewRequest& by);
  Worker* WorkerOfUnknownLease(const v1::WorkerState& state);
  // Tells whether a waiting request should have the slot, or the worker gives its leases back.
  bool IsWanted(const LeaseEntry& lease) const;
  void MarkWanted();
  Candidate* PickVictim(const Request& request, const Shares& shares,
                        std::vector<Candidate>& candidates);
  bool Outranks(const Request& request, const LeaseEntry& lease, const Shares& shares) const;
  int64_t LeaseMs(uint32_t asked_ms) const;

  const RegistryOptions options_;
  const int64_t start_ms_;
  int64_t now_ms_;
  // Counts arrivals and grants.
  uint64_t serial_ = 0;
  Totals totals_;
  Workers workers_;
  WorkerIndex index_;  // of workers_
  // Workers that were seen and are gone; kept during the first deadline_ms.
  std::set<std::string, std::less<>> departed_;
  Leases leases_;
  Requests requests_;
  // Requests without a lease, by arrival.
  std::map<uint64_t, Request*> waiting_;
  // Whether a waiting request may be granted now, because something has changed since the last
  // look.
  bool may_match_ = false;
  // The time that NextEventMs tells. Times that are put off leave it as it is: Advance then finds
  // nothing, and sets it anew.
  std::optional<int64_t> due_ms_;
  // Leases are not marked as wanted again before this time.
  int64_t mark_from_ms_ = 0;
  // Leases that users hold, and the last use that was sent for each.
  Shares shares_;
  // Ids of leases released within the last minute.
  std::set<std::string, std::less<>> released_;
  // Times at which to forget ids of released_, with the ids, in order.
  std::deque<std::pair<int64_t, std::string>> released_forget_;
  std::vector<std::string> granted_;
  std::vector<std::string> events_;
};

}  // namespace kiln::tracker
