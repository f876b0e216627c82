#include "search/tuning/objective.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

namespace kiln::search {
namespace {

constexpr std::pair<std::string_view, ObjectiveKind> kNames[] = {
    {"weighted-sum", ObjectiveKind::kWeightedSum},
    {"geometric-mean", ObjectiveKind::kGeometricMean},
    {"max", ObjectiveKind::kMax}};

// Groups that count as one latency: those of a network, or a group without a network.
struct Unit {
  std::vector<int> groups;
  double share = 1;  // in the geometric mean
};

class Combination {
 public:
  Combination(ObjectiveKind kind, const std::vector<VariantGroup>& groups, double target_s)
      : kind_(kind), target_s_(target_s) {
    std::map<std::string, int> networks;
    for (size_t i = 0; i < groups.size(); ++i) {
      const VariantGroup& group = groups[i];
      const bool alone = group.network.empty();
      int unit = static_cast<int>(units_.size());
      if (!alone) unit = networks.emplace(group.network, unit).first->second;
      if (unit == static_cast<int>(units_.size())) units_.emplace_back();
      units_[unit].groups.push_back(static_cast<int>(i));
      // The geometric mean counts a group without a network `weight` times, instead of making its
      // latency longer.
      const bool counted = alone && kind == ObjectiveKind::kGeometricMean;
      if (counted) units_[unit].share = group.weight;
      weights_.push_back(counted ? 1 : group.weight);
    }
    for (const Unit& unit : units_) shares_ += unit.share;
  }

  double Value(std::span<const double> latencies_s) const {
    return std::max(Whole(latencies_s), target_s_);
  }

  std::vector<double> Slopes(std::span<const double> latencies_s) const {
    std::vector<double> slopes(weights_.size(), 0.0);
    const double whole_s = Whole(latencies_s);
    if (whole_s <= target_s_) return slopes;
    for (const Unit& unit : units_) {
      const double of_sum = SlopeOfSum(unit, Sum(unit, latencies_s), whole_s);
      for (const int i : unit.groups) slopes[i] = of_sum * weights_[i];
    }
    return slopes;
  }

 private:
  double Sum(const Unit& unit, std::span<const double> latencies_s) const {
    double sum = 0;
    for (const int i : unit.groups) sum += weights_[i] * latencies_s[i];
    return sum;
  }

  // Returns how much the whole falls for each second that the sum of the unit falls.
  double SlopeOfSum(const Unit& unit, double sum_s, double whole_s) const {
    switch (kind_) {
      case ObjectiveKind::kWeightedSum:
        return 1;
      case ObjectiveKind::kGeometricMean:
        return whole_s * unit.share / shares_ / sum_s;
      case ObjectiveKind::kMax:
        // If several latencies are the largest, each of them has to become shorter.
        return sum_s >= whole_s ? 1 : 0;
    }
    return 0;
  }

  double Whole(std::span<const double> latencies_s) const {
    double whole = 0;
    for (const Unit& unit : units_) {
      const double sum = Sum(unit, latencies_s);
      switch (kind_) {
        case ObjectiveKind::kWeightedSum:
          whole += sum;
          break;
        case ObjectiveKind::kGeometricMean:
          whole += unit.share / shares_ * std::log(sum);
          break;
        case ObjectiveKind::kMax:
          whole = std::max(whole, sum);
          break;
      }
    }
    return kind_ == ObjectiveKind::kGeometricMean ? std::exp(whole) : whole;
  }

  const ObjectiveKind kind_;
  const double target_s_;
  std::vector<Unit> units_;
  std::vector<double> weights_;  // index: group
  double shares_ = 0;
};

}  // namespace

std::optional<ObjectiveKind> ParseObjective(std::string_view name) {
  for (const auto& [known, kind] : kNames) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

std::vector<std::string> ObjectiveNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kNames) names.emplace_back(name);
  return names;
}

Objective MakeObjective(ObjectiveKind kind, std::vector<VariantGroup> groups, double target_s) {
  const auto combination = std::make_shared<const Combination>(kind, groups, target_s);
  return {[combination](std::span<const double> latencies_s) {
            return combination->Value(latencies_s);
          },
          [combination](std::span<const double> latencies_s) {
            return combination->Slopes(latencies_s);
          }};
}

}  // namespace kiln::search
