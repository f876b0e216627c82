#include "search/policies/heuristic_policy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/process/cpu_time.h"
#include "compiler/features/features.h"
#include "search/evolution/evolution.h"
#include "search/evolution/population.h"
#include "search/sampling/register_tiles.h"
#include "search/sampling/sample.h"

namespace kiln::search {
namespace {

// The space counts as small after so many draws in a row were refused or known, for each wanted
// draw.
constexpr int kRejectedPerDraw = 4;

// The most stages of all states together that each way of making states gives on a CPU. The limit
// bounds the pool of a computation of a hundred sums, which has hundreds of sketches. Computations
// of networks have fewer stages without this bound.
constexpr int64_t kMaxStages = 60'000;
// The most stages of states that are made and not lowered yet. A state takes some 30 KB for a
// stage.
constexpr int64_t kStagesAtOnce = 5'000;

// Numbers of states in the parts of the pool. A GPU's states take three times as long to lower and
// describe as a CPU's, and its model errs less, so fewer states in more generations lead further:
// two thirds of the parameters' draws, a quarter of the population, twice the generations. This
// choice gives a predicted time of 4.48 us on average for the 25 conformance workloads on sm_90, in
// 24 ms each; a CPU's numbers give 4.45 us in 40 ms (heuristic_bench).
struct PoolSize {
  int draws, population, generations;
};

int64_t StagesOf(std::span<const Sketch> sketches) {
  int64_t stages = 0;
  for (const Sketch& sketch : sketches) stages += sketch.state.num_stages();
  return stages;
}

// Returns the share of the states that a pool gets. The cost of a state grows with its stages, so
// sketches with many stages get fewer states in proportion. A limit by a clock would make the same
// seed choose different schedules.
double ShareOfStates(const Parameters& p, std::span<const Sketch> sketches) {
  const int64_t stages = StagesOf(sketches);
  const auto most =
      static_cast<int64_t>(p.heuristic_stages) * static_cast<int64_t>(sketches.size());
  return stages <= most ? 1 : static_cast<double>(most) / static_cast<double>(stages);
}

// Returns the share of `states` whose stages are as many as a pool may have, if the sketches have
// their average size.
double ShareOfMostStages(int64_t states, std::span<const Sketch> sketches) {
  const double all = static_cast<double>(states) * static_cast<double>(StagesOf(sketches)) /
                     static_cast<double>(sketches.size());
  return std::min(1.0, static_cast<double>(kMaxStages) / all);
}

PoolSize PoolSizeOf(const Parameters& p, bool gpu, std::span<const Sketch> sketches) {
  const int64_t states =
      p.heuristic_draws + int64_t{p.heuristic_population} * p.heuristic_generations;
  const double share = gpu ? ShareOfStates(p, sketches) : ShareOfMostStages(states, sketches);
  const auto some = [share](int part) {
    return std::max(1, static_cast<int>(share * static_cast<double>(part)));
  };
  if (!gpu) {
    return {some(p.heuristic_draws), some(p.heuristic_population), p.heuristic_generations};
  }
  return {some(p.heuristic_draws * 2 / 3), some(p.heuristic_population / 4),
          p.heuristic_generations * 2};
}

std::unique_ptr<Policy> Make(const Task& task, Parameters parameters, uint64_t seed,
                             const PolicyOptions& options) {
  return std::make_unique<HeuristicPolicy>(
      task, std::move(parameters), seed, options.models.prior,
      [&task](const schedule::State&, const ir::Program& program) {
        return features::ExtractFeatures(program, task.target, task.hardware, task.device);
      },
      options.threads);
}

}  // namespace

constinit const PolicyKind kHeuristic = {
    .name = "heuristic",
    .what = "a small pool, made by rule and ranked by the analytic model once",
    .uses_analytic_model = true,
    .make = Make};

HeuristicPolicy::HeuristicPolicy(const Task& task, Parameters parameters, uint64_t seed,
                                 std::shared_ptr<const costmodel::CostModel> model,
                                 FeatureFn features, int threads)
    : task_(task),
      parameters_(std::move(parameters)),
      seed_(seed),
      model_(std::move(model)),
      features_(std::move(features)),
      threads_(threads) {}

// Fills the sketches with blanks by rule. A sketch without blanks has one state, which the random
// draws find.
std::vector<Individual> HeuristicPolicy::ByRule(const Workers& workers,
                                                std::span<const Sketch> sketches, Hashes& seen) {
  std::vector<Individual> made, fresh;
  double start = ThreadCpuSeconds();
  const int fillings = static_cast<int>(std::clamp<int64_t>(kMaxStages / StagesOf(sketches),
                                                            std::min(1, parameters_.rule_fillings),
                                                            parameters_.rule_fillings));
  int64_t stages = 0, fresh_stages = 0;
  for (size_t i = 0; i < sketches.size() && stages < kMaxStages; ++i) {
    stages += int64_t{sketches[i].state.num_stages()} * fillings;
    Rng rng(SplitSeed(seed_, i));
    for (const auto& steps : FillByRule(sketches[i], task_, parameters_, fillings)) {
      if (task_.stop.stop_requested()) return made;
      StatusOr<schedule::State> state = CompleteCpuByRule(task_, steps, parameters_, rng);
      if (!state.ok()) {
        report_.AddDrop(Drop::kIllegal, state.status());
        continue;
      }
      Individual individual =
          MakeIndividual(*std::move(state), static_cast<int>(i), {.kind = Origin::kRule});
      if (!seen.insert(individual.hash).second) continue;
      fresh_stages += individual.state->num_stages();
      fresh.push_back(std::move(individual));
    }
    if (fresh_stages < kStagesAtOnce) continue;
    fresh_stages = 0;
    report_.seconds(Part::kSample) += ThreadCpuSeconds() - start;
    FillRows(workers, fresh, report_);
    start = ThreadCpuSeconds();
    std::ranges::move(fresh, std::back_inserter(made));
    fresh.clear();
  }
  report_.seconds(Part::kSample) += ThreadCpuSeconds() - start;
  FillRows(workers, fresh, report_);
  std::ranges::move(fresh, std::back_inserter(made));
  return made;
}

void HeuristicPolicy::Rank() {
  const Workers workers(task_, features_, threads_);
  const std::vector<Sketch> sketches = GenerateSketches({task_, parameters_});
  report_.sketches = static_cast<int>(sketches.size());
  if (sketches.empty()) return;  // the task was stopped
  Hashes seen = known_;
  std::vector<Individual> pool;
  if (!task_.target.is_gpu()) pool = ByRule(workers, sketches, seen);
  const PoolSize size = PoolSizeOf(parameters_, task_.target.is_gpu(), sketches);
  std::vector<Individual> drawn =
      DrawPopulation(workers, parameters_, sketches, size.draws, kRejectedPerDraw * size.draws,
                     SplitSeed(~seed_, 0), seen, report_);
  pool.insert(pool.end(), std::make_move_iterator(drawn.begin()),
              std::make_move_iterator(drawn.end()));
  FillRows(workers, pool, report_);
  FillScores(*model_, pool, report_);
  Parameters changes = parameters_;
  changes.evolutionary_search_num_iters = size.generations;
  ranked_ = Evolve({.workers = workers,
                    .parameters = changes,
                    .sketches = sketches,
                    .model = *model_,
                    .population = size.population,
                    .keep = static_cast<int>(pool.size()) + size.population,
                    .seed = SplitSeed(~seed_, 1)},
                   std::move(pool), {}, known_, report_);
}

StatusOr<std::vector<Candidate>> HeuristicPolicy::Propose(int n) {
  const double start = Clock::Real().MonotonicSeconds();
  report_ = {.round = report_.round + 1,
             .ranked_by = std::string(model_->name()),
             .sketches = report_.sketches};
  if (!is_ranked_) Rank();
  if (task_.stop.stop_requested()) return Cancelled("stopped");
  is_ranked_ = true;
  if (ranked_.empty()) {
    return FailedPrecondition("no schedule of the pool is legal\n{}", PrintRound(report_));
  }
  std::vector<Candidate> candidates;
  for (; next_ < ranked_.size() && static_cast<int>(candidates.size()) < n; ++next_) {
    const Individual& individual = ranked_[next_];
    if (!known_.insert(individual.hash).second) continue;
    candidates.push_back({.steps = individual.steps,
                          .hash = individual.hash,
                          .origin = Describe(individual, task_.dag),
                          .score = individual.score,
                          .rank = static_cast<int>(next_) + 1});
  }
  report_.proposed = static_cast<int>(candidates.size());
  report_.wall_s = Clock::Real().MonotonicSeconds() - start;
  return candidates;
}

void HeuristicPolicy::Observe(std::span<const Observation> observations) {
  for (const Observation& o : observations) known_.insert(o.candidate.hash);
}

}  // namespace kiln::search
