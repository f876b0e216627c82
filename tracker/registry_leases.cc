// Leases of the registry: renewed, recreated after a restart, released; and the choice of leases
// that should go to waiting requests.
#include <algorithm>
#include <tuple>

#include "tracker/checks.h"
#include "tracker/registry.h"

namespace kiln::tracker {
namespace {

constexpr size_t kSealDigits = 32;
// Pairs of a request and a lease for which the mark of wanted leases may be looked at once a
// millisecond: that takes a few hundredths of the time.
constexpr int64_t kPairsPerMs = 1'000;

}  // namespace

// ---- renewed and released -------------------------------------------------------------------

StatusOr<v1::RenewReply> Registry::Renew(const v1::RenewRequest& request, int64_t now_ms) {
  KILN_RETURN_IF_ERROR(CheckId("scheduler_id", request.scheduler_id()));
  for (const v1::Lease& lease : request.leases()) {
    const auto it = leases_.find(lease.id());
    if (it == leases_.end() || it->second.scheduler_id != request.scheduler_id()) continue;
    NoteUse(it->second.kind, it->second.lease.user(), lease.use());
  }
  Advance(now_ms);
  v1::RenewReply reply;
  int64_t next_ms = NextRenewMs();
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
    if (IsWanted(leases_.find(lease->id())->second)) reply.add_wanted_lease_ids(lease->id());
  }
  reply.set_next_renew_ms(static_cast<uint32_t>(next_ms));
  AddDrifts(reply);
  return reply;
}

bool Registry::IsWanted(const LeaseEntry& lease) const {
  const Worker& worker = workers_.find(lease.lease.worker().id())->second;
  return lease.wanted || GivesLeasesBack(ModeOf(worker).mode);
}

// A worker speaks for itself only.
void Registry::AddDrifts(v1::RenewReply& reply) const {
  std::vector<v1::DriftSpan> drifts;
  for (const std::string& id : index_.drifting()) {
    for (const v1::DriftSpan& span : workers_.find(id)->second.state.drifts()) {
      drifts.push_back(span);
      drifts.back().set_worker(id);
    }
  }
  if (drifts.size() > kMaxDrifts) {
    std::ranges::nth_element(drifts, drifts.begin() + kMaxDrifts,
                             [](const auto& a, const auto& b) { return a.from_s() > b.from_s(); });
    drifts.resize(kMaxDrifts);
  }
  reply.mutable_drifts()->Assign(drifts.begin(), drifts.end());
}

bool Registry::RenewOne(const v1::Lease& lease, const v1::RenewRequest& by) {
  const auto it = leases_.find(lease.id());
  if (it == leases_.end()) return Recreate(lease, by);
  LeaseEntry& entry = it->second;
  if (entry.scheduler_id != by.scheduler_id()) return false;
  entry.expires_ms = now_ms_ + entry.lease.lease_ms();
  return true;
}

// Returns "NAME.SEAL". The seal covers what the lease gives, and to whom. Lengths keep the parts
// apart.
std::string Registry::SealedId(std::string_view name, const v1::Lease& lease,
                               std::string_view scheduler_id) const {
  if (!options_.seal) return std::string(name);
  const v1::WorkerState& worker = lease.worker();
  std::string text;
  for (const std::string_view part :
       {name, scheduler_id, std::string_view(worker.id()), std::string_view(worker.address()),
        std::string_view(lease.user())}) {
    text += fmt::format("{}:{},", part.size(), part);
  }
  text +=
      fmt::format("{},{},{}", static_cast<int>(worker.kind()), worker.slots(), lease.priority());
  return fmt::format("{}.{}", name, options_.seal(text).substr(0, kSealDigits));
}

bool Registry::HasValidSeal(const v1::Lease& lease, std::string_view scheduler_id) const {
  if (!options_.seal) return true;
  const std::string_view id = lease.id();
  const size_t dot = id.rfind('.');
  if (dot == std::string_view::npos) return false;
  // Both sides are sealed once more, so that the time of comparing tells nothing about the seal
  // itself.
  return options_.seal(SealedId(id.substr(0, dot), lease, scheduler_id)) == options_.seal(id);
}

bool Registry::Recreate(const v1::Lease& lease, const v1::RenewRequest& by) {
  if (!CheckId("lease id", lease.id()).ok() || released_.count(lease.id()) > 0) return false;
  if (!HasValidSeal(lease, by.scheduler_id())) return false;
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
  NoteDue(entry.expires_ms);
  NoteUse(entry.kind, lease.user(), lease.use());
  AddLease(std::move(entry), *worker);
  return true;
}

