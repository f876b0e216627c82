// The queue of the registry: the order of requests, and the workers that they get.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tracker/checks.h"
#include "tracker/registry.h"

namespace kiln::tracker {

bool Registry::Before(const Request& a, const Request& b) const {
  if (a.request.priority() != b.request.priority()) {
    return a.request.priority() > b.request.priority();
  }
  const double use_a = shares_.Use(a.request.kind(), a.request.user());
  const double use_b = shares_.Use(b.request.kind(), b.request.user());
  if (use_a != use_b) return use_a < use_b;
  const int64_t held_a = shares_.held.User(a.request.kind(), a.request.user());
  const int64_t held_b = shares_.held.User(b.request.kind(), b.request.user());
  if (held_a != held_b) return held_a < held_b;
  return a.arrival < b.arrival;
}

void Registry::NoteUse(v1::WorkerKind kind, const std::string& user, double use) {
  if (!std::isfinite(use)) return;
  const KindKey key(kind, user);
  const auto it = shares_.use.find(key);
  if (it != shares_.use.end()) {
    it->second = use;
  } else if (use != 0) {
    if (shares_.use.size() >= options_.max_waiting) ForgetUsesOfTheGone();
    shares_.use[key] = use;
  }
}

void Registry::ForgetUsesOfTheGone() {
  std::set<KindKey> here;
  for (const auto& [id, request] : requests_) {
    here.emplace(request.request.kind(), request.request.user());
  }
  for (const auto& [id, lease] : leases_) here.emplace(lease.kind, lease.lease.user());
  std::erase_if(shares_.use, [&](const auto& known) { return !here.contains(known.first); });
}

std::vector<Registry::Request*> Registry::WaitingInOrder() {
  std::vector<Request*> waiting;
  for (const auto& [arrival, request] : waiting_) waiting.push_back(request);
  std::sort(waiting.begin(), waiting.end(),
            [this](const Request* a, const Request* b) { return Before(*a, *b); });
  return waiting;
}

void Registry::Match() {
  if (!std::exchange(may_match_, false)) return;
  // Keys of which no worker takes a lease now. Workers that one request avoids may serve others.
  std::set<KindKey> exhausted;
  while (true) {
    Request* first = nullptr;
    Worker* worker = nullptr;
    for (const auto& [arrival, request] : waiting_) {
      const v1::AcquireRequest& asked = request->request;
      if (first != nullptr && !Before(*request, *first)) continue;
      if (index_.FreeFor(asked.kind(), asked.key()).empty()) continue;
      if (exhausted.contains({asked.kind(), asked.key()})) continue;
      Worker* const picked = PickWorker(asked);
      if (picked != nullptr) {
        first = request;
        worker = picked;
      } else if (asked.avoid_worker_ids().empty()) {
        exhausted.emplace(asked.kind(), asked.key());
      }
    }
    if (first == nullptr) return;
    Grant(*first, *worker);
  }
}

// Picks the worker with the most free slots, then the one whose last grant is the oldest, so that
// load and wear are spread.
Registry::Worker* Registry::PickWorker(const v1::AcquireRequest& request) {
  for (const WorkerIndex::Free& free : index_.FreeFor(request.kind(), request.key())) {
    Worker& worker = workers_.find(free.id)->second;
    if (Suits(worker.state, request) && FreeSlots(worker) > 0) return &worker;
  }
  return nullptr;
}

std::string Registry::NewLeaseName() const {
  std::string name;
  do {
    name = options_.new_lease_id();
  } while (leases_.contains(name) || released_.contains(name));
  return name;
}

void Registry::Grant(Request& request, Worker& worker) {
  const v1::AcquireRequest& asked = request.request;
  LeaseEntry entry;
  entry.serial = ++serial_;
  *entry.lease.mutable_worker() = worker.state;
  // Each renewal sends the whole lease back.
  entry.lease.mutable_worker()->clear_drifts();
  entry.lease.set_lease_ms(static_cast<uint32_t>(LeaseMs(asked.lease_ms())));
  entry.lease.set_user(asked.user());
  entry.lease.set_priority(asked.priority());
  entry.lease.set_use(asked.use());
  entry.lease.set_id(SealedId(NewLeaseName(), entry.lease, asked.scheduler_id()));
  entry.scheduler_id = asked.scheduler_id();
  entry.request_id = asked.request_id();
  entry.kind = asked.kind();
  entry.incarnation = asked.incarnation();
  entry.granted_ms = now_ms_;
  entry.expires_ms = now_ms_ + entry.lease.lease_ms();
  NoteDue(entry.expires_ms);
  worker.last_grant = entry.serial;
  request.lease_id = entry.lease.id();
  waiting_.erase(request.arrival);
  ++totals_.leases_granted;
  granted_.push_back(asked.request_id());
  AddLease(std::move(entry), worker);
}

StatusOr<v1::AcquireReply> Registry::Acquire(const v1::AcquireRequest& request, int64_t now_ms) {
  KILN_RETURN_IF_ERROR(CheckRequest(request));
  NoteUse(request.kind(), request.user(), request.use());
  Advance(now_ms);
  ReleaseEarlier(request.scheduler_id(), request.incarnation());
  auto it = requests_.find(request.request_id());
  if (it == requests_.end()) {
    if (waiting_.size() >= options_.max_waiting) {
      return ResourceExhausted("{} requests are waiting, no more are accepted; try again later",
                               waiting_.size());
    }
    it = requests_.try_emplace(request.request_id()).first;
    it->second.arrival = ++serial_;
    it->second.request = request;
    waiting_[it->second.arrival] = &it->second;
  }
  Request& entry = it->second;
  const v1::AcquireRequest& known = entry.request;
  if (known.scheduler_id() != request.scheduler_id() || known.kind() != request.kind() ||
      known.key() != request.key() || known.user() != request.user()) {
    return InvalidArgument(
        "request_id '{}' is in use for another scheduler, kind, key or user; choose a new id",
        request.request_id());
  }
  // Priority and lease_ms may change.
  if (entry.lease_id.empty()) entry.request = request;
  const int64_t wait_ms = std::min(request.wait_ms(), kMaxWaitMs);
  entry.keep_until_ms = std::max(entry.keep_until_ms, now_ms_ + wait_ms + options_.request_idle_ms);
  NoteDue(entry.keep_until_ms);
  may_match_ = true;
  Match();
  return Poll(request.request_id(), now_ms);
}

// Releases what an earlier incarnation holds. Its process is dead, so its slots need not wait until
// the leases expire.
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
  events_.push_back(
      fmt::format("scheduler {} has started again; {} leases of its earlier run are released",
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
  for (const auto& [arrival, other] : waiting_) {
    position += other->request.kind() == request.request.kind() &&
                other->request.key() == request.request.key() && Before(*other, request);
  }
  reply.set_queue_position(position);
  reply.set_matching_slots(index_.SlotsFor(request.request.kind(), request.request.key()));
  return reply;
}

void Registry::StopPolling(std::string_view request_id, int64_t now_ms) {
  SetNow(now_ms);
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return;
  it->second.keep_until_ms = now_ms_ + options_.request_idle_ms;
  NoteDue(it->second.keep_until_ms);
}

}  // namespace kiln::tracker
