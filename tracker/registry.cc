#include "tracker/registry.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "proto/device_message.h"

namespace kiln::tracker {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr int kMaxKeys = 64;
constexpr int64_t kMinLeaseMs = 100;
constexpr int64_t kRememberReleasedMs = 60'000;

Status CheckId(std::string_view field, std::string_view value) {
  if (value.empty()) return InvalidArgument("{} is empty; expected a unique name", field);
  if (value.size() > kMaxIdBytes) {
    return InvalidArgument("{} has {} bytes; at most {} are taken", field, value.size(),
                           kMaxIdBytes);
  }
  return OkStatus();
}

Status CheckKind(v1::WorkerKind kind) {
  if (kind == v1::BUILDER || kind == v1::RUNNER) return OkStatus();
  return InvalidArgument("worker kind is {}; expected BUILDER (1) or RUNNER (2)",
                         static_cast<int>(kind));
}

Status CheckAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  unsigned port = 0;
  bool ok = colon != std::string_view::npos && colon > 0 && address.size() <= kMaxIdBytes;
  if (ok) {
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    ok = parsed.ec == std::errc() && parsed.ptr == end && port >= 1 && port <= 65535;
  }
  if (ok) return OkStatus();
  return InvalidArgument("worker address is '{}'; expected HOST:PORT", address);
}

Status CheckRequest(const v1::AcquireRequest& request) {
  KILN_RETURN_IF_ERROR(CheckId("request_id", request.request_id()));
  KILN_RETURN_IF_ERROR(CheckId("scheduler_id", request.scheduler_id()));
  KILN_RETURN_IF_ERROR(CheckKind(request.kind()));
  KILN_RETURN_IF_ERROR(CheckId("key", request.key()));
  if (request.user().size() > kMaxIdBytes) {
    return InvalidArgument("user has {} bytes; at most {} are taken", request.user().size(),
                           kMaxIdBytes);
  }
  return OkStatus();
}

}  // namespace

Status CheckWorker(const v1::WorkerState& state) {
  KILN_RETURN_IF_ERROR(CheckId("worker id", state.id()));
  KILN_RETURN_IF_ERROR(CheckKind(state.kind()));
  KILN_RETURN_IF_ERROR(CheckAddress(state.address()));
  if (state.keys().empty() || state.keys_size() > kMaxKeys) {
    return InvalidArgument("worker '{}' lists {} keys; expected 1 to {} such as \"llvm\"",
                           state.id(), state.keys_size(), kMaxKeys);
  }
  for (const std::string& key : state.keys()) KILN_RETURN_IF_ERROR(CheckId("worker key", key));
  if (state.slots() < 1 || state.slots() > Registry::kMaxSlots) {
    return InvalidArgument("worker '{}' has {} slots; expected 1 to {}", state.id(), state.slots(),
                           Registry::kMaxSlots);
  }
  return state.kind() == v1::RUNNER ? DeviceModelOf(state).status() : OkStatus();
}

bool Serves(const v1::WorkerState& worker, v1::WorkerKind kind, std::string_view key) {
  return worker.kind() == kind &&
         std::find(worker.keys().begin(), worker.keys().end(), key) != worker.keys().end();
}

bool Suits(const v1::WorkerState& worker, const v1::AcquireRequest& request) {
  const auto& avoided = request.avoid_worker_ids();
  return Serves(worker, request.kind(), request.key()) &&
         std::find(avoided.begin(), avoided.end(), worker.id()) == avoided.end();
}

// ---- bookkeeping ----------------------------------------------------------------------------

int64_t Registry::Held::User(v1::WorkerKind kind, const std::string& user) const {
  const auto it = by_user.find({kind, user});
  return it == by_user.end() ? 0 : it->second;
}

int64_t Registry::Held::Scheduler(v1::WorkerKind kind, const std::string& scheduler_id) const {
  const auto it = by_scheduler.find({kind, scheduler_id});
  return it == by_scheduler.end() ? 0 : it->second;
}

