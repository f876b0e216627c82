// A policy whose first candidates are the schedules that a computation gets without measuring, the
// best one first. A search that stops early is therefore never worse than no search. Another policy
// proposes the other candidates, which may come before the second of these schedules.
//
// Answers are compared with those of the unscheduled loops, so the time of one run of them is
// known. The loops become a candidate if that run is not far slower than the best known schedule,
// if no heuristic schedule has worked, or if the other policy has no candidates left.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "search/policies/empty_policy.h"
#include "search/policies/policy.h"

namespace kiln::search {

// The loops are a candidate if they are slower than the best schedule by at most this factor. The
// time of their run is of a single call, which takes longer than one of many calls.
inline constexpr double kReferenceMargin = 2;
inline constexpr double kReferenceCall_s = 10e-6;

// The origin of a schedule that was chosen without measuring begins with this text.
inline constexpr std::string_view kHeuristicOrigin = "heuristic schedule, ";

struct FirstOptions {
  // Schedules that were chosen without measuring, the best one first. May be empty.
  std::vector<Candidate> heuristic = {};
  // If false, the unscheduled loops are never a candidate.
  bool with_unscheduled = true;
  // So many results of the other policy come before all heuristic candidates but the first one. One
  // of several tasks has better use for its first trials than the second best guess.
  int results_before_second = 0;
  // If true, the other policy observes the heuristic schedules, too. A policy that searches
  // schedules of another kind has no use for them.
  bool tells_others = true;
  // The time of a run of the unscheduled loops. Empty until it is known.
  std::optional<double> reference_s = {};
};

class FirstCandidates final : public Policy {
 public:
  // `others` never sees the unscheduled loops. `task` outlives this object.
  FirstCandidates(const Task& task, std::unique_ptr<Policy> others, FirstOptions options);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  // Results of earlier jobs count, so these candidates are not proposed again.
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override;
  // First candidates among `hashes` are not proposed. The other policy is told nothing.
  void AvoidFirst(std::span<const uint64_t> hashes);
  void Suggest(std::span<const Observation> of_another) override { others_->Suggest(of_another); }
  const RoundReport& last_round() const override { return report_; }

 private:
  bool IsHeuristic(uint64_t hash) const;
  // Tells whether the unscheduled loops may be the fastest, by the results so far.
  bool ShouldTryUnscheduled() const;
  bool CanTryUnscheduled() const;
  Status AddUnscheduled(std::vector<Candidate>& candidates);
  bool IsTimeFor(size_t heuristic) const;
  void AddHeuristic(int n, std::vector<Candidate>& candidates);

  EmptyPolicy unscheduled_;
  const std::unique_ptr<Policy> others_;
  const FirstOptions options_;
  size_t next_ = 0;                     // the next heuristic schedule
  std::unordered_set<uint64_t> known_;  // first candidates that were observed before
  size_t failed_ = 0;                   // number of heuristic schedules that failed
  int others_results_ = 0;
  bool others_are_done_ = false;
  std::optional<double> best_s_;
  std::optional<double> reference_s_;
  RoundReport report_;
};

}  // namespace kiln::search
