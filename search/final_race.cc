#include "search/final_race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::search {
namespace {

// Single short readings are this far from the truth at most, as a factor.
constexpr double kWorthALook = 1.25;

}  // namespace

std::vector<int> ChooseFinalists(std::span<const double> costs_s, int most) {
  std::vector<int> chosen;
  for (size_t i = 0; i < costs_s.size(); ++i) {
    if (costs_s[i] > 0) chosen.push_back(static_cast<int>(i));
  }
  std::sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return costs_s[a] < costs_s[b] || (costs_s[a] == costs_s[b] && a < b);
  });
  if (static_cast<int>(chosen.size()) > most) chosen.resize(std::max(0, most));
  if (chosen.empty()) return chosen;
  const double limit_s = kWorthALook * costs_s[chosen[0]];
  while (costs_s[chosen.back()] > limit_s) chosen.pop_back();
  return chosen;
}

FinalRace::FinalRace(int entries, const Options& options) : options_(options), entries_(entries) {}

std::vector<int> FinalRace::NextRound() {
  if (round_ >= options_.rounds_for_all) LetHopelessLeave();
  std::vector<int> order;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].failed && !entries_[i].left) order.push_back(static_cast<int>(i));
  }
  const bool over =
      round_ >= options_.rounds || (order.size() < 2 && round_ >= options_.rounds_for_all);
  if (over) return {};
  // Nobody always follows the same rival.
  if (round_ % 2 == 1) std::reverse(order.begin(), order.end());
  ++round_;
  return order;
}

void FinalRace::Add(int entry, std::span<const double> costs_s) {
  std::vector<double>& all = entries_[entry].costs_s;
  all.insert(all.end(), costs_s.begin(), costs_s.end());
}

void FinalRace::Disqualify(int entry) {
  entries_[entry].failed = true;
  entries_[entry].costs_s.clear();
}

int FinalRace::best() const {
  int best = -1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].failed || entries_[i].costs_s.empty()) continue;
    const int entry = static_cast<int>(i);
    if (best < 0 || median(entry).cost_s < median(best).cost_s) best = entry;
  }
  return best;
}

void FinalRace::LetHopelessLeave() {
  const int leader = best();
  if (leader < 0) return;
  const MedianCost first = median(leader);
  if (first.confidence_s == 0) return;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const MedianCost own = median(static_cast<int>(i));
    if (static_cast<int>(i) == leader || own.confidence_s == 0) continue;
    if (own.cost_s - own.confidence_s > first.cost_s + first.confidence_s) entries_[i].left = true;
  }
}

}  // namespace kiln::search