void Registry::Held::Add(const LeaseEntry& entry, int64_t n) {
  const auto add = [n](auto& counts, const KindKey& key) {
    const auto it = counts.try_emplace(key, 0).first;
    it->second += n;
    if (it->second == 0) counts.erase(it);
  };
  add(by_user, {entry.kind, entry.lease.user()});
  add(by_scheduler, {entry.kind, entry.scheduler_id});
}

Registry::Registry(RegistryOptions options, int64_t now_ms)
    : options_(std::move(options)), start_ms_(now_ms), now_ms_(now_ms) {}

bool Registry::InFirstDeadline() const { return now_ms_ < start_ms_ + options_.deadline_ms; }

void Registry::SetNow(int64_t now_ms) { now_ms_ = std::max(now_ms_, now_ms); }

int64_t Registry::LeaseMs(uint32_t asked_ms) const {
  if (asked_ms == 0) return options_.default_lease_ms;
  return std::clamp<int64_t>(asked_ms, kMinLeaseMs, options_.max_lease_ms);
}

int64_t Registry::NextAnnounceMs() const { return std::max<int64_t>(options_.deadline_ms / 4, 1); }

int64_t Registry::FreeSlots(const Worker& worker) const {
  if (!worker.announced || now_ms_ < worker.grantable_from_ms) return 0;
  return static_cast<int64_t>(worker.state.slots()) - static_cast<int64_t>(worker.leases.size());
}

void Registry::AddLease(LeaseEntry entry, Worker& worker) {
  KILN_CHECK(worker.leases.size() < worker.state.slots(), "worker {} has all {} slots leased",
             worker.state.id(), worker.state.slots());
  held_.Add(entry, 1);
  worker.leases.insert(entry.lease.id());
  std::string id = entry.lease.id();
  const bool fresh = leases_.emplace(std::move(id), std::move(entry)).second;
  KILN_CHECK(fresh);
}

void Registry::RemoveLease(std::string_view id, bool released) {
  const auto it = leases_.find(id);
  KILN_CHECK(it != leases_.end(), "lease {}", id);
  LeaseEntry& entry = it->second;
  held_.Add(entry, -1);
  const auto worker = workers_.find(entry.lease.worker().id());
  KILN_CHECK(worker != workers_.end(), "lease {} without its worker", id);
  worker->second.leases.erase(it->first);
  if (released) RememberReleased(it->first);
  requests_.erase(entry.request_id);  // a granted request lives as long as its lease
  leases_.erase(it);
}

void Registry::RememberReleased(const std::string& id) {
  if (!released_.insert(id).second) return;
  released_forget_.emplace_back(now_ms_ + kRememberReleasedMs, id);
  if (released_forget_.size() <= options_.max_remembered) return;
  released_.erase(released_forget_.front().second);
  released_forget_.pop_front();
}

void Registry::RemoveWorker(Workers::iterator worker, std::string_view why) {
  news_.push_back(fmt::format("worker {} at {} is gone: {}; {} leases lost", worker->first,
                              worker->second.state.address(), why, worker->second.leases.size()));
  while (!worker->second.leases.empty()) {
    RemoveLease(std::string(*worker->second.leases.begin()), /*released=*/false);
  }
  if (InFirstDeadline() && departed_.size() < options_.max_workers) {
    departed_.insert(worker->first);
  }
  workers_.erase(worker);
}

void Registry::RemoveRequest(Requests::iterator request) {
  if (request->second.lease_id.empty()) {
    --waiting_;
    requests_.erase(request);
  } else {
    RemoveLease(std::string(request->second.lease_id), /*released=*/true);
  }
}

// ---- workers --------------------------------------------------------------------------------

