#include "tracker/registry.h"

#include <algorithm>
#include <utility>

#include "base/text/counted.h"
#include "tracker/checks.h"

namespace kiln::tracker {
namespace {

constexpr int64_t kMinLeaseMs = 100;
constexpr int64_t kRememberReleasedMs = 60'000;
// Most announcements that all workers are told to make together in a second.
constexpr int64_t kAnnouncementsPerS = 500;
constexpr int64_t kRenewalsPerS = 200;
constexpr size_t kMostNames = 10;

// Returns the log line about a worker that is new here.
std::string NewsOf(const v1::AnnounceRequest& request) {
  const v1::WorkerState& state = request.worker();
  return fmt::format("worker {} at {} {}: {}, {} slots, keys {}", state.id(), state.address(),
                     request.rejoining() ? "rejoins" : "joins", v1::WorkerKind_Name(state.kind()),
                     state.slots(), fmt::join(state.keys(), ", "));
}

}  // namespace

// ---- bookkeeping ----------------------------------------------------------------------------

int64_t Registry::Held::User(v1::WorkerKind kind, const std::string& user) const {
  const auto it = by_user.find({kind, user});
  return it == by_user.end() ? 0 : it->second;
}

int64_t Registry::Held::Scheduler(v1::WorkerKind kind, const std::string& scheduler_id) const {
  const auto it = by_scheduler.find({kind, scheduler_id});
  return it == by_scheduler.end() ? 0 : it->second;
}

double Registry::Shares::Use(v1::WorkerKind kind, const std::string& user) const {
  const auto it = use.find({kind, user});
  return it == use.end() ? 0 : it->second;
}

void Registry::Shares::Move(const LeaseEntry& lease, const Request& request, double turn_s) {
  LeaseEntry moved;
  moved.kind = request.request.kind();
  moved.lease.set_user(request.request.user());
  moved.scheduler_id = request.request.scheduler_id();
  held.Add(lease, -1);
  held.Add(moved, 1);
  const KindKey from(lease.kind, lease.lease.user()), to(moved.kind, moved.lease.user());
  // Without numbers from schedulers, the leases that users hold decide alone.
  if (from == to || (!use.contains(from) && !use.contains(to))) return;
  use[from] -= turn_s;
  use[to] += turn_s;
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

// Workers learn with an announcement what is asked of them, so they announce often. The more
// workers there are, the less often.
int64_t Registry::NextAnnounceMs() const {
  const int64_t longest_ms = std::max<int64_t>(options_.deadline_ms / 4, 1);
  const auto workers = static_cast<int64_t>(workers_.size());
  return std::min(longest_ms, std::max(options_.announce_ms, 1'000 * workers / kAnnouncementsPerS));
}

int64_t Registry::NextRenewMs() const {
  const auto holders = static_cast<int64_t>(shares_.held.by_scheduler.size());
  const int64_t longest_ms = std::max(options_.renew_ms, options_.turn_ms);
  return std::min(longest_ms, std::max(options_.renew_ms, 1'000 * holders / kRenewalsPerS));
}

int64_t Registry::PatienceMs() const {
  const int64_t quarter_ms = std::max<int64_t>(options_.deadline_ms / 4, 1);
  return quarter_ms + quarter_ms / 2;
}

EffectiveMode Registry::ModeOf(const Worker& worker) const {
  const EffectiveMode said{worker.state.mode(), worker.state.mode_reason()};
  if (!worker.wish.has_value()) return said;
  const bool is_known =
      worker.state.asked_mode() == worker.wish->mode && worker.state.asked_by() == worker.wish->by;
  return is_known ? said : StricterOf(AskedMode(worker.wish->mode, worker.wish->by), said);
}

int64_t Registry::FreeSlots(const Worker& worker) const {
  if (!worker.announced || now_ms_ < worker.grantable_from_ms) return 0;
  if (!TakesNewLeases(ModeOf(worker).mode)) return 0;
  return static_cast<int64_t>(worker.state.slots()) - static_cast<int64_t>(worker.leases.size());
}

void Registry::NoteLeases(const Worker& worker) {
  const size_t slots = worker.state.slots();
  index_.SetFree(worker.state.id(),
                 static_cast<uint32_t>(slots - std::min(slots, worker.leases.size())),
                 worker.last_grant);
}

void Registry::AddLease(LeaseEntry entry, Worker& worker) {
  KILN_CHECK(worker.leases.size() < worker.state.slots(), "worker {} has all {} slots leased",
             worker.state.id(), worker.state.slots());
  shares_.held.Add(entry, 1);
  worker.leases.insert(entry.lease.id());
  NoteLeases(worker);
  std::string id = entry.lease.id();
  const bool fresh = leases_.emplace(std::move(id), std::move(entry)).second;
  KILN_CHECK(fresh);
}

void Registry::RemoveLease(std::string_view id, bool released) {
  const auto it = leases_.find(id);
  KILN_CHECK(it != leases_.end(), "lease {}", id);
  LeaseEntry& entry = it->second;
  shares_.held.Add(entry, -1);
  const auto worker = workers_.find(entry.lease.worker().id());
  KILN_CHECK(worker != workers_.end(), "lease {} without its worker", id);
  worker->second.leases.erase(it->first);
  NoteLeases(worker->second);
  if (released) RememberReleased(it->first);
  // A granted request lives as long as its lease.
  requests_.erase(entry.request_id);
  leases_.erase(it);
  may_match_ = true;
}

void Registry::RememberReleased(const std::string& id) {
  if (!released_.insert(id).second) return;
  released_forget_.emplace_back(now_ms_ + kRememberReleasedMs, id);
  if (released_forget_.size() <= options_.max_remembered) return;
  released_.erase(released_forget_.front().second);
  released_forget_.pop_front();
}

void Registry::RemoveWorker(Workers::iterator worker, std::string_view why) {
  events_.push_back(fmt::format("worker {} at {} is gone: {}; {} leases lost", worker->first,
                                worker->second.state.address(), why, worker->second.leases.size()));
  totals_.leases_lost += worker->second.leases.size();
  while (!worker->second.leases.empty()) {
    RemoveLease(std::string(*worker->second.leases.begin()), /*released=*/false);
  }
  if (InFirstDeadline() && departed_.size() < options_.max_workers) {
    departed_.insert(worker->first);
  }
  index_.Forget(worker->first);
  workers_.erase(worker);
}

void Registry::RemoveRequest(Requests::iterator request) {
  if (request->second.lease_id.empty()) {
    waiting_.erase(request->second.arrival);
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
  if (it != workers_.end()) KILN_RETURN_IF_ERROR(CheckIsOneProcess(it->second, state));
  if (it == workers_.end()) {
    KILN_RETURN_IF_ERROR(CheckAddressIsFree(state));
    EvictAddress(state);
    if (workers_.size() >= options_.max_workers) {
      return ResourceExhausted("{} workers are registered, no more are accepted", workers_.size());
    }
    it = workers_.try_emplace(state.id()).first;
  }
  Worker& worker = it->second;
  if (!worker.announced && request.rejoining()) {
    worker.grantable_from_ms = now_ms_ + options_.refill_ms;
    NoteDue(worker.grantable_from_ms);
  }
  if (!worker.announced) events_.push_back(NewsOf(request));
  const EffectiveMode before = ModeOf(worker);
  const bool is_same = worker.announced && worker.state.slots() == state.slots() &&
                       std::ranges::equal(worker.state.keys(), state.keys());
  worker.announced = true;
  worker.state = state;
  const bool repeats = state.asked_mode() != v1::WORKER_SERVES || !state.asked_by().empty();
  if (!worker.wish.has_value() && repeats) {
    worker.wish = {state.asked_mode(), state.asked_by()};
  }
  NoteMode(worker, before);
  if (!is_same || ModeOf(worker).mode != before.mode) may_match_ = true;
  worker.heard_ms = now_ms_;
  worker.gone_at_ms = now_ms_ + options_.deadline_ms;
  NoteDue(worker.gone_at_ms);
  index_.Note(state);
  RevokeSurplus(worker);
  NoteLeases(worker);
  Match();
  reply.set_next_announce_ms(static_cast<uint32_t>(NextAnnounceMs()));
  if (worker.wish.has_value()) {
    reply.set_asked_mode(worker.wish->mode);
    reply.set_asked_by(worker.wish->by);
  }
  return reply;
}

Status Registry::CheckIsOneProcess(const Worker& known, const v1::WorkerState& state) const {
  if (known.state.kind() != state.kind()) {
    return InvalidArgument("worker '{}' was announced as {} and now as {}; one process is one kind",
                           state.id(), v1::WorkerKind_Name(known.state.kind()),
                           v1::WorkerKind_Name(state.kind()));
  }
  if (known.state.address() != state.address()) {
    return InvalidArgument(
        "worker '{}' was announced at {} and now at {}; one process has one address", state.id(),
        known.state.address(), state.address());
  }
  return OkStatus();
}

// A known worker at the address may be dead, and the new worker its successor. The known worker has
// a moment to announce itself.
Status Registry::CheckAddressIsFree(const v1::WorkerState& state) const {
  const int64_t patience_ms = PatienceMs();
  for (const auto& [id, worker] : workers_) {
    if (worker.state.address() != state.address() || !worker.announced) continue;
    const int64_t silent_ms = now_ms_ - worker.heard_ms;
    if (silent_ms >= patience_ms) continue;
    return FailedPrecondition(
        "worker '{}' is at {} and announced itself {} ms ago, so that '{}' cannot be there; it is "
        "taken once the other is silent for {} ms; if both run, give one of them another address",
        id, state.address(), silent_ms, state.id(), patience_ms);
  }
  return OkStatus();
}

void Registry::EvictAddress(const v1::WorkerState& state) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto next = std::next(it);
    if (it->second.state.address() == state.address()) {
      ++totals_.workers_lost;
      RemoveWorker(it, fmt::format("worker {} has its address now", state.id()));
    }
    it = next;
  }
}

// Revokes the newest leases of a worker that now has fewer slots than leases.
void Registry::RevokeSurplus(Worker& worker) {
  while (worker.leases.size() > worker.state.slots()) {
    const auto newest = std::max_element(
        worker.leases.begin(), worker.leases.end(), [this](const auto& a, const auto& b) {
          return leases_.find(a)->second.serial < leases_.find(b)->second.serial;
        });
    RemoveLease(std::string(*newest), /*released=*/false);
  }
}

// ---- modes ----------------------------------------------------------------------------------

void Registry::NoteMode(const Worker& worker, const EffectiveMode& before) {
  const EffectiveMode now = ModeOf(worker);
  if (now == before) return;
  std::string said = now.mode == v1::WORKER_SERVES ? "serves" : "does not serve";
  if (!now.sentence.empty()) said += ": " + now.sentence;
  events_.push_back(
      fmt::format("worker {} at {} {}", worker.state.id(), worker.state.address(), said));
}

StatusOr<Registry::Workers::iterator> Registry::FindNamed(const std::string& name) {
  if (const auto it = workers_.find(name); it != workers_.end()) return it;
  std::vector<Workers::iterator> found;
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second.state.address() == name) return it;
    if (it->first.find(name) != std::string::npos) found.push_back(it);
  }
  if (found.size() == 1) return found[0];
  const bool is_unknown = found.empty();
  if (is_unknown) {
    for (auto it = workers_.begin(); it != workers_.end(); ++it) found.push_back(it);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(found.size(), kMostNames); ++i) {
    names.push_back(fmt::format("{} at {}", found[i]->first, found[i]->second.state.address()));
  }
  const std::string more =
      found.size() > kMostNames ? fmt::format(", and {} more", found.size() - kMostNames) : "";
  if (is_unknown) {
    return NotFound(
        "no worker has the id or the address '{}', and no id has it as a part; this tracker knows "
        "{}{}{}{}",
        name, Counted(static_cast<int64_t>(workers_.size()), "worker"), names.empty() ? "" : ": ",
        fmt::join(names, ", "), more);
  }
  return FailedPrecondition("'{}' is a part of the ids of {} workers: {}{}; give more of the id",
                            name, found.size(), fmt::join(names, ", "), more);
}

StatusOr<v1::SetWorkerModeReply> Registry::SetWorkerMode(const v1::SetWorkerModeRequest& request,
                                                         int64_t now_ms) {
  KILN_RETURN_IF_ERROR(CheckAsked(request));
  Advance(now_ms);
  KILN_ASSIGN_OR_RETURN(const auto it, FindNamed(request.worker()));
  Worker& worker = it->second;
  const EffectiveMode before = ModeOf(worker);
  worker.wish = {request.mode(), request.user()};
  NoteMode(worker, before);
  may_match_ = true;
  Match();
  v1::SetWorkerModeReply reply;
  reply.add_workers(it->first);
  return reply;
}

std::vector<std::string> Registry::TakeGranted() { return std::exchange(granted_, {}); }

std::vector<std::string> Registry::TakeEvents() { return std::exchange(events_, {}); }

// ---- time -----------------------------------------------------------------------------------

void Registry::Advance(int64_t now_ms) {
  SetNow(now_ms);
  if (due_ms_.has_value() && now_ms_ >= *due_ms_) {
    ExpireAll();
    due_ms_ = SoonestMs();
    may_match_ = true;
  }
  while (!released_forget_.empty() && now_ms_ >= released_forget_.front().first) {
    released_.erase(released_forget_.front().second);
    released_forget_.pop_front();
  }
  Match();
}

void Registry::ExpireAll() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto next = std::next(it);
    if (now_ms_ >= it->second.gone_at_ms) {
      ++totals_.workers_lost;
      RemoveWorker(it, fmt::format("silent for {} ms", options_.deadline_ms));
    }
    it = next;
  }
  std::vector<std::string> expired;
  for (const auto& [id, lease] : leases_) {
    if (now_ms_ >= lease.expires_ms) expired.push_back(id);
  }
  for (const std::string& id : expired) {
    events_.push_back(fmt::format("lease {} of scheduler {} has expired", id,
                                  leases_.find(id)->second.scheduler_id));
    RemoveLease(id, /*released=*/false);
  }
  for (auto it = requests_.begin(); it != requests_.end();) {
    const auto next = std::next(it);
    if (!it->second.delivered && now_ms_ >= it->second.keep_until_ms) RemoveRequest(it);
    it = next;
  }
}

std::optional<int64_t> Registry::NextEventMs() const { return due_ms_; }

std::optional<int64_t> Registry::SoonestMs() const {
  std::optional<int64_t> next;
  const auto note = [&](int64_t ms) { next = std::min(next.value_or(ms), ms); };
  for (const auto& [id, worker] : workers_) {
    note(worker.gone_at_ms);
    if (worker.grantable_from_ms > now_ms_) note(worker.grantable_from_ms);
  }
  for (const auto& [id, lease] : leases_) note(lease.expires_ms);
  for (const auto& [id, request] : requests_) {
    if (!request.delivered) note(request.keep_until_ms);
  }
  return next;
}

// ---- reading --------------------------------------------------------------------------------

v1::ListReply Registry::List(int64_t now_ms) {
  Advance(now_ms);
  v1::ListReply reply;
  std::map<KindKey, v1::KeyState> keys;
  for (const auto& [id, worker] : workers_) {
    const EffectiveMode mode = ModeOf(worker);
    v1::WorkerState& state = *reply.add_workers();
    state = worker.state;
    state.set_mode(mode.mode);
    state.set_mode_reason(mode.sentence);
    // A wish that counts before the worker has heard of it is listed as if the worker had.
    if (worker.wish.has_value() && worker.wish->mode != v1::WORKER_SERVES &&
        worker.wish->mode == mode.mode) {
      state.set_asked_mode(worker.wish->mode);
      state.set_asked_by(worker.wish->by);
    }
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
