// Draws random samples from the task's sketches. Other policies are compared with this one, and
// every search draws its first candidates in this way.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "base/numbers/rng.h"
#include "search/policies/policy.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"

namespace kiln::search {

extern const PolicyKind kSketchRandom;

class RandomPolicy final : public Policy {
 public:
  // `rules` may be null (PolicyOptions::rules).
  RandomPolicy(const Task& task, Parameters parameters, uint64_t seed,
               BatchedRules* rules = nullptr);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override {
    known_.insert(hashes.begin(), hashes.end());
  }
  const RoundReport& last_round() const override { return report_; }

  const std::vector<Sketch>& sketches() const { return sketches_; }

 private:
  // Draws once. An illegal draw is an error, and is counted in the report.
  StatusOr<Candidate> Draw();

  const Task& task_;
  const Parameters parameters_;
  Rng rng_;
  std::vector<Sketch> sketches_;
  std::vector<double> weights_;          // weights of the sketches
  absl::flat_hash_set<uint64_t> known_;  // proposed or observed
  RoundReport report_;
};

}  // namespace kiln::search
