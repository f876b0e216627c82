#include "search/evolution/evolution.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/numbers/integers.h"
#include "base/process/cpu_time.h"
#include "search/evolution/crossover.h"
#include "search/evolution/mutation.h"
#include "search/evolution/rebuild.h"

namespace kiln::search {
namespace {

// So many children are timed together, because the CPU time of a thread takes a system call.
constexpr int64_t kTimedTogether = 8;

bool Better(const Individual& a, const Individual& b) {
  return a.score != b.score ? a.score > b.score : a.hash < b.hash;
}

struct Child {
  std::optional<Individual> individual;
  bool crossed = false;
  std::vector<std::pair<Drop, Status>> drops;
};

class Breeder {
 public:
  Breeder(const EvolutionInput& input, const std::vector<Individual>& generation,
          const std::vector<Individual>& elites, const Hashes& seen)
      : input_(input), generation_(generation), elites_(elites), seen_(seen) {
    std::map<std::optional<int>, std::vector<const Individual*>> by_niche;
    for (const Individual& individual : generation)
      by_niche[individual.niche()].push_back(&individual);
    for (auto& [niche, members] : by_niche) niches_.push_back(std::move(members));
  }

  Child Breed(uint64_t seed) const {
    Rng rng(seed);
    Child child;
    for (int i = 0; i < input_.parameters.child_attempts && !child.individual.has_value(); ++i) {
      if (input_.workers.task.stop.stop_requested()) break;
      Try(rng, child);
    }
    return child;
  }

 private:
  // Draws the place of a tournament's winner among `size` individuals, the best first.
  size_t PickPlace(size_t size, Rng& rng) const {
    int64_t best = UniformInt(rng, static_cast<int64_t>(size));
    for (int i = 1; i < input_.parameters.tournament_size; ++i)
      best = std::min(best, UniformInt(rng, static_cast<int64_t>(size)));
    return static_cast<size_t>(best);
  }

  const Individual& PickParent(Rng& rng) const {
    if (niches_.size() > 1 && Chance(rng, input_.parameters.niche_prob)) {
      const std::vector<const Individual*>& niche = PickFrom(rng, niches_);
      return *niche[PickPlace(niche.size(), rng)];
    }
    const bool elite = !elites_.empty() &&
                       (generation_.empty() || Chance(rng, input_.parameters.measured_parent_prob));
    const std::vector<Individual>& all = elite ? elites_ : generation_;
    return all[PickPlace(all.size(), rng)];
  }

  void Try(Rng& rng, Child& child) const {
    const Individual& parent = PickParent(rng);
    if (Chance(rng, input_.parameters.crossover_prob)) {
      for (int i = 0; i < 4; ++i) {  // partners of the same sketch may be rare
        const Individual& other = PickParent(rng);
        if (!other.sketch || other.sketch != parent.sketch || other.hash == parent.hash) continue;
        auto steps = Cross(parent.steps, other.steps, input_.parameters, rng);
        if (!steps.ok()) continue;
        Origin origin = parent.origin;
        origin.kind = Origin::kCrossover;
        origin.other_trial = other.origin.trial;
        origin.other_earlier = other.origin.earlier;
        origin.changes = std::max(origin.changes, other.origin.changes) + 1;
        child.crossed = true;
        return Finish(parent, *steps, origin, child);
      }
    }
    const Genome genome{parent.steps, parent.sketch ? input_.sketches[*parent.sketch].steps
                                                    : std::span<const schedule::StepPtr>()};
    auto mutation = Mutate(input_.workers.task, input_.parameters, genome, rng);
    if (!mutation.ok()) return;
    Origin origin = parent.origin;
    origin.kind = Origin::kMutation;
    origin.mutation = mutation->kind;
    origin.step = mutation->step;
    ++origin.changes;
    child.crossed = false;
    Finish(parent, mutation->steps, origin, child);
  }

  // Refuses children with fewer threads than a warp, which waste a part of the warp, unless they
  // have as many as their parent.
  Status CheckWarp(std::span<const schedule::StepPtr> steps, const Individual& parent) const {
    const int64_t warp = input_.workers.task.hardware.warp_size;
    const std::optional<int64_t> threads = ThreadsOfTiles(steps);
    if (!threads.has_value() || *threads >= warp) return OkStatus();
    if (*threads >= ThreadsOfTiles(parent.steps).value_or(1)) return OkStatus();
    return FailedPrecondition("{} threads per block, fewer than a warp", *threads);
  }