StatusOr<v1::AnnounceReply> Registry::Announce(const v1::AnnounceRequest& request, int64_t now_ms) {
  const v1::WorkerState& state = request.worker();
  v1::AnnounceReply reply;
  if (request.leaving()) {
    KILN_RETURN_IF_ERROR(CheckId("worker id", state.id()));
    SetNow(now_ms);
    const auto it = workers_.find(state.id());
    if (it != workers_.end()) RemoveWorker(it, "it leaves");
    Advance(now_ms);
    return reply;
  }
  KILN_RETURN_IF_ERROR(CheckWorker(state));
  Advance(now_ms);
  auto it = workers_.find(state.id());
  if (it != workers_.end() && it->second.state.kind() != state.kind()) {
    return InvalidArgument("worker '{}' was announced as {} and now as {}; one process is one kind",
                           state.id(), v1::WorkerKind_Name(it->second.state.kind()),
                           v1::WorkerKind_Name(state.kind()));
  }
  if (it == workers_.end()) {
    EvictAddress(state);
    if (workers_.size() >= options_.max_workers) {
      return ResourceExhausted("{} workers are registered, no more are taken", workers_.size());
    }
    it = workers_.try_emplace(state.id()).first;
  }
  Worker& worker = it->second;
  if (!worker.announced && request.rejoining()) {
    worker.grantable_from_ms = now_ms_ + options_.refill_ms;
  }
  if (!worker.announced) {
    news_.push_back(fmt::format("worker {} at {} {}: {}, {} slots, keys {}", state.id(),
                                state.address(), request.rejoining() ? "rejoins" : "joins",
                                v1::WorkerKind_Name(state.kind()), state.slots(),
                                fmt::join(state.keys(), ", ")));
  }
  worker.announced = true;
  worker.state = state;
  worker.gone_at_ms = now_ms_ + options_.deadline_ms;
  RevokeSurplus(worker);
  Match();
  reply.set_next_announce_ms(static_cast<uint32_t>(NextAnnounceMs()));
  return reply;
}

void Registry::EvictAddress(const v1::WorkerState& state) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto next = std::next(it);
    if (it->second.state.address() == state.address()) {
      RemoveWorker(it, fmt::format("worker {} has its address now", state.id()));
    }
    it = next;
  }
}

// A worker that now has fewer slots than leases: the newest leases go.
void Registry::RevokeSurplus(Worker& worker) {
  while (worker.leases.size() > worker.state.slots()) {
    const auto newest = std::max_element(
        worker.leases.begin(), worker.leases.end(), [this](const auto& a, const auto& b) {
          return leases_.find(a)->second.serial < leases_.find(b)->second.serial;
        });
    RemoveLease(std::string(*newest), /*released=*/false);
  }
}

// ---- the queue ------------------------------------------------------------------------------

bool Registry::Before(const Request& a, const Request& b) const {
  if (a.request.priority() != b.request.priority()) {
    return a.request.priority() > b.request.priority();
  }
  const int64_t held_a = held_.User(a.request.kind(), a.request.user());
  const int64_t held_b = held_.User(b.request.kind(), b.request.user());
  if (held_a != held_b) return held_a < held_b;
  return a.arrival < b.arrival;
}

std::vector<Registry::Request*> Registry::WaitingInOrder() {
  std::vector<Request*> waiting;
  for (auto& [id, request] : requests_) {
    if (request.lease_id.empty()) waiting.push_back(&request);
  }
  std::sort(waiting.begin(), waiting.end(),
            [this](const Request* a, const Request* b) { return Before(*a, *b); });
  return waiting;
}

void Registry::Match() {
  if (waiting_ == 0) return;
  std::map<KindKey, int64_t> free;
  for (const auto& [id, worker] : workers_) {
    const int64_t n = FreeSlots(worker);
    if (n <= 0) continue;
    const std::set<std::string> keys(worker.state.keys().begin(), worker.state.keys().end());
    for (const std::string& key : keys) free[{worker.state.kind(), key}] += n;
  }
  while (!free.empty()) {
    Request* first = nullptr;
    for (auto& [id, request] : requests_) {
      if (!request.lease_id.empty()) continue;
      if (free.count({request.request.kind(), request.request.key()}) == 0) continue;
      // What is free may be just what it avoids.
      const bool picky = !request.request.avoid_worker_ids().empty();
      if (picky && PickWorker(request.request) == nullptr) continue;
      if (first == nullptr || Before(request, *first)) first = &request;
    }
    if (first == nullptr) return;
    Worker* worker = PickWorker(first->request);
    KILN_CHECK(worker != nullptr);
    Grant(*first, *worker);
    const std::set<std::string> keys(worker->state.keys().begin(), worker->state.keys().end());
    for (const std::string& key : keys) {
      const auto it = free.find({worker->state.kind(), key});
      if (--it->second == 0) free.erase(it);
    }
  }
}

