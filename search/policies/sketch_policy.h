// The learned search: sketches, evolution under a cost model, and what was measured as parents.
//
// One Propose: the model learns what was observed since the last one; random schedules, the best
// ones left over from earlier rounds and the best measured ones are the first generation; evolution
// ranks; the candidates are the best but for a share chosen by chance. While nothing is trained a
// prior model ranks, and without one the candidates are random. A model that was trained on other
// tasks leaves the second round to the prior: by itself it never tries what those had no use for,
// and takes the best of what it tries for the best there is.
//
// What was fast for another task that does the same sums is carried over (evolution/transfer.h): a
// part of a round's candidates are such, and the rest of them are in the first generation.
//
// Proposals in flight count as known. Observations are featurized (from the proposal, or by
// lowering again) and given to the model in the next Propose, not before: results trickle in one by
// one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "costmodel/cost_model.h"
#include "search/evolution/choose.h"
#include "search/evolution/evaluate.h"
#include "search/evolution/individual.h"
#include "search/policies/policy.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"

namespace kiln::search {

extern const PolicyKind kSketchXgb, kSketchAnalytic;

struct SketchPolicyOptions {
  Models models;  // each may be null; without a learned one nothing learns
  FeatureFn features;
  int min_own_results = 0;  // before the learned model ranks
  bool one_of_many = false;
  int threads = 0;  // 0: one for each CPU
};

class SketchPolicy final : public Policy {
 public:
  SketchPolicy(const Task& task, Parameters parameters, uint64_t seed, SketchPolicyOptions options);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override {
    known_.insert(hashes.begin(), hashes.end());
  }
  void Suggest(std::span<const Observation> of_another) override;
  const RoundReport& last_round() const override { return report_; }

  const std::vector<Sketch>& sketches() const { return sketches_; }

 private:
  using Hashes = std::unordered_set<uint64_t>;
  struct Transfer {
    Individual individual;
    double cost_s = 0;  // there
  };

  void Train();
  const costmodel::CostModel* Ranker() const;  // of this round
  int StatesOf(int full) const;                // that a round of full size looks at now
  // Random schedules that are not in `seen`, with rows.
  std::vector<Individual> Draw(int count, int max_rejected, const Workers& workers, Hashes& seen);
  // All that may be proposed, the best first; `drawn` are of this round.
  std::vector<Individual> Rank(const costmodel::CostModel& model, int n, const Workers& workers,
                               const std::vector<Individual>& drawn);
  std::vector<Individual> Elites(size_t most) const;
  // How many of a round of n each sketch gets at least and at most: less the slower its best
  // measured one is.
  DiversityQuotas QuotasOf(int n, std::span<const Individual> ranked) const;
  // Takes up to n of `drawn` by chance, without those chosen.
  void ChooseByChance(int n, const std::vector<Individual>& drawn, Hashes& chosen,
                      std::vector<Candidate>& candidates);
  // Up to n that are one change away from the best measured ones, with rows; none of them known or
  // chosen.
  std::vector<const Individual*> ProbedElites() const;
  std::vector<Individual> Neighbours(int n, const Workers& workers, const Hashes& chosen);
  // The schedule as one of this task; none: it can't be, or is known.
  std::optional<Individual> Transferred(const Observation& of_another) const;
  bool IsFasterThanOwn(double cost_s) const;
  // Those that wait and are faster than the best measured one, up to a share of n; the rest goes to
  // what is ranked.
  void ProposeTransferred(int n, const Workers& workers, Hashes& chosen,
                          std::vector<Candidate>& candidates);
  void Accept(const Individual& individual, int rank, std::vector<Candidate>& candidates);
  void Remember(Individual individual);
  void AddMeasured(Individual individual);
  void Correct(const Observation& observation);

  const Task& task_;
  const Parameters parameters_;
  const uint64_t seed_;
  const SketchPolicyOptions options_;
  const uint64_t sample_task_;
  std::vector<Sketch> sketches_;
  Hashes known_;                                        // proposed or observed
  std::unordered_map<uint64_t, Individual> in_flight_;  // proposed, not observed
  std::vector<Individual> measured_;                    // valid ones, the fastest first
  std::unordered_map<uint64_t, int> measured_rows_;     // by RowsHash
  std::vector<Individual> reserve_;                     // ranked in earlier rounds, not proposed
  std::vector<Transfer> transferred_;                   // of other tasks, not proposed
  Hashes suggested_;                                    // as the other tasks know them
  std::vector<costmodel::Sample> pending_;              // not given to the model yet
  int own_results_ = 0;                                 // that taught the model
  uint64_t draws_ = 0;                                  // calls of DrawPopulation, for seeds
  RoundReport report_;
};

}  // namespace kiln::search
