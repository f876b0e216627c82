#include "search/tuning/final_race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::search {
namespace {

constexpr int kTrialsPerFinalist = 8;

}  // namespace

int MaxFinalists(int asked, int trials) {
  return std::min(asked, std::max(2, trials / kTrialsPerFinalist));
}

std::vector<int> ChooseFinalists(std::span<const double> costs_s, int most) {
  std::vector<int> chosen(costs_s.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  std::sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return costs_s[a] < costs_s[b] || (costs_s[a] == costs_s[b] && a < b);
  });
  if (static_cast<int>(chosen.size()) > most) chosen.resize(std::max(0, most));
  if (chosen.empty()) return chosen;
  const double limit_s = kFinalistMargin * costs_s[chosen[0]];
  while (costs_s[chosen.back()] > limit_s) chosen.pop_back();
  return chosen;
}

FinalRace::FinalRace(int entries, const Options& options) : options_(options), entries_(entries) {}

void FinalRace::Restore(int entry, std::span<const double> values_s, int readings) {
  readings_.Restore(entry, values_s, readings);
}

std::vector<int> FinalRace::NextRound() {
  DropSlow();
  std::vector<int> order;
  int fewest = options_.times_if_noisy * options_.rounds;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].failed || entries_[i].left) continue;
    order.push_back(static_cast<int>(i));
    fewest = std::min(fewest, readings_.blocks(static_cast<int>(i)));
  }
  const int needed = RoundsNeeded(order.size());
  if (fewest >= needed || round_ >= needed) return {};
  // The order is reversed each time, so that no entry always follows the same rival.
  if (round_ % 2 == 1) std::reverse(order.begin(), order.end());
  ++round_;
  readings_.BeginRound();
  return order;
}

int FinalRace::RoundsNeeded(size_t racing) const {
  const int needed = racing < 2 ? options_.rounds_for_all : options_.rounds;
  const std::optional<int> first = best();
  if (!first.has_value()) return needed;
  const MedianCost known = median(*first);
  const bool is_noisy = known.confidence_s > options_.noisy_share * known.cost_s;
  return is_noisy ? options_.times_if_noisy * needed : needed;
}

void FinalRace::Add(int entry, std::span<const double> costs_s) { readings_.Add(entry, costs_s); }

void FinalRace::Disqualify(int entry) {
  entries_[entry].failed = true;
  readings_.Forget(entry);
}

std::optional<int> FinalRace::best() const {
  std::optional<int> best;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const int entry = static_cast<int>(i);
    if (entries_[i].failed || values_s(entry).empty()) continue;
    if (!best || median(entry).cost_s < median(*best).cost_s) best = entry;
  }
  return best;
}

void FinalRace::DropSlow() {
  const std::optional<int> elite = best();
  if (!elite || readings_.blocks(*elite) < options_.rounds_for_all) return;
  const MedianCost first = median(*elite);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const int entry = static_cast<int>(i);
    if (entry == elite || readings_.blocks(entry) < options_.rounds_for_all) continue;
    const MedianCost own = median(entry);
    if (first.confidence_s == 0 || own.confidence_s == 0) continue;
    if (own.cost_s - own.confidence_s > first.cost_s + first.confidence_s) entries_[i].left = true;
  }
}

}  // namespace kiln::search
