#include "search/policies/pace_model.h"

#include <cmath>
#include <utility>

namespace kiln::search {
namespace {

// The power of a trial's seconds that a time is multiplied by. Near the best times the expected
// gain for each second (build_choice.h) has the same order with a power of 0.16. It is more here,
// because the best programs of a job have builds of all lengths (docs/experiments/search.md).
constexpr double kPower = 0.25;

}  // namespace

std::vector<double> PaceModel::Predict(std::span<const FloatMatrix* const> programs) const {
  return Weighed(times_.Predict(programs), programs);
}

std::vector<double> PaceModel::PredictSchedules(std::span<const FloatMatrix* const> programs,
                                                std::span<const std::string> steps) const {
  return Weighed(times_.PredictSchedules(programs, steps), programs);
}

Status PaceModel::Load(std::string_view) {
  return FailedPrecondition("a model of paces has nothing to load");
}

// Scores are minus seconds, or throughputs.
std::vector<double> PaceModel::Weighed(std::vector<double> scores,
                                       std::span<const FloatMatrix* const> programs) const {
  const std::vector<double> builds_s = builds_.Seconds(programs);
  for (size_t i = 0; i < scores.size(); ++i) {
    const double longer = std::pow(builds_s[i] + other_s_, kPower);
    if (std::isfinite(longer)) scores[i] = scores[i] < 0 ? scores[i] * longer : scores[i] / longer;
  }
  return scores;
}

}  // namespace kiln::search