  void Finish(const Individual& parent, std::span<const schedule::StepPtr> steps,
              const Origin& origin, Child& child) const {
    const auto drop = [&](Drop why, Status reason) {
      child.drops.emplace_back(why, std::move(reason));
    };
    if (seen_.contains(schedule::HashSteps(steps))) return drop(Drop::kDuplicate, OkStatus());
    if (Status warp = CheckWarp(steps, parent); !warp.ok())
      return drop(Drop::kThreads, std::move(warp));
    Drop why = Drop::kIllegal;
    StatusOr<schedule::State> state = Rebuild(input_.workers.task, steps, why);
    if (!state.ok()) return drop(why, state.status());
    Individual made = MakeIndividual(*std::move(state), parent.sketch, origin);
    if (seen_.contains(made.hash)) return drop(Drop::kDuplicate, OkStatus());
    child.individual = std::move(made);
  }

  const EvolutionInput& input_;
  const std::vector<Individual>& generation_;
  const std::vector<Individual>& elites_;
  const Hashes& seen_;
  std::vector<std::vector<const Individual*>> niches_;  // niches of the generation
};

// Returns distinct new individuals, in the order of their slots.
std::vector<Individual> BreedGeneration(const EvolutionInput& input, int number, int count,
                                        const std::vector<Individual>& generation,
                                        const std::vector<Individual>& elites, Hashes& seen,
                                        RoundReport& report) {
  const Breeder breeder(input, generation, elites, seen);
  std::vector<Child> children(count);
  std::vector<double> cpu_s(static_cast<size_t>(CeilDiv(count, kTimedTogether)));
  const uint64_t seed = SplitSeed(input.seed, number);
  input.workers.ForEach(std::ssize(cpu_s), [&](int64_t group) {
    const double start = ThreadCpuSeconds();
    const int64_t begin = group * kTimedTogether;
    for (int64_t i = begin; i < std::min<int64_t>(count, begin + kTimedTogether); ++i)
      children[i] = breeder.Breed(SplitSeed(seed, i));
    cpu_s[group] = ThreadCpuSeconds() - start;
  });
  for (const double seconds : cpu_s) report.seconds(Part::kChange) += seconds;
  std::vector<Individual> made;
  for (Child& child : children) {
    for (const auto& [why, reason] : child.drops) report.AddDrop(why, reason);
    if (!child.individual.has_value()) continue;
    if (!seen.insert(child.individual->hash).second) {
      ++report.count(Drop::kDuplicate);
      continue;
    }
    ++(child.crossed ? report.crossed : report.mutated);
    made.push_back(*std::move(child.individual));
  }
  return made;
}

// Adds the individuals that are not known to `best`, and cuts `best` to those that are kept.
void KeepBest(const EvolutionInput& input, const std::vector<Individual>& from, const Hashes& known,
              std::vector<Individual>& best) {
  for (const Individual& individual : from) {
    if (!known.contains(individual.hash)) best.push_back(individual);
  }
  SortByScore(best);
  CutToBest(static_cast<size_t>(input.keep), input.parameters.niche_survivors, best);
}

}  // namespace

void CutToBest(size_t most, int least, std::vector<Individual>& sorted) {
  if (sorted.size() <= most) return;
  std::map<std::optional<int>, int> kept;
  size_t end = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (kept[sorted[i].niche()]++ >= least && i >= most) continue;
    if (end != i) sorted[end] = std::move(sorted[i]);
    ++end;
  }
  sorted.erase(sorted.begin() + static_cast<std::ptrdiff_t>(end), sorted.end());
}

void SortByScore(std::vector<Individual>& individuals) {
  std::sort(individuals.begin(), individuals.end(), Better);
}

std::vector<Individual> Evolve(const EvolutionInput& input, std::vector<Individual> first,
                               const std::vector<Individual>& elites, const Hashes& known,
                               RoundReport& report) {
  Hashes seen = known;
  for (const Individual& individual : first) seen.insert(individual.hash);
  std::vector<Individual> generation = std::move(first), best;
  SortByScore(generation);
  KeepBest(input, generation, known, best);
  const int changed = static_cast<int>(
      std::ceil(input.population * input.parameters.evolutionary_search_mutation_prob));
  for (int number = 0; number < input.parameters.evolutionary_search_num_iters; ++number) {
    if (generation.empty() && elites.empty()) break;
    if (input.workers.task.stop.stop_requested()) break;
    std::vector<Individual> made =
        BreedGeneration(input, number, changed, generation, elites, seen, report);
    if (made.empty()) break;
    FillRows(input.workers, made, report);
    FillScores(input.model, made, report);
    KeepBest(input, made, known, best);
    const int survivors = std::max(0, input.population - changed);
    CutToBest(static_cast<size_t>(survivors),
              survivors / (2 * std::max<int>(1, static_cast<int>(input.sketches.size()))),
              generation);
    generation.insert(generation.end(), std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
    SortByScore(generation);
  }
  if (!generation.empty()) {
    report.best_score = generation.front().score;
    report.median_score = generation[generation.size() / 2].score;
  }
  return best;
}

}  // namespace kiln::search
