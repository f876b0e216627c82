// A policy whose first candidates are the schedules that a computation gets where nothing is
// measured, the best one first, so that whoever stops a search early is never worse off than
// without it. The others are another policy's, and may come before the second one.
//
// The unscheduled loops are what answers are compared with, and one run of them is known from that.
// They are a candidate where that run is not far slower than the best one known, where no schedule
// has worked, and where the other policy has nothing left.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "search/policies/empty_policy.h"
#include "search/policies/policy.h"

namespace kiln::search {

// How far from the best one the loops may be to be a candidate, as a factor. Their run is one call,
// which takes longer than one of many.
inline constexpr double kReferenceMargin = 2;
inline constexpr double kReferenceCall_s = 10e-6;

// The origin of a schedule that was chosen without measuring begins with it.
inline constexpr std::string_view kHeuristicOrigin = "heuristic schedule, ";

struct FirstOptions {
  // Chosen without measuring, the best first; may be empty.
  std::vector<Candidate> heuristic = {};
  // False: the unscheduled loops are never a candidate.
  bool with_unscheduled = true;
  // So many results of the other policy come before all heuristic candidates but the first one. One
  // of several tasks has better use for its first trials than the second best guess.
  int results_before_second = 0;
  // True: the other policy observes them, too. One that searches schedules of another kind makes
  // nothing of them.
  bool tells_others = true;
  // The time of the run of the unscheduled loops; none: not known yet.
  std::optional<double> reference_s = {};
};

class FirstCandidates final : public Policy {
 public:
  // `others` never sees the unscheduled loops; `task` outlives this.
  FirstCandidates(const Task& task, std::unique_ptr<Policy> others, FirstOptions options);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  // Results of earlier jobs count: nothing is proposed again.
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override;
  // First candidates among these are not proposed: the other policy is told nothing.
  void AvoidFirst(std::span<const uint64_t> hashes);
  void Suggest(std::span<const Observation> of_another) override { others_->Suggest(of_another); }
  const RoundReport& last_round() const override { return report_; }

 private:
  bool IsHeuristic(uint64_t hash) const;
  // May the unscheduled loops be the fastest, as far as is known?
  bool IsUnscheduledWorthATrial() const;
  bool IsUnscheduledPossible() const;
  Status AddUnscheduled(std::vector<Candidate>& candidates);
  bool IsTimeFor(size_t heuristic) const;
  void AddHeuristic(int n, std::vector<Candidate>& candidates);

  EmptyPolicy unscheduled_;
  const std::unique_ptr<Policy> others_;
  const FirstOptions options_;
  size_t next_ = 0;                     // of the heuristic ones
  std::unordered_set<uint64_t> known_;  // of the first candidates, those observed before
  size_t failed_ = 0;                   // heuristic ones
  int others_results_ = 0;
  bool others_are_done_ = false;
  std::optional<double> best_s_;
  std::optional<double> reference_s_;
  RoundReport report_;
};

}  // namespace kiln::search