// The emptiest worker, then the one that was granted longest ago: load and wear go round.
Registry::Worker* Registry::PickWorker(const v1::AcquireRequest& request) {
  Worker* best = nullptr;
  for (auto& [id, worker] : workers_) {
    if (!Suits(worker.state, request)) continue;
    const int64_t free = FreeSlots(worker);
    if (free <= 0) continue;
    if (best == nullptr || free > FreeSlots(*best) ||
        (free == FreeSlots(*best) && worker.last_grant < best->last_grant)) {
      best = &worker;
    }
  }
  return best;
}

std::string Registry::NewLeaseId() const {
  std::string id;
  do {
    id = options_.new_lease_id();
  } while (leases_.contains(id) || released_.contains(id));
  return id;
}

void Registry::Grant(Request& request, Worker& worker) {
  const v1::AcquireRequest& asked = request.request;
  LeaseEntry entry;
  entry.serial = ++serial_;
  entry.lease.set_id(NewLeaseId());
  *entry.lease.mutable_worker() = worker.state;
  entry.lease.set_lease_ms(static_cast<uint32_t>(LeaseMs(asked.lease_ms())));
  entry.lease.set_user(asked.user());
  entry.lease.set_priority(asked.priority());
  entry.scheduler_id = asked.scheduler_id();
  entry.request_id = asked.request_id();
  entry.kind = asked.kind();
  entry.incarnation = asked.incarnation();
  entry.granted_ms = now_ms_;
  entry.expires_ms = now_ms_ + entry.lease.lease_ms();
  worker.last_grant = entry.serial;
  request.lease_id = entry.lease.id();
  --waiting_;
  granted_.push_back(asked.request_id());
  AddLease(std::move(entry), worker);
}

StatusOr<v1::AcquireReply> Registry::Acquire(const v1::AcquireRequest& request, int64_t now_ms) {
  KILN_RETURN_IF_ERROR(CheckRequest(request));
  Advance(now_ms);
  ReleaseEarlier(request.scheduler_id(), request.incarnation());
  auto it = requests_.find(request.request_id());
  if (it == requests_.end()) {
    if (waiting_ >= options_.max_waiting) {
      return ResourceExhausted("{} requests are waiting, no more are taken; try again later",
                               waiting_);
    }
    it = requests_.try_emplace(request.request_id()).first;
    it->second.arrival = ++serial_;
    it->second.request = request;
    ++waiting_;
  }
  Request& entry = it->second;
  const v1::AcquireRequest& known = entry.request;
  if (known.scheduler_id() != request.scheduler_id() || known.kind() != request.kind() ||
      known.key() != request.key() || known.user() != request.user()) {
    return InvalidArgument(
        "request_id '{}' is in use for another scheduler, kind, key or user; choose a new id",
        request.request_id());
  }
  if (entry.lease_id.empty()) entry.request = request;  // priority and lease_ms may change
  const int64_t wait_ms = std::min(request.wait_ms(), kMaxWaitMs);
  entry.keep_until_ms = std::max(entry.keep_until_ms, now_ms_ + wait_ms + options_.request_idle_ms);
  Match();
  return Poll(request.request_id(), now_ms);
}

