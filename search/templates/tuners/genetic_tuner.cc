#include "search/templates/tuners/genetic_tuner.h"

#include <algorithm>

namespace kiln::search {
namespace {

constexpr double kMinWeight = 1e-8;    // relative to the best; lets failed points be parents, too
constexpr int kMutationsOfOne = 1000;  // until a child is new

}  // namespace

GeneticTuner::GeneticTuner(const ConfigSpace& space, uint64_t seed, const GeneticOptions& options)
    : space_(space), options_(options), visited_(space), rng_(seed) {
  for (int i = 0; i < options_.population; ++i) {
    const std::optional<int64_t> index = visited_.RandomOther(rng_);
    if (!index) break;
    visited_.Insert(*index);
    queue_.push_back(*index);
  }
}

void GeneticTuner::Tell(int64_t index, double throughput) {
  visited_.Insert(index);
  std::erase(queue_, index);
  std::erase_if(elites_, [&](const Measured& elite) { return elite.index == index; });
  const auto known = std::ranges::find(measured_, index, &Measured::index);
  if (known == measured_.end()) {
    measured_.push_back({index, throughput});
  } else {
    known->throughput = throughput;
  }
  const auto place = std::ranges::find_if(
      elites_, [&](const Measured& elite) { return elite.throughput < throughput; });
  elites_.insert(place, {index, throughput});
  if (std::ssize(elites_) > options_.elites) elites_.pop_back();
}

std::optional<int64_t> GeneticTuner::Child(std::span<const Measured> parents,
                                           std::span<const double> weights) {
  const int64_t first = PickWeighted(rng_, weights);
  int64_t second = PickWeighted(rng_, weights);
  while (second == first) second = UniformInt(rng_, std::ssize(parents));
  std::vector<int> child = space_.Digits(parents[static_cast<size_t>(first)].index);
  const std::vector<int> other = space_.Digits(parents[static_cast<size_t>(second)].index);
  const auto place = UniformInt(rng_, std::ssize(child));
  std::copy(other.begin() + place, other.end(), child.begin() + place);
  const auto mutate = [&](size_t knob) {
    child[knob] = static_cast<int>(UniformInt(rng_, space_.knobs()[knob].size()));
  };
  for (size_t knob = 0; knob < child.size(); ++knob) {
    if (Chance(rng_, options_.mutation_probability)) mutate(knob);
  }
  for (int i = 0; i < kMutationsOfOne; ++i) {
    const int64_t index = space_.Index(child);
    if (!visited_.Contains(index) && space_.IsValid(index)) return index;
    mutate(static_cast<size_t>(UniformInt(rng_, std::ssize(child))));
  }
  return std::nullopt;
}

void GeneticTuner::Breed() {
  std::vector<Measured> parents = measured_;
  for (const Measured& elite : elites_) {
    if (std::ranges::find(parents, elite.index, &Measured::index) == parents.end())
      parents.push_back(elite);
  }
  if (parents.size() < 2 || space_.knobs().empty()) return;
  double best = 0;
  for (const Measured& parent : parents) best = std::max(best, parent.throughput);
  std::vector<double> weights;
  for (const Measured& parent : parents)
    weights.push_back((best > 0 ? parent.throughput / best : 0) + kMinWeight);
  for (int i = 0; i < options_.population; ++i) {
    const std::optional<int64_t> child = Child(parents, weights);
    if (!child) break;
    visited_.Insert(*child);
    queue_.push_back(*child);
  }
  measured_.clear();
}

std::optional<int64_t> GeneticTuner::Next() {
  if (queue_.empty()) Breed();
  if (queue_.empty()) {  // there are no results yet, or no child is new
    const std::optional<int64_t> index = visited_.RandomOther(rng_);
    if (index) visited_.Insert(*index);
    return index;
  }
  const int64_t index = queue_.front();
  queue_.pop_front();
  return index;
}

}  // namespace kiln::search
