#include "search/sketch_policy.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/cpu_time.h"
#include "base/log.h"
#include "search/choose.h"
#include "search/evolution.h"
#include "search/population.h"
#include "search/rebuild.h"
#include "search/samples.h"

namespace kiln::search {
namespace {

// Of a sketch: then its share of a round follows its best time. A GPU has twice the sketches, so
// each takes from the others; a CPU's are ranked worse, and cost a good one its chance.
constexpr int kTrialsToJudgeOnGpu = 10, kTrialsToJudgeOnCpu = 24;
// A slower one then has an upper limit too, less the slower it is: models may take long to believe
// it.
constexpr int kTrialsToLimit = 48;
constexpr double kAsFast = 0.95, kSlowSketchShare = 0.25;
// The reserve is as large as what a round draws anew; leaders are few: the tenth part of what was
// measured.
constexpr size_t kMostLeaders = 64, kFewestLeaders = 8;
// The round that a model trained on other tasks leaves to the draft, and how many results of the
// task itself make that needless.
constexpr int kDraftRound = 2, kTaskIsKnown = 64;
// And how many make it needless to doubt the model.
constexpr int kTaskIsWellKnown = 256;
// Of neighbours that are measured whatever the model says.
constexpr int kProbedLeaders = 12, kProbedOfSketch = 5;
constexpr double kProbedWithin = 1.15;  // of the fastest
constexpr int kTriesPerNeighbour = 16;
// Results from which on leaders are worth their full share of a round: the first are not the last.
constexpr double kLeadersAreKnownOnGpu = 200, kLeadersAreKnownOnCpu = 32;
constexpr double kProbeTiles = 0.4;  // that the change is one of tiles
// A space of which no more can be drawn gets so many slots of a generation per schedule known.
constexpr int kSlotsPerState = 16;
// A round of fewer candidates looks at fewer states, so that the search of a short job takes no
// longer than its builds; never at less than an eighth.
constexpr int kFullRound = 16;
constexpr double kLeastOfFull = 0.125;

int InProportion(int states, int round) {
  const double share = std::clamp(static_cast<double>(round) / kFullRound, kLeastOfFull, 1.0);
  return std::max(1, static_cast<int>(states * share));
}

}  // namespace

SketchPolicy::SketchPolicy(const Task& task, Parameters parameters, uint64_t seed,
                           SketchPolicyOptions options)
    : task_(task),
      parameters_(std::move(parameters)),
      seed_(seed),
      options_(std::move(options)),
      sample_task_(SampleTask(task)) {
  sketches_ = GenerateSketches({task_, parameters_});
}

const costmodel::CostModel* SketchPolicy::Ranker() const {
  const bool learned = options_.models.learned != nullptr && options_.models.learned->trained();
  if (!learned || own_results_ < options_.min_own_results) return options_.models.draft.get();
  const bool drafts = options_.models.draft != nullptr && report_.round == kDraftRound &&
                      own_results_ < kTaskIsKnown;
  if (drafts) return options_.models.draft.get();
  const bool half_way = options_.models.half_way != nullptr && report_.round % 2 == 0 &&
                        own_results_ < kTaskIsWellKnown;
  return half_way ? options_.models.half_way.get() : options_.models.learned.get();
}

void SketchPolicy::Train() {
  if (options_.models.learned == nullptr || pending_.empty()) return;
  const double start = ThreadCpuSeconds();
  const Status status = options_.models.learned->Update(std::exchange(pending_, {}));
  if (!status.ok() && !task_.stop.stop_requested())
    LogWarn("cost model {}: {}", options_.models.learned->name(), Message(status));
  report_.seconds(Part::kTrain) += ThreadCpuSeconds() - start;
}

std::vector<Individual> SketchPolicy::Draw(int count, int max_futile, const Workers& workers,
                                           Hashes& seen) {
  std::vector<Individual> all;
  // Those that do not lower are made up for, as long as some do.
  while (static_cast<int>(all.size()) < count) {
    std::vector<Individual> drawn =
        DrawPopulation(workers, parameters_, sketches_, count - static_cast<int>(all.size()),
                       max_futile, SplitSeed(seed_, draws_++), seen, report_);
    FillRows(workers, drawn, report_);
    if (drawn.empty()) break;
    std::move(drawn.begin(), drawn.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Individual> SketchPolicy::Leaders(size_t most) const {
  return {measured_.begin(),
          measured_.begin() + static_cast<std::ptrdiff_t>(std::min(most, measured_.size()))};
}

Crowds SketchPolicy::CrowdsOf(int n) const {
  std::vector<int> measured(sketches_.size());
  std::vector<double> best_s(sketches_.size());
  for (const Individual& individual : measured_) {  // the fastest first
    if (individual.sketch < 0) continue;
    if (measured[individual.sketch]++ == 0) best_s[individual.sketch] = individual.cost_s;
  }
  const int enough = task_.target.is_gpu() ? kTrialsToJudgeOnGpu : kTrialsToJudgeOnCpu;
  Crowds crowds{.same_rows = measured_rows_};
  for (size_t i = 0; i < sketches_.size(); ++i) {
    double least = parameters_.least_sketch_share, most = 1;
    if (measured[i] >= enough) {
      const double speed = measured_[0].cost_s / best_s[i];
      least *= std::pow(speed, 3);
      if (measured[i] >= kTrialsToLimit && speed < kAsFast)
        most = std::max(least, kSlowSketchShare * std::pow(speed / kAsFast, 10));
    }
    crowds.least.push_back(static_cast<int>(std::floor(n * least + 0.5)));
    crowds.most.push_back(static_cast<int>(std::ceil(n * most)));
  }
  return crowds;
}

std::vector<Individual> SketchPolicy::Rank(const costmodel::CostModel& model, int n,
                                           const Workers& workers,
                                           const std::vector<Individual>& drawn) {
  const int population = InProportion(parameters_.evolutionary_search_population, n);
  std::vector<Individual> first =
      Leaders(static_cast<size_t>(population * parameters_.sample_init_use_measured_ratio));
  first.insert(first.end(), drawn.begin(), drawn.end());
  first.insert(first.end(), std::make_move_iterator(reserve_.begin()),
               std::make_move_iterator(reserve_.end()));
  reserve_.clear();
  FillScores(model, first, report_);

  const bool small = static_cast<int>(drawn.size()) < parameters_.sample_init_min_population;
  const int slots = small
                        ? std::min(population, kSlotsPerState * static_cast<int>(first.size() + 1))
                        : population;
  const EvolutionInput input{.workers = workers,
                             .parameters = parameters_,
                             .sketches = sketches_,
                             .model = model,
                             .population = slots,
                             .keep = n + parameters_.sample_init_population,
                             .seed = SplitSeed(~seed_, static_cast<uint64_t>(report_.round))};
  const size_t leaders = std::clamp(measured_.size() / 10, kFewestLeaders, kMostLeaders);
  return Evolve(input, std::move(first), Leaders(leaders), known_, report_);
}

void SketchPolicy::Accept(const Individual& individual, int rank,
                          std::vector<Candidate>& candidates) {
  known_.insert(individual.hash);
  in_flight_.emplace(individual.hash, individual);
  candidates.push_back({individual.steps, individual.hash, Describe(individual, task_.dag),
                        rank > 0 ? individual.score : kNoScore, rank});
}

void SketchPolicy::ChooseByChance(int n, const std::vector<Individual>& drawn, Hashes& chosen,
                                  std::vector<Candidate>& candidates) {
  std::vector<int> order(drawn.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  Rng rng(SplitSeed(seed_ + 1, static_cast<uint64_t>(report_.round)));
  Shuffle(rng, order);
  for (int i : order) {
    if (n <= 0) return;
    if (!chosen.insert(drawn[i].hash).second) continue;
    Accept(drawn[i], 0, candidates);
    ++report_.proposed_by_chance;
    --n;
  }
}

// Leaders are mostly one shape of block in many orders of its loops, and of one sketch: how fast
// the others could be is known when their neighbours are, too.
std::vector<const Individual*> SketchPolicy::ProbedLeaders() const {
  std::vector<const Individual*> leaders;
  Hashes shapes;
  std::vector<int> of_sketch(sketches_.size());
  for (const Individual& individual : measured_) {
    if (std::ssize(leaders) == kProbedLeaders ||
        individual.cost_s > kProbedWithin * measured_[0].cost_s)
      break;
    if (individual.sketch < 0 || of_sketch[individual.sketch] == kProbedOfSketch) continue;
    if (!shapes.insert(BlockShapesHash(individual)).second) continue;
    ++of_sketch[individual.sketch];
    leaders.push_back(&individual);
  }
  return leaders;
}

std::vector<Individual> SketchPolicy::Neighbours(int n, const Workers& workers,
                                                 const Hashes& chosen) {
  const std::vector<MutationKind> kinds = MutationKinds(task_.target.is_gpu());
  const std::vector<const Individual*> leaders = ProbedLeaders();
  Rng rng(SplitSeed(seed_ + 2, static_cast<uint64_t>(report_.round)));
  Hashes made;
  std::vector<Individual> neighbours;
  for (int tries = leaders.empty() ? 0 : n * kTriesPerNeighbour;
       tries > 0 && std::ssize(neighbours) < n; --tries) {
    if (task_.stop.stop_requested()) break;
    const Individual* two[] = {PickFrom(rng, leaders), PickFrom(rng, leaders)};
    const Individual& parent = two[0]->cost_s <= two[1]->cost_s ? *two[0] : *two[1];
    const Genome genome{parent.steps, sketches_[parent.sketch].steps};
    const MutationKind kind =
        Chance(rng, kProbeTiles) ? MutationKind::kTileSize : PickFrom(rng, kinds);
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
  return neighbours;
}

StatusOr<std::vector<Candidate>> SketchPolicy::Propose(int n) {
  const double start = Clock::Real().MonotonicSeconds();
  report_ = {.round = report_.round + 1, .sketches = static_cast<int>(sketches_.size())};
  if (n <= 0) return std::vector<Candidate>();
  if (task_.stop.stop_requested()) return Cancelled("stopped");
  Train();
  const costmodel::CostModel* ranker = Ranker();
  const Workers workers(task_, options_.features, options_.threads);

  Hashes seen = known_;
  for (const Individual& individual : reserve_) seen.insert(individual.hash);
  const int population =
      std::min(parameters_.sample_init_population, parameters_.evolutionary_search_population);
  const int wanted = ranker == nullptr ? n : std::max(n, InProportion(population, n));
  std::vector<Individual> drawn = Draw(wanted, parameters_.max_futile_samples, workers, seen);

  std::vector<Candidate> candidates;
  Hashes chosen;
  if (ranker != nullptr) {
    report_.ranked_by = ranker->name();
    const double eps = ranker == options_.models.draft.get() ? parameters_.draft_eps_greedy
                                                             : parameters_.eps_greedy;
    const int by_chance = static_cast<int>(std::floor(n * eps + 0.5));
    std::vector<Individual> ranked = Rank(*ranker, n, workers, drawn);
    const double known = task_.target.is_gpu() ? kLeadersAreKnownOnGpu : kLeadersAreKnownOnCpu;
    const double share = parameters_.neighbour_share * std::min(1.0, own_results_ / known);
    const int beside = static_cast<int>(std::floor(n * share + 0.5));
    const std::vector<int> best =
        ChooseDiverse(ranked, n - by_chance - beside, parameters_, CrowdsOf(n), report_);
    for (int i : best) {
      chosen.insert(ranked[i].hash);
      Accept(ranked[i], i + 1, candidates);
    }
    for (const Individual& neighbour : Neighbours(beside, workers, chosen)) {
      chosen.insert(neighbour.hash);
      Accept(neighbour, 0, candidates);
      ++report_.proposed_beside_leaders;
    }
    ChooseByChance(std::min(by_chance, n - static_cast<int>(candidates.size())), drawn, chosen,
                   candidates);
    // What the random share did not find is made up by the next best ones.
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (chosen.contains(ranked[i].hash)) continue;
      if (static_cast<int>(candidates.size()) < n) {
        Accept(ranked[i], static_cast<int>(i) + 1, candidates);
      } else if (static_cast<int>(reserve_.size()) < parameters_.sample_init_population) {
        reserve_.push_back(std::move(ranked[i]));
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

// A failed one teaches the model alone.
void SketchPolicy::Remember(Individual individual) {
  pending_.push_back({individual.rows, sample_task_, individual.cost_s});
  ++own_results_;
  ++measured_rows_[RowsHash(individual)];
  if (individual.cost_s > 0) AddMeasured(std::move(individual));
}

// Keeps measured_ sorted.
void SketchPolicy::AddMeasured(Individual individual) {
  const auto place = std::upper_bound(
      measured_.begin(), measured_.end(), individual,
      [](const Individual& a, const Individual& b) { return a.cost_s < b.cost_s; });
  measured_.insert(place, std::move(individual));
}

void SketchPolicy::Correct(const Observation& observation) {
  const auto found = std::find_if(measured_.begin(), measured_.end(), [&](const Individual& known) {
    return known.hash == observation.candidate.hash;
  });
  if (found == measured_.end()) return;
  Individual individual = std::move(*found);
  measured_.erase(found);
  individual.cost_s = observation.valid ? observation.cost_s : 0;
  const auto untold = std::ranges::find(pending_, individual.rows, &costmodel::Sample::rows);
  if (untold != pending_.end()) {
    untold->cost_s = individual.cost_s;
  } else {
    pending_.push_back({individual.rows, sample_task_, individual.cost_s});
    pending_.back().corrects = true;
  }
  if (individual.cost_s > 0) AddMeasured(std::move(individual));
}

void SketchPolicy::Observe(std::span<const Observation> observations) {
  std::vector<Individual> individuals;
  for (const Observation& o : observations) {
    if (o.corrects) continue;
    known_.insert(o.candidate.hash);
    Individual individual;
    if (auto found = in_flight_.extract(o.candidate.hash); !found.empty()) {
      individual = std::move(found.mapped());
    } else {
      individual.steps = o.candidate.steps;
      individual.hash = o.candidate.hash;
      individual.sketch = SketchOf(individual.steps, sketches_);
    }
    individual.origin = {.kind = Origin::kMeasured,
                         .trial = o.record > 0 ? o.record : static_cast<int64_t>(o.trial),
                         .earlier = o.record > 0};
    individual.cost_s = o.valid && std::isfinite(o.cost_s) ? std::max(o.cost_s, 0.0) : 0;
    individuals.push_back(std::move(individual));
  }
  // Records of earlier runs have no rows yet; those that do not lower teach nothing.
  FillRows(Workers(task_, options_.features, options_.threads), individuals, report_);
  for (Individual& individual : individuals) Remember(std::move(individual));
  for (const Observation& o : observations) {
    if (o.corrects) Correct(o);
  }
}

}  // namespace kiln::search
