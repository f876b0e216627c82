#include "costmodel/build_model.h"

#include <utility>

#include "costmodel/build_estimate.h"
#include "costmodel/xgb_model.h"

namespace kiln::costmodel {
namespace {

// The trees correct estimates, so few builds are enough.
constexpr int kFewBuilds = 16;
// The builds of all tasks are compared with each other: their times have one unit.
constexpr uint64_t kTask = 1;
constexpr int kMaxDepth = 4;
// So many of the latest builds are kept. More would take long to train with.
constexpr int kMaxBuilds = 1000;

}  // namespace

StatusOr<std::unique_ptr<BuildModel>> BuildModel::Make(std::span<const std::string_view> columns,
                                                       uint64_t seed, const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<BuildEstimate> estimate, BuildEstimate::Make(columns));
  const std::shared_ptr<const CostModel> shared = std::move(estimate);
  XgbOptions options;
  options.boost.max_depth = kMaxDepth;
  options.boost.seed = seed;
  options.boost.stop = stop;
  options.estimate = shared;
  options.min_samples = kFewBuilds;
  options.max_samples = kMaxBuilds;
  return std::unique_ptr<BuildModel>(new BuildModel(shared, std::make_unique<XgbModel>(options)));
}

Status BuildModel::Learn(std::span<const Built> builds) {
  std::vector<Sample> samples;
  samples.reserve(builds.size());
  for (const Built& build : builds)
    samples.push_back({.rows = build.rows, .task = kTask, .cost_s = build.build_s});
  return learned_->Update(std::move(samples));
}

std::vector<double> BuildModel::Seconds(std::span<const FloatMatrix* const> programs) const {
  std::vector<double> seconds = (learned_->trained() ? *learned_ : *estimate_).Predict(programs);
  for (double& s : seconds) s = -s;
  return seconds;
}

}  // namespace kiln::costmodel