// The process that held them is dead: its slots need not wait for their leases to expire.
void Registry::ReleaseEarlier(const std::string& scheduler_id, uint64_t incarnation) {
  if (incarnation == 0) return;
  std::vector<std::string> requests, leases;
  for (const auto& [id, request] : requests_) {
    const bool same = request.request.scheduler_id() == scheduler_id;
    if (same && request.request.incarnation() < incarnation) requests.push_back(id);
  }
  for (const std::string& id : requests) {
    const auto it = requests_.find(id);
    if (it != requests_.end()) RemoveRequest(it);
  }
  for (const auto& [id, lease] : leases_) {
    if (lease.scheduler_id == scheduler_id && lease.incarnation < incarnation) leases.push_back(id);
  }
  for (const std::string& id : leases) RemoveLease(id, /*released=*/true);
  if (requests.empty() && leases.empty()) return;
  news_.push_back(
      fmt::format("scheduler {} has started again; {} leases of its earlier run go free",
                  scheduler_id, leases.size() + requests.size()));
}

v1::AcquireReply Registry::Poll(std::string_view request_id, int64_t now_ms) {
  Advance(now_ms);
  v1::AcquireReply reply;
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return reply;
  Request& request = it->second;
  if (!request.lease_id.empty()) {
    LeaseEntry& lease = leases_.find(request.lease_id)->second;
    lease.expires_ms = now_ms_ + lease.lease.lease_ms();
    request.delivered = true;
    *reply.mutable_lease() = lease.lease;
    return reply;
  }
  uint32_t position = 1;
  for (const auto& [id, other] : requests_) {
    position += other.lease_id.empty() && other.request.kind() == request.request.kind() &&
                other.request.key() == request.request.key() && Before(other, request);
  }
  reply.set_queue_position(position);
  uint32_t slots = 0;
  for (const auto& [id, worker] : workers_) {
    if (Serves(worker.state, request.request.kind(), request.request.key())) {
      slots += worker.state.slots();
    }
  }
  reply.set_matching_slots(slots);
  return reply;
}

void Registry::StopPolling(std::string_view request_id, int64_t now_ms) {
  SetNow(now_ms);
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return;
  it->second.keep_until_ms = now_ms_ + options_.request_idle_ms;
}

std::vector<std::string> Registry::TakeGranted() { return std::exchange(granted_, {}); }

std::vector<std::string> Registry::TakeNews() { return std::exchange(news_, {}); }

// ---- leases ---------------------------------------------------------------------------------

StatusOr<v1::RenewReply> Registry::Renew(const v1::RenewRequest& request, int64_t now_ms) {
  KILN_RETURN_IF_ERROR(CheckId("scheduler_id", request.scheduler_id()));
  Advance(now_ms);
  v1::RenewReply reply;
  int64_t next_ms = options_.renew_ms;
  std::vector<const v1::Lease*> kept;
  for (const v1::Lease& lease : request.leases()) {
    if (!RenewOne(lease, request)) {
      reply.add_lost_lease_ids(lease.id());
      continue;
    }
    kept.push_back(&lease);
    next_ms = std::min<int64_t>(next_ms, leases_.find(lease.id())->second.lease.lease_ms() / 3);
  }
  MarkWanted();
  for (const v1::Lease* lease : kept) {
    if (leases_.find(lease->id())->second.wanted) reply.add_wanted_lease_ids(lease->id());
  }
  reply.set_next_renew_ms(static_cast<uint32_t>(next_ms));
  return reply;
}

bool Registry::RenewOne(const v1::Lease& lease, const v1::RenewRequest& by) {
  const auto it = leases_.find(lease.id());
  if (it == leases_.end()) return Recreate(lease, by);
  LeaseEntry& entry = it->second;
  if (entry.scheduler_id != by.scheduler_id()) return false;
  entry.expires_ms = now_ms_ + entry.lease.lease_ms();
  return true;
}

