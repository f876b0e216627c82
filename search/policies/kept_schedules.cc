#include "search/policies/kept_schedules.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kiln::search {

KeptSchedule SchedulePacker::Pack(Individual individual) {
  KeptSchedule kept{.individual = std::move(individual), .rows = {}};
  kept.rows = PackRows(*kept.individual.rows);
  kept.individual.rows.reset();
  return kept;
}

Individual SchedulePacker::Unpack(const KeptSchedule& kept) const {
  Individual individual = kept.individual;
  individual.rows = UnpackRows(kept.rows);
  return individual;
}

std::shared_ptr<const FloatMatrix> SchedulePacker::UnpackRows(const PackedRows& rows) const {
  return std::make_shared<const FloatMatrix>(rows_.Unpack(rows));
}

MeasuredSchedules::MeasuredSchedules(size_t most, int niches)
    : most_(most), niches_(static_cast<size_t>(niches)) {}

void MeasuredSchedules::Add(Individual individual) {
  ++count_;
  if (const std::optional<int> niche = individual.niche()) ++niches_[static_cast<size_t>(*niche)];
  const auto place = std::upper_bound(kept_.begin(), kept_.end(), individual.cost_s,
                                      [](std::optional<double> cost_s, const KeptSchedule& other) {
                                        return cost_s < other.individual.cost_s;
                                      });
  kept_.insert(place, packer_.Pack(std::move(individual)));
  Drop();
}

void MeasuredSchedules::SetMost(size_t most) {
  most_ = most;
  Drop();
}

void MeasuredSchedules::Drop() {
  if (kept_.size() <= most_) return;
  std::vector<int> kept_of(niches_.size());
  for (const KeptSchedule& kept : kept_) {
    if (const std::optional<int> niche = kept.individual.niche())
      ++kept_of[static_cast<size_t>(*niche)];
  }
  for (size_t i = kept_.size(); i-- > 0 && kept_.size() > most_;) {
    if (const std::optional<int> niche = kept_[i].individual.niche()) {
      int& others = kept_of[static_cast<size_t>(*niche)];
      if (others == 1) continue;
      --others;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::optional<Individual> MeasuredSchedules::Take(uint64_t hash) {
  const auto found = std::ranges::find_if(
      kept_, [&](const KeptSchedule& kept) { return kept.individual.hash == hash; });
  if (found == kept_.end()) return std::nullopt;
  Individual individual = packer_.Unpack(*found);
  kept_.erase(found);
  --count_;
  if (const std::optional<int> niche = individual.niche()) --niches_[static_cast<size_t>(*niche)];
  return individual;
}

std::vector<double> MeasuredSchedules::BestOfNiches() const {
  std::vector<double> best_s(niches_.size());
  for (const KeptSchedule& kept : kept_) {
    const std::optional<int> niche = kept.individual.niche();
    if (!niche) continue;
    double& best = best_s[static_cast<size_t>(*niche)];
    if (best == 0) best = *kept.individual.cost_s;
  }
  return best_s;
}

std::vector<Individual> MeasuredSchedules::Fastest(size_t most, bool with_rows) const {
  std::vector<Individual> fastest;
  fastest.reserve(std::min(most, kept_.size()));
  for (size_t i = 0; i < std::min(most, kept_.size()); ++i)
    fastest.push_back(with_rows ? packer_.Unpack(kept_[i]) : kept_[i].individual);
  return fastest;
}

}  // namespace kiln::search