// A restarted registry may hear of a worker from a lease before it hears from the worker itself.
Registry::Worker* Registry::WorkerOfUnknownLease(const v1::WorkerState& state) {
  const auto it = workers_.find(state.id());
  if (it != workers_.end()) return &it->second;
  if (!InFirstDeadline() || departed_.count(state.id()) > 0) return nullptr;
  // The worker may be a departed one that was not noted.
  if (departed_.size() >= options_.max_workers) return nullptr;
  if (!CheckWorker(state).ok()) return nullptr;
  if (workers_.size() >= options_.max_workers) return nullptr;
  for (const auto& [id, worker] : workers_) {
    // The address belongs to another process by now, so the lease's worker is dead.
    if (worker.state.address() == state.address()) return nullptr;
  }
  Worker& worker = workers_[state.id()];
  worker.state = state;
  index_.Note(state);
  NoteLeases(worker);
  worker.gone_at_ms = start_ms_ + options_.deadline_ms;
  NoteDue(worker.gone_at_ms);
  return &worker;
}

void Registry::Release(const v1::ReleaseRequest& request, int64_t now_ms) {
  SetNow(now_ms);
  for (const std::string& id : request.lease_ids()) {
    const auto it = leases_.find(id);
    if (it == leases_.end()) {
      // The lease is not known yet after a restart, or has just expired. A late Renew must not
      // bring it back.
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

bool Registry::Outranks(const Request& request, const LeaseEntry& lease,
                        const Shares& shares) const {
  const v1::AcquireRequest& asked = request.request;
  if (asked.priority() != lease.lease.priority()) return asked.priority() > lease.lease.priority();
  if (now_ms_ - lease.granted_ms < options_.turn_ms) return false;
  int64_t theirs = 0;
  int64_t ours = 0;
  if (asked.user() != lease.lease.user()) {
    const double their_use = shares.Use(asked.kind(), asked.user());
    const double our_use = shares.Use(lease.kind, lease.lease.user());
    if (their_use != our_use) return their_use < our_use;
    theirs = shares.held.User(asked.kind(), asked.user());
    ours = shares.held.User(lease.kind, lease.lease.user());
  } else if (asked.scheduler_id() != lease.scheduler_id) {
    theirs = shares.held.Scheduler(asked.kind(), asked.scheduler_id());
    ours = shares.held.Scheduler(lease.kind, lease.scheduler_id);
  }
  return theirs == 0 ? ours > 0 : theirs + 1 < ours;
}

// Picks the lease that should go to `request`. A lease that is wanted already comes first, then the
// lowest priority, then the user with the largest use, then the one with the most leases, then the
// oldest lease.
Registry::Candidate* Registry::PickVictim(const Request& request, const Shares& shares,
                                          std::vector<Candidate>& candidates) {
  Candidate* best = nullptr;
  std::tuple<bool, int64_t, double, int64_t, uint64_t> best_rank;
  for (Candidate& candidate : candidates) {
    const LeaseEntry& lease = *candidate.lease;
    if (candidate.named || lease.kind != request.request.kind()) continue;
    if (!Outranks(request, lease, shares)) continue;
    if (!Suits(candidate.worker->state, request.request)) continue;
    const std::string& user = lease.lease.user();
    const std::tuple<bool, int64_t, double, int64_t, uint64_t> rank(
        !lease.wanted, lease.lease.priority(), -shares.Use(lease.kind, user),
        -shares.held.User(lease.kind, user), lease.serial);
    if (best == nullptr || rank < best_rank) {
      best = &candidate;
      best_rank = rank;
    }
  }
  return best;
}

// Marks for every waiting request, in order, at most one lease that it can hope for. The slot of a
// worker that takes no new leases helps no request.
void Registry::MarkWanted() {
  if (now_ms_ < mark_from_ms_) return;
  mark_from_ms_ =
      now_ms_ + std::min(static_cast<int64_t>(waiting_.size() * leases_.size()) / kPairsPerMs,
                         options_.turn_ms);
  std::vector<Candidate> candidates;
  for (auto& [id, lease] : leases_) {
    const Worker& worker = workers_.find(lease.lease.worker().id())->second;
    if (!waiting_.empty() && TakesNewLeases(ModeOf(worker).mode)) {
      candidates.push_back({&lease, &worker});
    } else {
      lease.wanted = false;
    }
  }
  if (candidates.empty()) return;
  Shares shares = shares_;
  const double turn_s = 1e-3 * static_cast<double>(options_.turn_ms);
  for (Request* request : WaitingInOrder()) {
    Candidate* const victim = PickVictim(*request, shares, candidates);
    if (victim == nullptr) continue;
    victim->named = true;
    shares.Move(*victim->lease, *request, turn_s);
  }
  for (const Candidate& candidate : candidates) candidate.lease->wanted = candidate.named;
}

}  // namespace kiln::tracker
