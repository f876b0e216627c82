// The tracker's state machine: workers, leases and the queue of waiting requests.
//
// Pure: no gRPC, no threads, no clock, no chance but new_lease_id. Every call says what time it is
// (milliseconds of a monotonic clock); time that runs backwards counts as standing still. Not
// thread-safe: the caller locks.
//
// Rules
//   worker   gone when silent for deadline_ms, when it says `leaving`, or when a new worker
//            announces its address after it has missed an announcement (one process can hold an
//            address, so the old one is dead). Its leases are lost with it. While it announces
//            itself, another id is refused at its address, and so is its id at another address.
//   lease    one slot for one scheduler; gone lease_ms after the last Renew. Renew recreates a
//            lease the registry does not know (restart, or expired) if the slot is still free and
//            its id bears the seal that a registry of this farm gave it for this scheduler, worker,
//            user and priority; but never one that was released.
//   request  ordered by priority (high first), fewest leases of that worker kind held by its user,
//            arrival. Granted as soon as a matching slot is free; one that no free worker serves
//            holds nobody up. Dropped, with its lease if nobody fetched it, when not polled for
//            request_idle_ms. A newer incarnation of its scheduler drops it, and the leases of the
//            older one.
//   wanted   a lease whose slot a waiting request should have: the request has the higher priority;
//            or the same, and the lease is older than turn_ms and its user holds so much more that
//            moving one slot is fairer (or the waiting user holds nothing: slots then go round).
//            Two schedulers of one user likewise.
//
// After a restart, workers that are `rejoining` get no new leases for refill_ms, so that holders
// can renew first.
//
// Cost: with R waiting requests, W workers, L leases: Announce, Release and a tick O(W + R + L)
// plus O(R) per grant; Renew and wanted O(R log R + R * L) when anybody waits.
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

#include "base/status.h"
#include "base/unique_id.h"
#include "proto/tracker.pb.h"

namespace kiln::tracker {

struct RegistryOptions {
  int64_t deadline_ms = 10'000;  // a worker silent for so long is gone
  int64_t default_lease_ms = 10'000;
  int64_t max_lease_ms = 600'000;
  int64_t request_idle_ms = 5'000;
  // How often holders are told to renew, at most; often enough for any lease_ms. So soon they know
  // that a lease is wanted.
  int64_t renew_ms = 500;
  int64_t refill_ms =
      5'000;  // no new leases on a rejoining worker for so long: two renews and a reconnect
  int64_t turn_ms = 5'000;  // a lease is not wanted for fairness before it is so old
  size_t max_waiting = 10'000;
  size_t max_workers = 10'000;
  size_t max_remembered = 100'000;  // released leases, of the last minute
  // Names for leases. Holders bring leases back under names of old, and clients may make names up:
  // one that is in use is drawn again.
  std::function<std::string()> new_lease_id = [] { return UniqueId(); };
  // What only this farm's trackers can make of a text, and make of it again after a restart. Null:
  // leases bear no seal, and any that fits is recreated.
  std::function<std::string(std::string_view text)> seal = nullptr;
};

class Registry {
 public:
  static constexpr uint32_t kMaxWaitMs = 30'000;

  // `now_ms`: the start; leases on workers not yet announced are recreated during the first
  // deadline_ms.
  Registry(RegistryOptions options, int64_t now_ms);

  // The worker's whole state. InvalidArgument names the field. Nothing changes on an error.
  StatusOr<v1::AnnounceReply> Announce(const v1::AnnounceRequest& request, int64_t now_ms);

  // Queues the request or finds it again, and grants what can be granted (to others too:
  // TakeGranted). The caller promises to look again within wait_ms + request_idle_ms.
  StatusOr<v1::AcquireReply> Acquire(const v1::AcquireRequest& request, int64_t now_ms);

  // The answer for a request that Acquire accepted. Unset lease: still waiting, or dropped.
  v1::AcquireReply Poll(std::string_view request_id, int64_t now_ms);

  // The caller has gone away: the request is dropped unless it is acquired again within
  // request_idle_ms.
  void StopPolling(std::string_view request_id, int64_t now_ms);

  // Ids of the requests granted since the last call, in the order of the grants.
  std::vector<std::string> TakeGranted();

  // What happened since the last call that an operator wants to read, a line each: workers that
  // came and went, leases that were lost.
  std::vector<std::string> TakeEvents();

  StatusOr<v1::RenewReply> Renew(const v1::RenewRequest& request, int64_t now_ms);

  // Unknown ids, and leases of other schedulers, are passed over.
  void Release(const v1::ReleaseRequest& request, int64_t now_ms);