bool Registry::Recreate(const v1::Lease& lease, const v1::RenewRequest& by) {
  if (!CheckId("lease id", lease.id()).ok() || released_.count(lease.id()) > 0) return false;
  Worker* worker = WorkerOfUnknownLease(lease.worker());
  if (worker == nullptr || worker->leases.size() >= worker->state.slots()) return false;
  LeaseEntry entry;
  entry.lease = lease;
  entry.lease.set_lease_ms(static_cast<uint32_t>(LeaseMs(lease.lease_ms())));
  entry.scheduler_id = by.scheduler_id();
  entry.incarnation = by.incarnation();
  entry.kind = worker->state.kind();
  entry.serial = ++serial_;
  entry.granted_ms = now_ms_;
  entry.expires_ms = now_ms_ + entry.lease.lease_ms();
  AddLease(std::move(entry), *worker);
  return true;
}

// A restarted registry may hear of a worker from a lease before it hears from the worker itself.
Registry::Worker* Registry::WorkerOfUnknownLease(const v1::WorkerState& state) {
  const auto it = workers_.find(state.id());
  if (it != workers_.end()) return &it->second;
  if (!InFirstDeadline() || departed_.count(state.id()) > 0) return nullptr;
  if (departed_.size() >= options_.max_workers) return nullptr;  // it may be another one of them
  if (!CheckWorker(state).ok()) return nullptr;
  if (workers_.size() >= options_.max_workers) return nullptr;
  for (const auto& [id, worker] : workers_) {
    // The address belongs to another process by now: the lease's worker is dead.
    if (worker.state.address() == state.address()) return nullptr;
  }
  Worker& worker = workers_[state.id()];
  worker.state = state;
  worker.gone_at_ms = start_ms_ + options_.deadline_ms;
  return &worker;
}

void Registry::Release(const v1::ReleaseRequest& request, int64_t now_ms) {
  SetNow(now_ms);
  for (const std::string& id : request.lease_ids()) {
    const auto it = leases_.find(id);
    if (it == leases_.end()) {
      // Not known yet after a restart, or just expired: a late Renew must not bring it back.
      if (CheckId("lease id", id).ok()) RememberReleased(id);
    } else if (it->second.scheduler_id == request.scheduler_id()) {
      RemoveLease(id, /*released=*/true);
    }
  }
  for (const std::string& id : request.request_ids()) {
    const auto it = requests_.find(id);
    if (it == requests_.end()) continue;
    if (it->second.request.scheduler_id() == request.scheduler_id()) RemoveRequest(it);
  }
  Advance(now_ms);
}

// ---- wanted ---------------------------------------------------------------------------------

bool Registry::Outranks(const Request& request, const LeaseEntry& lease, const Held& held) const {
  const v1::AcquireRequest& asked = request.request;
  if (asked.priority() != lease.lease.priority()) return asked.priority() > lease.lease.priority();
  if (now_ms_ - lease.granted_ms < options_.turn_ms) return false;
  int64_t theirs = 0;
  int64_t ours = 0;
  if (asked.user() != lease.lease.user()) {
    theirs = held.User(asked.kind(), asked.user());
    ours = held.User(lease.kind, lease.lease.user());
  } else if (asked.scheduler_id() != lease.scheduler_id) {
    theirs = held.Scheduler(asked.kind(), asked.scheduler_id());
    ours = held.Scheduler(lease.kind, lease.scheduler_id);
  }
  return theirs == 0 ? ours > 0 : theirs + 1 < ours;
}

// Of the leases that should go to `request`: one already named if there is one, then the lowest
// priority, then the user with most, then the oldest.
Registry::LeaseEntry* Registry::PickVictim(const Request& request, const Held& held,
                                           const std::set<LeaseEntry*>& named) {
  LeaseEntry* best = nullptr;
  std::tuple<bool, int64_t, int64_t, uint64_t> best_rank;
  for (auto& [id, lease] : leases_) {
    if (lease.kind != request.request.kind() || named.count(&lease) > 0) continue;
    const Worker& worker = workers_.find(lease.lease.worker().id())->second;
    if (!Suits(worker.state, request.request)) continue;
    if (!Outranks(request, lease, held)) continue;
    const std::tuple<bool, int64_t, int64_t, uint64_t> rank(
        !lease.wanted, lease.lease.priority(), -held.User(lease.kind, lease.lease.user()),
        lease.serial);
    if (best == nullptr || rank < best_rank) {
      best = &lease;
      best_rank = rank;
    }
  }
  return best;
}

