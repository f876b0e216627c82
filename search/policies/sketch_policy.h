// The learned search: sketches, and evolution under a cost model with the measured schedules among
// the parents.
//
// In one Propose, the model first learns the results since the last one. Random schedules, the best
// ones left over from earlier rounds and the best measured ones make the first generation.
// Evolution ranks. Most candidates are the best ones; a share is chosen at random. While no model
// is trained, a prior model ranks; without a prior model the candidates are random. A model that
// was trained on other tasks leaves the second round to the prior model: on its own it never tries
// schedules that were of no use to those tasks, and cannot see what it misses.
//
// Schedules that were fast for another task with the same sums are carried over
// (evolution/transfer.h): a part of a round's candidates are such schedules, and the rest of them
// are in the first generation.
//
// Where builds for a GPU are the limit, candidates come in the order of what they may gain in each
// second of their trials (build_choice.h). The best ones by score are proposed all the same.
//
// Proposals in flight count as known. Observations get feature rows at once (from the proposal, or
// by lowering again), but the model learns them only in the next Propose, because results come one
// by one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "costmodel/cost_model.h"
#include "search/evolution/choose.h"
#include "search/evolution/evaluate.h"
#include "search/evolution/individual.h"
#include "search/policies/build_choice.h"
#include "search/policies/kept_allowance.h"
#include "search/policies/kept_schedules.h"
#include "search/policies/policy.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"

namespace kiln::search {

extern const PolicyKind kSketchXgb, kSketchAnalytic;

// With fewer results of its own, a task follows the tasks with the same sums.
inline constexpr int kFewOwnResults = 8;
// Until it has so many results, one of many tasks of a GPU looks at half as many states, and one of
// any device chooses no more by chance than with a learned model. All tasks share the machine's
// cores with the builders, the model does not yet tell more states apart, and the other tasks give
// it contrast.
inline constexpr int kResultsForAllStates = 24;
// Searches and builds share the cores. If builds are the limit, a search of a GPU's task takes so
// many seconds for each second of its candidates' builds, or less: it looks at fewer states, down
// to a share of all.
inline constexpr double kSearchPerBuild = 0.2, kLeastShareBesideBuilds = 0.2;
// A state costs the search so much for each of its feature rows, on cores that are all busy.
inline constexpr double kSecondsOfRow = 6e-5;
// A task of a CPU looks at a quarter of the states until it has the first number of results, and at
// a half until it has the second: what it finds is as fast (docs/experiments/search.md).
inline constexpr int kCpuResultsForHalfOfStates = 128, kCpuResultsForAllStates = 1024;
// But it looks at no fewer than so many states of a generation for each candidate, if there are so
// many.
inline constexpr int kLeastStatesOfCandidate = 8;
// So many measured schedules are kept as parents and neighbours, the fastest ones, if the allowance
// is enough for so many.
inline constexpr int kMostMeasured = 512;
// One in so many of the candidates that are chosen by score is chosen whatever its build costs.
inline constexpr int kShareOfBest = 8;

struct SketchPolicyOptions {
  Models models;  // each may be null; without models.learned no model learns
  FeatureFn features;
  int min_own_results = 0;  // results before the learned model ranks
  bool one_of_many = false;
  int threads = 0;                     // 0: one for each CPU
  KeptAllowance* allowance = nullptr;  // null: each task keeps as many as are of use
  BatchedRules* rules = nullptr;       // asked by the constructor
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
  // Returns the number of schedules that are kept for later rounds.
  size_t kept() const { return measured_.fastest().size() + reserve_.size(); }

 private:
  struct Transfer {
    Individual individual;
    double cost_s = 0;  // cost in the other task
  };

