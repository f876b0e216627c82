// Proposes only the unscheduled loops, that is the program as it is declared. Tuned programs are
// compared with them.
#pragma once

#include "search/policies/policy.h"

namespace kiln::search {

extern const PolicyKind kEmpty;

class EmptyPolicy final : public Policy {
 public:
  explicit EmptyPolicy(const Task& task) : task_(task) {}

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override;
  const RoundReport& last_round() const override { return report_; }

 private:
  const Task& task_;
  bool known_ = false;
  RoundReport report_;
};

}  // namespace kiln::search