// Gives every waiting request, in order, at most one lease to hope for.
void Registry::MarkWanted() {
  std::set<LeaseEntry*> named;
  if (waiting_ > 0) {
    Held held = held_;
    for (Request* request : WaitingInOrder()) {
      LeaseEntry* victim = PickVictim(*request, held, named);
      if (victim == nullptr) continue;
      named.insert(victim);
      held.Add(*victim, -1);
      LeaseEntry moved;
      moved.kind = request->request.kind();
      moved.lease.set_user(request->request.user());
      moved.scheduler_id = request->request.scheduler_id();
      held.Add(moved, 1);
    }
  }
  for (auto& [id, lease] : leases_) lease.wanted = named.count(&lease) > 0;
}

// ---- time -----------------------------------------------------------------------------------

void Registry::Advance(int64_t now_ms) {
  SetNow(now_ms);
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto next = std::next(it);
    if (now_ms_ >= it->second.gone_at_ms) {
      RemoveWorker(it, fmt::format("silent for {} ms", options_.deadline_ms));
    }
    it = next;
  }
  std::vector<std::string> expired;
  for (const auto& [id, lease] : leases_) {
    if (now_ms_ >= lease.expires_ms) expired.push_back(id);
  }
  for (const std::string& id : expired) {
    news_.push_back(fmt::format("lease {} of scheduler {} has expired", id,
                                leases_.find(id)->second.scheduler_id));
    RemoveLease(id, /*released=*/false);
  }
  for (auto it = requests_.begin(); it != requests_.end();) {
    const auto next = std::next(it);
    if (!it->second.delivered && now_ms_ >= it->second.keep_until_ms) RemoveRequest(it);
    it = next;
  }
  while (!released_forget_.empty() && now_ms_ >= released_forget_.front().first) {
    released_.erase(released_forget_.front().second);
    released_forget_.pop_front();
  }
  Match();
}

int64_t Registry::NextEventMs() const {
  int64_t next = kNever;
  for (const auto& [id, worker] : workers_) {
    next = std::min(next, worker.gone_at_ms);
    if (worker.grantable_from_ms > now_ms_) next = std::min(next, worker.grantable_from_ms);
  }
  for (const auto& [id, lease] : leases_) next = std::min(next, lease.expires_ms);
  for (const auto& [id, request] : requests_) {
    if (!request.delivered) next = std::min(next, request.keep_until_ms);
  }
  return next;
}

// ---- reading --------------------------------------------------------------------------------

v1::ListReply Registry::List(int64_t now_ms) {
  Advance(now_ms);
  v1::ListReply reply;
  std::map<KindKey, v1::KeyState> keys;
  for (const auto& [id, worker] : workers_) {
    *reply.add_workers() = worker.state;
    reply.add_busy_slots(static_cast<uint32_t>(worker.leases.size()));
    const std::set<std::string> own(worker.state.keys().begin(), worker.state.keys().end());
    for (const std::string& key : own) {
      v1::KeyState& row = keys[{worker.state.kind(), key}];
      row.set_total(row.total() + worker.state.slots());
      row.set_free(row.free() + static_cast<uint32_t>(FreeSlots(worker)));
    }
  }
  for (const auto& [id, request] : requests_) {
    if (!request.lease_id.empty()) continue;
    v1::KeyState& row = keys[{request.request.kind(), request.request.key()}];
    row.set_pending(row.pending() + 1);
  }
  for (auto& [kind_key, row] : keys) {
    row.set_kind(kind_key.first);
    row.set_key(kind_key.second);
    *reply.add_keys() = std::move(row);
  }
  return reply;
}

}  // namespace kiln::tracker
