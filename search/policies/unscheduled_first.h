// A policy whose first candidate is the program as it is declared, without a schedule, and whose
// others are another policy's: so that a search is compared with the unscheduled loops by a
// candidate like any other, and never ends with anything slower.
#pragma once

#include <memory>

#include "search/policies/empty_policy.h"
#include "search/policies/policy.h"

namespace kiln::search {

class UnscheduledFirst final : public Policy {
 public:
  // `others` never sees the unscheduled loops; `task` outlives this.
  UnscheduledFirst(const Task& task, std::unique_ptr<Policy> others);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  // What others measured of the unscheduled loops does not make them known: a search has its own
  // reading of what it is compared with.
  void Avoid(std::span<const uint64_t> hashes) override { others_->Avoid(hashes); }
  void Suggest(std::span<const Observation> of_another) override { others_->Suggest(of_another); }
  const RoundReport& last_round() const override { return report_; }

 private:
  EmptyPolicy unscheduled_;
  const std::unique_ptr<Policy> others_;
  RoundReport report_;
};

}  // namespace kiln::search