  // Lets time pass: expires, drops and grants what is due.
  void Advance(int64_t now_ms);

  // When Advance next has something to do; none: nothing is pending.
  std::optional<int64_t> NextEventMs() const;

  v1::ListReply List(int64_t now_ms);

  int64_t NextAnnounceMs() const;

 private:
  using KindKey = std::pair<v1::WorkerKind, std::string>;

  struct Worker {
    v1::WorkerState state;
    int64_t gone_at_ms = 0;
    int64_t heard_ms = 0;  // when it announced itself last
    int64_t grantable_from_ms = 0;
    bool announced = false;  // false: known from a renewed lease only
    uint64_t last_grant = 0;
    std::set<std::string> leases;
  };
  struct LeaseEntry {
    v1::Lease lease;  // its worker as it was when granted
    std::string scheduler_id;
    std::string request_id;  // empty: recreated by Renew
    v1::WorkerKind kind = v1::WORKER_KIND_UNSPECIFIED;
    int64_t expires_ms = 0;
    int64_t granted_ms = 0;
    uint64_t serial = 0;       // order of grants
    uint64_t incarnation = 0;  // of the scheduler
    bool wanted = false;
  };
  struct Request {
    v1::AcquireRequest request;
    uint64_t arrival = 0;
    int64_t keep_until_ms = 0;
    std::string lease_id;    // empty: waiting
    bool delivered = false;  // a Poll has answered the lease
  };
  struct Held {
    std::map<std::pair<v1::WorkerKind, std::string>, int64_t> by_user;
    std::map<std::pair<v1::WorkerKind, std::string>, int64_t> by_scheduler;
    int64_t User(v1::WorkerKind kind, const std::string& user) const;
    int64_t Scheduler(v1::WorkerKind kind, const std::string& scheduler_id) const;
    void Add(const LeaseEntry& entry, int64_t n);
  };

  using Workers = std::map<std::string, Worker, std::less<>>;
  using Leases = std::map<std::string, LeaseEntry, std::less<>>;
  using Requests = std::map<std::string, Request, std::less<>>;

  void SetNow(int64_t now_ms);
  bool InFirstDeadline() const;
  int64_t FreeSlots(const Worker& worker) const;  // that may be granted now
  bool Before(const Request& a, const Request& b) const;
  std::vector<Request*> WaitingInOrder();

  void Match();
  std::string NewLeaseName() const;
  std::string SealedId(std::string_view name, const v1::Lease& lease,
                       std::string_view scheduler_id) const;
  bool BearsOurSeal(const v1::Lease& lease, std::string_view scheduler_id) const;
  void Grant(Request& request, Worker& worker);
  Worker* PickWorker(const v1::AcquireRequest& request);

  void AddLease(LeaseEntry entry, Worker& worker);
  void RemoveLease(std::string_view id, bool released);
  void RemoveWorker(Workers::iterator worker, std::string_view why);
  void RememberReleased(const std::string& id);
  void RemoveRequest(Requests::iterator request);
  Status CheckIsOneProcess(const Worker& known, const v1::WorkerState& state) const;
  Status CheckAddressIsFree(const v1::WorkerState& state) const;
  void EvictAddress(const v1::WorkerState& state);
  void RevokeSurplus(Worker& worker);

  void ReleaseEarlier(const std::string& scheduler_id, uint64_t incarnation);
  bool RenewOne(const v1::Lease& lease, const v1::RenewRequest& by);
  bool Recreate(const v1::Lease& lease, const v1::RenewRequest& by);
  Worker* WorkerOfUnknownLease(const v1::WorkerState& state);
  void MarkWanted();
  LeaseEntry* PickVictim(const Request& request, const Held& held,
                         const std::set<LeaseEntry*>& named);
  bool Outranks(const Request& request, const LeaseEntry& lease, const Held& held) const;
  int64_t LeaseMs(uint32_t asked_ms) const;

  const RegistryOptions options_;
  const int64_t start_ms_;
  int64_t now_ms_;
  uint64_t serial_ = 0;  // arrivals and grants
  Workers workers_;
  std::set<std::string, std::less<>>
      departed_;  // workers seen and gone; kept during the first deadline_ms
  Leases leases_;
  Requests requests_;
  size_t waiting_ = 0;  // requests without a lease
  Held held_;
  std::set<std::string, std::less<>> released_;  // ids of leases released not long ago
  std::deque<std::pair<int64_t, std::string>>
      released_forget_;  // (when to forget it, id), in order
  std::vector<std::string> granted_;
  std::vector<std::string> events_;
};

}  // namespace kiln::tracker