  void Train();
  void LearnBuilds();
  bool WeighsBuilds() const;  // whether builds are the limit, and can be predicted
  // Predicts the seconds of the builds of individuals with rows.
  std::vector<double> BuildSeconds(std::span<const Individual> individuals);
  // Orders the ranked schedules by what they may gain in each second, if that is wanted. The first
  // `best` of them stay in front. Sets the rank that each of them had.
  void PreferGainPerSecond(size_t best, std::vector<Individual>& ranked, std::vector<int>& ranks);
  const costmodel::CostModel* Ranker() const;  // the model that ranks this round
  bool IsEarly() const;  // whether this is one of many tasks and has few results
  // Returns the number of states, of `full`, that a round of n candidates looks at now.
  int StatesOf(int full, int n) const;
  // Returns the share of all states that a round of n candidates has the time for beside builds.
  double ShareBesideBuilds(int n) const;
  void NoteRows(std::span<const Individual> ranked);
  double ShareByChance(const costmodel::CostModel* ranker) const;
  // Draws random schedules that are not in `seen`, with rows.
  std::vector<Individual> Draw(int count, int max_rejected, const Workers& workers, Hashes& seen);
  // Takes the schedules that are left over from earlier rounds, with rows.
  std::vector<Individual> TakeReserve();
  // Ranks all schedules that may be proposed, the best first. `drawn` are the draws of this round.
  std::vector<Individual> Rank(const costmodel::CostModel& model, int n, const Workers& workers,
                               const std::vector<Individual>& drawn);
  // Does the same with respect to builds, where these are the limit. Scores are those of `model`.
  std::vector<Individual> RankByPace(const costmodel::CostModel& model, int n,
                                     const Workers& workers, const std::vector<Individual>& drawn);
  // Returns the smallest and largest number of candidates that each niche gets in a round of n. The
  // slower the best measured schedule of a niche, the fewer it gets.
  DiversityQuotas QuotasOf(int n, std::span<const Individual> ranked) const;
  // Takes up to n of `drawn` at random, without those in `chosen`.
  void ChooseByChance(int n, const std::vector<Individual>& drawn, Hashes& chosen,
                      std::vector<Candidate>& candidates);
  // ProbedElites returns measured schedules that are worth probing. Neighbours returns up to n
  // schedules that are one change away from these, with rows; none of them is known or chosen.
  std::vector<const Individual*> ProbedElites() const;
  std::vector<Individual> Neighbours(int n, const Workers& workers, const Hashes& chosen);
  // Carries the schedule over to this task. Returns nothing if that is not possible, or if the
  // result is known.
  std::optional<Individual> Transferred(const Observation& of_another) const;
  bool IsFasterThanOwn(double cost_s) const;
  // Proposes carried-over schedules that were faster than the best measured one, up to a share of
  // n. The others join the schedules that are ranked.
  void ProposeTransferred(int n, const Workers& workers, Hashes& chosen,
                          std::vector<Candidate>& candidates);
  void Accept(const Individual& individual, int rank, std::vector<Candidate>& candidates);
  void Remember(Individual individual);
  // Has the model learn the sample, if there is one that learns, behind the last result of the
  // round or in the next Propose.
  void Tell(costmodel::Sample sample);
  // Returns what the model learns of a measured schedule.
  costmodel::Sample SampleOf(const Individual& individual) const;
  void Correct(const Observation& observation);

  // A sample that the model has not learned yet. Its rows are packed.
  struct Untold {
    costmodel::Sample sample;  // without rows, unless these are empty
    std::optional<PackedRows> rows = {};
  };
  struct UntoldBuild {
    PackedRows rows;
    double seconds = 0;
  };

  const Task& task_;
  const Parameters parameters_;
  const uint64_t seed_;
  const SketchPolicyOptions options_;
  const uint64_t sample_task_;
  const KeptAllowance::Share share_;
  std::vector<Sketch> sketches_;
  Hashes known_;                                          // proposed or observed
  SchedulePacker packer_;                                 // of what is kept besides measured_
  std::unordered_map<uint64_t, KeptSchedule> in_flight_;  // proposed, not observed
  MeasuredSchedules measured_;                            // valid ones
  std::unordered_map<uint64_t, int> measured_rows_;       // key: RowsHash
  std::vector<KeptSchedule> reserve_;                     // ranked in earlier rounds, not proposed
  std::vector<Transfer> transferred_;                     // from other tasks, not proposed
  // Hashes of other tasks' schedules that were suggested.
  Hashes suggested_;
  // Samples that the model has not learned yet: those of a round of which results are missing.
  std::vector<Untold> pending_;
  // Builds that the model of them has not learned yet.
  std::vector<UntoldBuild> built_;
  BuildLimit build_limit_;
  int own_results_ = 0;       // results that taught the model
  double training_s_ = 0;     // CPU time of training that no report has
  double rows_of_state_ = 0;  // mean of the last round; 0: there was none
  uint64_t draws_ = 0;        // calls of DrawPopulation, for seeds
  RoundReport report_;
};

}  // namespace kiln::search
