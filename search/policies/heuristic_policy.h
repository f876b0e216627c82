// Finds good schedules without a measurement: the analytic model ranks a small pool once.
//
// The pool has three parts: schedules whose tiles follow from the registers, vectors and caches
// (sampling/register_tiles.h, on a CPU only); schedules that were drawn at random; and schedules
// that a few changes make of these, if the model likes them. The best predicted ones are proposed
// first. When the pool is used up, the policy has no more candidates. The policy learns nothing.
//
// Cost: see docs/heuristic-schedules.md; all of it falls on the first Propose.
#pragma once

#include <memory>
#include <vector>

#include "costmodel/cost_model.h"
#include "search/evolution/evaluate.h"
#include "search/evolution/individual.h"
#include "search/policies/policy.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"

namespace kiln::search {

extern const PolicyKind kHeuristic;

class HeuristicPolicy final : public Policy {
 public:
  // `model` ranks the pool and is never null.
  HeuristicPolicy(const Task& task, Parameters parameters, uint64_t seed,
                  std::shared_ptr<const costmodel::CostModel> model, FeatureFn features,
                  int threads);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override {
    known_.insert(hashes.begin(), hashes.end());
  }
  const RoundReport& last_round() const override { return report_; }

 private:
  // Fills ranked_.
  void Rank();
  // Returns schedules by rule for the sketches of a CPU that have tiles, with rows.
  std::vector<Individual> ByRule(const Workers& workers, std::span<const Sketch> sketches,
                                 Hashes& seen);

  const Task& task_;
  const Parameters parameters_;
  const uint64_t seed_;
  const std::shared_ptr<const costmodel::CostModel> model_;
  const FeatureFn features_;
  const int threads_;
  std::vector<Individual> ranked_;  // the best first
  bool is_ranked_ = false;
  size_t next_ = 0;  // in ranked_
  Hashes known_;     // proposed or observed
  RoundReport report_;
};

}  // namespace kiln::search
