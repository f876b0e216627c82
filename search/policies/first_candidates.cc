#include "search/policies/first_candidates.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln::search {
namespace {

bool IsUnscheduled(uint64_t hash) { return hash == schedule::HashSteps({}); }

}  // namespace

FirstCandidates::FirstCandidates(const Task& task, std::unique_ptr<Policy> others,
                                 FirstOptions options)
    : unscheduled_(task),
      others_(std::move(others)),
      options_(std::move(options)),
      reference_s_(options_.reference_s) {
  std::vector<uint64_t> first = {schedule::HashSteps({})};
  for (const Candidate& candidate : options_.heuristic) first.push_back(candidate.hash);
  others_->Avoid(first);
}

bool FirstCandidates::IsHeuristic(uint64_t hash) const {
  return std::ranges::any_of(options_.heuristic,
                             [hash](const Candidate& candidate) { return candidate.hash == hash; });
}

bool FirstCandidates::CanTryUnscheduled() const {
  const bool is_near =
      !best_s_ || (reference_s_ && *reference_s_ <= kReferenceMargin * *best_s_ + kReferenceCall_s);
  return options_.with_unscheduled && is_near;
}

bool FirstCandidates::ShouldTryUnscheduled() const {
  if (!CanTryUnscheduled()) return false;
  if (best_s_) return true;
  return failed_ > 0 && failed_ >= options_.heuristic.size();
}

Status FirstCandidates::AddUnscheduled(std::vector<Candidate>& candidates) {
  KILN_ASSIGN_OR_RETURN(std::vector<Candidate> one, unscheduled_.Propose(1));
  std::ranges::move(one, std::back_inserter(candidates));
  return OkStatus();
}

bool FirstCandidates::IsTimeFor(size_t heuristic) const {
  return heuristic == 0 || others_are_done_ || failed_ > 0 ||
         others_results_ >= options_.results_before_second;
}

void FirstCandidates::AddHeuristic(int n, std::vector<Candidate>& candidates) {
  for (; next_ < options_.heuristic.size() && std::ssize(candidates) < n; ++next_) {
    if (!IsTimeFor(next_)) return;
    const Candidate& candidate = options_.heuristic[next_];
    if (known_.contains(candidate.hash)) continue;
    candidates.push_back(candidate);
    if (IsUnscheduled(candidate.hash)) unscheduled_.Avoid({&candidate.hash, 1});
  }
}

StatusOr<std::vector<Candidate>> FirstCandidates::Propose(int n) {
  std::vector<Candidate> candidates;
  AddHeuristic(n, candidates);
  if (std::ssize(candidates) < n && ShouldTryUnscheduled())
    KILN_RETURN_IF_ERROR(AddUnscheduled(candidates));
  const auto first = static_cast<int>(candidates.size());
  if (first == n && n > 0) {
    report_ = {.round = report_.round + 1, .proposed = first};
    return candidates;
  }
  KILN_ASSIGN_OR_RETURN(std::vector<Candidate> more, others_->Propose(n - first));
  report_ = others_->last_round();
  std::ranges::move(more, std::back_inserter(candidates));
  if (candidates.empty()) {
    others_are_done_ = true;
    AddHeuristic(n, candidates);
  }
  if (candidates.empty() && n > 0 && CanTryUnscheduled())
    KILN_RETURN_IF_ERROR(AddUnscheduled(candidates));
  report_.proposed = static_cast<int>(candidates.size());
  return candidates;
}

// The unscheduled loops are hidden from the other policy: as a parent they have no tiles to change,
// and their cost says nothing about schedules.
void FirstCandidates::Observe(std::span<const Observation> observations) {
  std::vector<Observation> others;
  for (const Observation& o : observations) {
    const uint64_t hash = o.candidate.hash;
    if (o.valid && (!best_s_ || o.cost_s < *best_s_)) best_s_ = o.cost_s;
    if (o.reference_s) reference_s_ = o.reference_s;
    const bool is_heuristic = IsHeuristic(hash);
    if (is_heuristic && known_.insert(hash).second && !o.valid) ++failed_;
    if (!is_heuristic && !IsUnscheduled(hash)) ++others_results_;
    if (IsUnscheduled(hash)) {
      unscheduled_.Observe({&o, 1});
    } else if (!is_heuristic || options_.tells_others) {
      others.push_back(o);
    }
  }
  others_->Observe(others);
}

void FirstCandidates::AvoidFirst(std::span<const uint64_t> hashes) {
  unscheduled_.Avoid(hashes);
  for (const uint64_t hash : hashes) {
    if (IsHeuristic(hash)) known_.insert(hash);
  }
}

void FirstCandidates::Avoid(std::span<const uint64_t> hashes) {
  AvoidFirst(hashes);
  others_->Avoid(hashes);
}

}  // namespace kiln::search
