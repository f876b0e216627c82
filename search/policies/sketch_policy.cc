#include "search/policies/sketch_policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/log.h"
#include "base/numbers/integers.h"
#include "base/process/cpu_time.h"
#include "compiler/features/features.h"
#include "search/evolution/choose.h"
#include "search/evolution/evolution.h"
#include "search/evolution/population.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/transfer.h"
#include "search/policies/pace_model.h"
#include "search/policies/samples.h"
#include "search/space/search_space.h"

namespace kiln::search {
namespace {

// Share of a round that niches get because they have few results. A product has more niches than a
// round has candidates. With all of a round, a job of a hundred trials sees each niche a few times
// and the best one not much more often (docs/experiments/search.md).
constexpr double kShareForLeast = 0.125;

// Returns the cost of a right program.
std::optional<double> CostOf(const Observation& o) {
  if (!o.valid || !std::isfinite(o.cost_s) || o.cost_s <= 0) return std::nullopt;
  return o.cost_s;
}

// Returns the number of states for a round. A round of few candidates looks at few states, so that
// the search of a short job takes no longer than its builds.
int InProportion(const Parameters& parameters, int states, int round) {
  const double share = std::clamp(static_cast<double>(round) / parameters.full_round,
                                  parameters.least_round_share, 1.0);
  return std::max(1, static_cast<int>(states * share));
}

// Returns the size of a generation when no more states can be drawn.
int SlotsOfSmallSpace(const Parameters& parameters, int population, size_t states) {
  const int64_t slots = parameters.slots_per_state * static_cast<int64_t>(states + 1);
  return static_cast<int>(std::min<int64_t>(population, slots));
}

// Returns the number of measured schedules that are of use: so many begin a generation.
size_t MostMeasured(const Parameters& parameters) {
  const double of_generation =
      parameters.evolutionary_search_population * parameters.sample_init_use_measured_ratio;
  return std::max({static_cast<size_t>(kMostMeasured), static_cast<size_t>(of_generation),
                   static_cast<size_t>(parameters.max_elites)});
}

std::unique_ptr<Policy> Make(const Task& task, Parameters parameters, uint64_t seed,
                             const PolicyOptions& options) {
  SketchPolicyOptions sketch{.models = options.models,
                             .features =
                                 [&task](const schedule::State&, const ir::Program& program) {
                                   return features::ExtractFeatures(program, task.target,
                                                                    task.hardware, task.device);
                                 },
                             .min_own_results = options.min_own_results,
                             .one_of_many = options.one_of_many,
                             .threads = options.threads,
                             .allowance = options.allowance,
                             .rules = options.rules};
  return std::make_unique<SketchPolicy>(task, std::move(parameters), seed, std::move(sketch));
}

}  // namespace

constinit const PolicyKind kSketchXgb = {
    .name = "sketch.xgb",
    .what = "evolution of sketches, ranked by a model that learns from what is measured",
    .learned_model = "xgb",
    .uses_analytic_model = true,
    .takes_rules = true,
    .weighs_builds = true,
    .make = Make};

constinit const PolicyKind kSketchAnalytic = {
    .name = "sketch.analytic",
    .what = "the same, ranked by the analytic model always",
    .uses_analytic_model = true,
    .takes_rules = true,
    .weighs_builds = true,
    .make = Make};

SketchPolicy::SketchPolicy(const Task& task, Parameters parameters, uint64_t seed,
                           SketchPolicyOptions options)
    : task_(task),
      parameters_(std::move(parameters)),
      seed_(seed),
      options_(std::move(options)),
      sample_task_(SampleTask(task)),
      share_(options_.allowance == nullptr ? KeptAllowance::Share() : options_.allowance->Take()),
      sketches_(GenerateSketches({task_, parameters_, options_.rules})),
      measured_(MostMeasured(parameters_), static_cast<int>(sketches_.size()) * kUnitKinds) {}

const costmodel::CostModel* SketchPolicy::Ranker() const {
  const bool learned = options_.models.learned != nullptr && options_.models.learned->trained();
  if (!learned || own_results_ < options_.min_own_results) return options_.models.prior.get();
  const bool prior = options_.models.prior != nullptr && report_.round == parameters_.prior_round &&
                     own_results_ < parameters_.known_task_results;
  if (prior) return options_.models.prior.get();
  const bool blended = options_.models.blended != nullptr && report_.round % 2 == 0 &&
                       own_results_ < parameters_.well_known_task_results;
  return blended ? options_.models.blended.get() : options_.models.learned.get();
}

void SketchPolicy::LearnBuilds() {
  if (options_.models.builds == nullptr || built_.empty()) return;
  const double start = ThreadCpuSeconds();
  std::vector<costmodel::Built> built;
  built.reserve(built_.size());
  for (const UntoldBuild& untold : std::exchange(built_, {}))
    built.push_back({packer_.UnpackRows(untold.rows), untold.seconds});
  const Status status = options_.models.builds->Learn(std::move(built));
  if (!status.ok() && !task_.stop.stop_requested())
    LogWarn("the model of build times: {}", Message(status));
  training_s_ += ThreadCpuSeconds() - start;
}

bool SketchPolicy::WeighsBuilds() const {
  return options_.models.builds != nullptr && task_.target.is_gpu() && build_limit_.is_reached();
}

std::vector<double> SketchPolicy::BuildSeconds(std::span<const Individual> individuals) {
  const double start = ThreadCpuSeconds();
  std::vector<const FloatMatrix*> programs;
  programs.reserve(individuals.size());
  for (const Individual& individual : individuals) programs.push_back(individual.rows.get());
  std::vector<double> seconds = options_.models.builds->Seconds(programs);
  report_.seconds(Part::kPredict) += ThreadCpuSeconds() - start;
  return seconds;
}

void SketchPolicy::Train() {
  if (options_.models.learned == nullptr || pending_.empty()) return;
  const double start = ThreadCpuSeconds();
  std::vector<costmodel::Sample> samples;
  samples.reserve(pending_.size());
  for (Untold& untold : std::exchange(pending_, {})) {
    if (untold.rows) untold.sample.rows = packer_.UnpackRows(*untold.rows);
    samples.push_back(std::move(untold.sample));
  }
  const Status status = options_.models.learned->Update(std::move(samples));
  if (!status.ok() && !task_.stop.stop_requested())
    LogWarn("cost model {}: {}", options_.models.learned->name(), Message(status));
  training_s_ += ThreadCpuSeconds() - start;
}

std::vector<Individual> SketchPolicy::Draw(int count, int max_rejected, const Workers& workers,
                                           Hashes& seen) {
  std::vector<Individual> all;
  // Draws again for individuals that do not lower, as long as some do.
  while (static_cast<int>(all.size()) < count) {
    std::vector<Individual> drawn =
        DrawPopulation(workers, parameters_, sketches_, count - static_cast<int>(all.size()),
                       max_rejected, SplitSeed(seed_, draws_++), seen, report_);
    FillRows(workers, drawn, report_);
    if (drawn.empty()) break;
    std::move(drawn.begin(), drawn.end(), std::back_inserter(all));
  }
  return all;
}

bool SketchPolicy::IsEarly() const {
  return options_.one_of_many && own_results_ < kResultsForAllStates;
}

double SketchPolicy::ShareBesideBuilds(int n) const {
  if (!WeighsBuilds() || rows_of_state_ <= 0) return 1;
  const double states =
      parameters_.sample_init_population + parameters_.evolutionary_search_mutation_prob *
                                               parameters_.evolutionary_search_num_iters *
                                               parameters_.evolutionary_search_population;
  const double wanted_s = kSearchPerBuild * build_limit_.mean_s() * n;
  const double all_s = states * rows_of_state_ * kSecondsOfRow;
  return std::clamp(wanted_s / all_s, kLeastShareBesideBuilds, 1.0);
}

void SketchPolicy::NoteRows(std::span<const Individual> ranked) {
  double rows = 0;
  for (const Individual& individual : ranked) rows += individual.rows->rows();
  if (!ranked.empty()) rows_of_state_ = rows / static_cast<double>(ranked.size());
}

int SketchPolicy::StatesOf(int full, int n) const {
  const int all = InProportion(parameters_, full, n);
  if (task_.target.is_gpu()) {
    const int beside_builds = static_cast<int>(std::ceil(full * ShareBesideBuilds(n)));
    return std::min(beside_builds, IsEarly() ? (all + 1) / 2 : all);
  }
  const int parts = own_results_ < kCpuResultsForHalfOfStates ? 4
                    : own_results_ < kCpuResultsForAllStates  ? 2
                                                              : 1;
  const int64_t least = int64_t{kLeastStatesOfCandidate} * n;
  return static_cast<int>(std::min<int64_t>(all, std::max(CeilDiv(all, parts), least)));
}

double SketchPolicy::ShareByChance(const costmodel::CostModel* ranker) const {
  if (ranker != options_.models.prior.get()) return parameters_.eps_greedy;
  if (!IsEarly()) return parameters_.prior_eps_greedy;
  return std::min(parameters_.prior_eps_greedy, parameters_.eps_greedy);
}

void SketchPolicy::PreferGainPerSecond(size_t best, std::vector<Individual>& ranked,
                                       std::vector<int>& ranks) {
  ranks.resize(ranked.size());
  std::iota(ranks.begin(), ranks.end(), 1);
  if (!WeighsBuilds()) return;
  std::vector<double> scores;
  for (const Individual& individual : ranked) scores.push_back(individual.score);
  const std::vector<size_t> order =
      OrderByGainPerSecond(scores, BuildSeconds(ranked), build_limit_.other_s(), best);
  std::vector<Individual> ordered;
  ordered.reserve(ranked.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.push_back(std::move(ranked[order[i]]));
    ranks[i] = static_cast<int>(order[i]) + 1;
  }
  ranked = std::move(ordered);
}

// The niches of a sketch share its quota.
DiversityQuotas SketchPolicy::QuotasOf(int n, std::span<const Individual> ranked) const {
  const size_t niches = sketches_.size() * kUnitKinds;
  std::vector<int> kinds(sketches_.size());
  std::vector<bool> is_there(niches);
  const std::vector<double> best_s = measured_.BestOfNiches();
  for (const Individual& individual : ranked) {
    const std::optional<int> niche = individual.niche();
    if (!niche || is_there[*niche]) continue;
    is_there[*niche] = true;
    ++kinds[*individual.sketch];
  }
  const int enough = parameters_.*SpaceOf(task_.target).sketch_judged_trials;
  DiversityQuotas quotas{.most_for_least = static_cast<int>(std::ceil(n * kShareForLeast)),
                         .same_rows = measured_rows_};
  for (size_t i = 0; i < niches; ++i) {
    const int others = std::max(1, kinds[i / kUnitKinds]);
    const int measured = measured_.count_of_niche(static_cast<int>(i));
    const bool is_judged = best_s[i] > 0 && measured >= CeilDiv(enough, others);
    double least = parameters_.least_sketch_share / others, most = 1;
    if (is_judged) {
      const double speed = measured_.best_s() / best_s[i];
      least *= std::pow(speed, 3);
      if (measured >= parameters_.sketch_limited_trials && speed < parameters_.slow_sketch_speed)
        most = std::max(least, parameters_.slow_sketch_share *
                                   std::pow(speed / parameters_.slow_sketch_speed, 10));
    }
    const int of_round = static_cast<int>(std::floor(n * least + 0.5));
    const bool is_wanted = !is_judged && n * parameters_.least_sketch_share >= 0.5;
    quotas.least.push_back(is_wanted ? std::max(1, of_round) : of_round);
    quotas.most.push_back(static_cast<int>(std::ceil(n * most)));
  }
  return quotas;
}

std::vector<Individual> SketchPolicy::RankByPace(const costmodel::CostModel& model, int n,
                                                 const Workers& workers,
                                                 const std::vector<Individual>& drawn) {
  if (!WeighsBuilds()) return Rank(model, n, workers, drawn);
  const PaceModel pace(model, *options_.models.builds, build_limit_.other_s());
  std::vector<Individual> ranked = Rank(pace, n, workers, drawn);
  FillScores(model, ranked, report_);
  SortByScore(ranked);
  return ranked;
}

std::vector<Individual> SketchPolicy::TakeReserve() {
  std::vector<Individual> taken;
  taken.reserve(reserve_.size());
  for (const KeptSchedule& kept : reserve_) taken.push_back(packer_.Unpack(kept));
  reserve_.clear();
  return taken;
}

std::vector<Individual> SketchPolicy::Rank(const costmodel::CostModel& model, int n,
                                           const Workers& workers,
                                           const std::vector<Individual>& drawn) {
  const int population = StatesOf(parameters_.evolutionary_search_population, n);
  std::vector<Individual> first = measured_.Fastest(
      static_cast<size_t>(population * parameters_.sample_init_use_measured_ratio), true);
  first.insert(first.end(), drawn.begin(), drawn.end());
  std::vector<Individual> reserve = TakeReserve();
  first.insert(first.end(), std::make_move_iterator(reserve.begin()),
               std::make_move_iterator(reserve.end()));
  FillScores(model, first, report_);

  const bool small = static_cast<int>(drawn.size()) < parameters_.sample_init_min_population;
  const int slots = small ? SlotsOfSmallSpace(parameters_, population, first.size()) : population;
  const EvolutionInput input{.workers = workers,
                             .parameters = parameters_,
                             .sketches = sketches_,
                             .model = model,
                             .population = slots,
                             .keep = n + parameters_.sample_init_population,
                             .seed = SplitSeed(~seed_, static_cast<uint64_t>(report_.round))};
  // Few results have few elites: a tenth of the measured schedules.
  const int64_t elites = std::min<int64_t>(
      parameters_.max_elites, std::max<int64_t>(measured_.count() / 10, parameters_.min_elites));
  return Evolve(input, std::move(first), measured_.Fastest(static_cast<size_t>(elites), false),
                known_, report_);
}

std::optional<Individual> SketchPolicy::Transferred(const Observation& of_another) const {
  for (size_t i = 0; i < sketches_.size(); ++i) {
    const auto steps = TransferSteps(of_another.candidate.steps, sketches_[i]);
    if (!steps.ok()) continue;
    Drop why = Drop::kIllegal;
    StatusOr<schedule::State> state = Rebuild(task_, *steps, why);
    if (!state.ok()) continue;
    const std::optional<int> sketch = SketchOf(state->steps(), sketches_);
    // The steps may be only the beginning of a longer sketch, whose other stages would stay as they
    // are.
    if (sketch != static_cast<int>(i)) continue;
    Individual individual = MakeIndividual(
        *std::move(state), sketch, {.kind = Origin::kTransferred, .trial = of_another.trial});
    if (known_.contains(individual.hash)) return std::nullopt;
    return individual;
  }
  return std::nullopt;
}

void SketchPolicy::Suggest(std::span<const Observation> of_another) {
  for (const Observation& observation : of_another) {
    if (!suggested_.insert(observation.candidate.hash).second) continue;
    if (std::optional<Individual> individual = Transferred(observation)) {
      transferred_.push_back({*std::move(individual), observation.cost_s});
    }
  }
}

bool SketchPolicy::IsFasterThanOwn(double cost_s) const {
  return measured_.empty() || cost_s < measured_.best_s();
}

void SketchPolicy::ProposeTransferred(int n, const Workers& workers, Hashes& chosen,
                                      std::vector<Candidate>& candidates) {
  std::vector<Individual> individuals;
  std::vector<double> costs_s;
  for (Transfer& transfer : transferred_) {
    if (known_.contains(transfer.individual.hash)) continue;
    individuals.push_back(std::move(transfer.individual));
    costs_s.push_back(transfer.cost_s);
  }
  transferred_.clear();
  FillRows(workers, individuals, report_);
  const double share = own_results_ < kFewOwnResults ? parameters_.transferred_share_of_first_round
                                                     : parameters_.transferred_share;
  const int rounded = static_cast<int>(std::floor(n * share + 0.5));
  const int most = share > 0 ? std::max(1, rounded) : 0;  // a small round has one, too
  for (size_t i = 0; i < individuals.size(); ++i) {
    Individual& individual = individuals[i];
    if (static_cast<int>(candidates.size()) >= most || !IsFasterThanOwn(costs_s[i])) {
      reserve_.push_back(packer_.Pack(std::move(individual)));
    } else if (chosen.insert(individual.hash).second) {
      Accept(individual, 0, candidates);
    }
  }
}

void SketchPolicy::Accept(const Individual& individual, int rank,
                          std::vector<Candidate>& candidates) {
  known_.insert(individual.hash);
  in_flight_.emplace(individual.hash, packer_.Pack(individual));
  candidates.push_back({individual.steps, individual.hash, Describe(individual, task_.dag),
                        rank > 0 ? individual.score : kNoScore, rank});
}

void SketchPolicy::ChooseByChance(int n, const std::vector<Individual>& drawn, Hashes& chosen,
                                  std::vector<Candidate>& candidates) {
  std::vector<int> order(drawn.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  Rng rng(SplitSeed(seed_ + 1, static_cast<uint64_t>(report_.round)));
  Shuffle(rng, order);
  if (WeighsBuilds()) {
    const std::vector<bool> cheap = CheapHalf(BuildSeconds(drawn));
    std::ranges::stable_partition(order, [&](int i) { return cheap[static_cast<size_t>(i)]; });
  }
  for (int i : order) {
    if (n <= 0) return;
    if (!chosen.insert(drawn[i].hash).second) continue;
    Accept(drawn[i], 0, candidates);
    ++report_.proposed_by_chance;
    --n;
  }
}

// Picks elites of different shapes and sketches. Most elites are one shape of block in many orders
// of its loops, and of one sketch. The possible speed of the others is known only when their
// neighbours are measured, too.
std::vector<const Individual*> SketchPolicy::ProbedElites() const {
  std::vector<const Individual*> elites;
  Hashes shapes;
  std::vector<int> of_sketch(sketches_.size());
  for (const KeptSchedule& kept : measured_.fastest()) {
    const Individual& individual = kept.individual;
    if (std::ssize(elites) == parameters_.probed_elites ||
        *individual.cost_s > parameters_.probed_within * measured_.best_s())
      break;
    if (!individual.sketch || of_sketch[*individual.sketch] == parameters_.probed_per_sketch)
      continue;
    if (!shapes.insert(BlockShapesHash(individual)).second) continue;
    ++of_sketch[*individual.sketch];
    elites.push_back(&individual);
  }
  return elites;
}

std::vector<Individual> SketchPolicy::Neighbours(int n, const Workers& workers,
                                                 const Hashes& chosen) {
  const bool weighs_builds = WeighsBuilds();
  const int wanted = n;
  if (weighs_builds) n *= 2;
  const std::vector<MutationKind> kinds = MutationKinds(task_, parameters_);
  const std::vector<const Individual*> elites = ProbedElites();
  Rng rng(SplitSeed(seed_ + 2, static_cast<uint64_t>(report_.round)));
  Hashes made;
  std::vector<Individual> neighbours;
  for (int64_t tries = elites.empty() ? 0 : int64_t{n} * parameters_.tries_per_neighbour;
       tries > 0 && std::ssize(neighbours) < n; --tries) {
    if (task_.stop.stop_requested()) break;
    const Individual* two[] = {PickFrom(rng, elites), PickFrom(rng, elites)};
    const Individual& parent = two[0]->cost_s <= two[1]->cost_s ? *two[0] : *two[1];
    const Genome genome{parent.steps, sketches_[*parent.sketch].steps};
    const MutationKind kind =
        Chance(rng, parameters_.probe_tiles_prob) ? MutationKind::kTileSize : PickFrom(rng, kinds);
    auto mutation = MutateAs(kind, task_, parameters_, genome, rng);
    if (!mutation.ok()) continue;
    Drop why = Drop::kIllegal;
    StatusOr<schedule::State> state = Rebuild(task_, mutation->steps, why);
    if (!state.ok()) continue;
    Origin origin = parent.origin;
    origin.kind = Origin::kMutation;
    origin.mutation = mutation->kind;
    origin.step = mutation->step;
    origin.changes = 1;
    Individual individual = MakeIndividual(*std::move(state), parent.sketch, origin);
    if (known_.contains(individual.hash) || chosen.contains(individual.hash)) continue;
    if (made.insert(individual.hash).second) neighbours.push_back(std::move(individual));
  }
  FillRows(workers, neighbours, report_);
  if (!weighs_builds) return neighbours;
  const std::vector<bool> cheap = CheapHalf(BuildSeconds(neighbours));
  std::vector<Individual> of_cheap_builds;
  for (size_t i = 0; i < neighbours.size() && std::ssize(of_cheap_builds) < wanted; ++i) {
    if (cheap[i]) of_cheap_builds.push_back(std::move(neighbours[i]));
  }
  return of_cheap_builds;
}

StatusOr<std::vector<Candidate>> SketchPolicy::Propose(int n) {
  const double start = Clock::Real().MonotonicSeconds();
  report_ = {.round = report_.round + 1, .sketches = static_cast<int>(sketches_.size())};
  if (n <= 0) return std::vector<Candidate>();
  if (task_.stop.stop_requested()) return Cancelled("stopped");
  Train();
  measured_.SetMost(share_.Of(MostMeasured(parameters_)));
  LearnBuilds();
  report_.seconds(Part::kTrain) = std::exchange(training_s_, 0);
  const costmodel::CostModel* ranker = Ranker();
  const Workers workers(task_, options_.features, options_.threads);

  std::vector<Candidate> candidates;
  Hashes chosen;
  ProposeTransferred(n, workers, chosen, candidates);
  n -= static_cast<int>(candidates.size());
  Hashes seen = known_;
  for (const KeptSchedule& kept : reserve_) seen.insert(kept.individual.hash);
  const int population =
      std::min(parameters_.sample_init_population, parameters_.evolutionary_search_population);
  const int wanted = ranker == nullptr ? n : std::max(n, StatesOf(population, n));
  std::vector<Individual> drawn = Draw(wanted, parameters_.max_rejected_draws, workers, seen);

  const auto left = [&, all = n + candidates.size()] {
    return static_cast<int>(all - candidates.size());
  };
  if (ranker != nullptr) {
    report_.ranked_by = ranker->name();
    const int by_chance = static_cast<int>(std::floor(n * ShareByChance(ranker) + 0.5));
    std::vector<Individual> ranked = RankByPace(*ranker, n, workers, drawn);
    NoteRows(ranked);
    const double known = parameters_.*SpaceOf(task_.target).neighbours_from_results;
    const double share = parameters_.neighbour_share * std::min(1.0, own_results_ / known);
    const int beside = static_cast<int>(std::floor(n * share + 0.5));
    const int by_rank = n - by_chance - beside;
    std::vector<int> ranks;
    PreferGainPerSecond(static_cast<size_t>(std::max(0, by_rank) / kShareOfBest), ranked, ranks);
    const std::vector<int> best =
        ChooseDiverse(ranked, by_rank, parameters_, QuotasOf(n, ranked), report_);
    for (int i : best) {
      chosen.insert(ranked[i].hash);
      Accept(ranked[i], ranks[static_cast<size_t>(i)], candidates);
    }
    for (const Individual& neighbour : Neighbours(beside, workers, chosen)) {
      chosen.insert(neighbour.hash);
      Accept(neighbour, 0, candidates);
      ++report_.proposed_near_elites;
    }
    ChooseByChance(std::min(by_chance, left()), drawn, chosen, candidates);
    const size_t most_left_over =
        share_.Of(static_cast<size_t>(parameters_.sample_init_population));
    // If the random share found too few, the next best candidates fill the round.
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (chosen.contains(ranked[i].hash)) continue;
      if (left() > 0) {
        Accept(ranked[i], ranks[i], candidates);
      } else if (reserve_.size() < most_left_over) {
        reserve_.push_back(packer_.Pack(std::move(ranked[i])));
      }
    }
  } else {
    ChooseByChance(n, drawn, chosen, candidates);
  }
  if (task_.stop.stop_requested()) return Cancelled("stopped");
  report_.proposed = static_cast<int>(candidates.size());
  report_.wall_s = Clock::Real().MonotonicSeconds() - start;
  if (candidates.empty() && known_.empty()) {
    return FailedPrecondition("no sampled candidate is legal\n{}", PrintRound(report_));
  }
  return candidates;
}

costmodel::Sample SketchPolicy::SampleOf(const Individual& individual) const {
  costmodel::Sample sample{.rows = individual.rows,
                           .task = sample_task_,
                           .cost_s = individual.cost_s,
                           .id = individual.hash};
  const bool with_steps =
      options_.models.learned != nullptr && options_.models.learned->reads_steps();
  if (with_steps) sample.steps = schedule::PrintSteps(individual.steps);
  return sample;
}

void SketchPolicy::Tell(costmodel::Sample sample) {
  if (options_.models.learned == nullptr) return;
  Untold untold{.sample = std::move(sample)};
  if (untold.sample.rows != nullptr && untold.sample.rows->rows() > 0) {
    untold.rows = packer_.PackRows(*untold.sample.rows);
    untold.sample.rows = nullptr;
  }
  pending_.push_back(std::move(untold));
}

// A failed individual only teaches the model.
void SketchPolicy::Remember(Individual individual) {
  Tell(SampleOf(individual));
  ++own_results_;
  ++measured_rows_[RowsHash(individual)];
  if (individual.cost_s.has_value()) measured_.Add(std::move(individual));
}

void SketchPolicy::Correct(const Observation& observation) {
  std::optional<Individual> found = measured_.Take(observation.candidate.hash);
  if (!found) return;
  Individual individual = *std::move(found);
  individual.cost_s = CostOf(observation);
  const auto untold = std::ranges::find(pending_, individual.hash,
                                        [](const Untold& other) { return other.sample.id; });
  if (untold != pending_.end()) {
    untold->sample.cost_s = individual.cost_s;
  } else {
    costmodel::Sample correction = SampleOf(individual);
    correction.corrects = true;
    Tell(std::move(correction));
  }
  if (individual.cost_s.has_value()) measured_.Add(std::move(individual));
}

void SketchPolicy::Observe(std::span<const Observation> observations) {
  std::vector<Individual> individuals;
  for (const Observation& o : observations) {
    if (o.corrects) continue;
    known_.insert(o.candidate.hash);
    Individual individual;
    if (auto found = in_flight_.extract(o.candidate.hash); !found.empty()) {
      individual = packer_.Unpack(found.mapped());
    } else {
      individual.steps = o.candidate.steps;
      individual.hash = o.candidate.hash;
      individual.sketch = SketchOf(individual.steps, sketches_);
      individual.unit_kind = UnitKindOf(individual.steps);
    }
    individual.origin = {.kind = Origin::kMeasured,
                         .trial = o.record > 0 ? o.record : static_cast<int64_t>(o.trial),
                         .earlier = o.record > 0};
    individual.cost_s = CostOf(o);
    build_limit_.Note(o.awaited_build_s);
    // Only the candidates of a GPU are chosen by their builds.
    if (task_.target.is_gpu() && o.awaited_build_s.has_value() && individual.rows != nullptr)
      built_.push_back({packer_.PackRows(*individual.rows), *o.awaited_build_s});
    individuals.push_back(std::move(individual));
  }
  // Records of earlier runs have no rows yet. Individuals that do not lower teach nothing.
  FillRows(Workers(task_, options_.features, options_.threads), individuals, report_);
  for (Individual& individual : individuals) Remember(std::move(individual));
  for (const Observation& o : observations) {
    if (o.corrects) Correct(o);
  }
  // The next round of a task that is one of many comes minutes later, and its results take memory.
  if (!in_flight_.empty()) return;
  Train();
  LearnBuilds();
}

}  // namespace kiln::search
