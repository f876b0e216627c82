// Plans points with a learned model, like autotvm's XGBTuner (TVM v0.8,
// python/tvm/autotvm/tuner/xgboost_tuner.py and model_based_tuner.py; Chen et al., Learning to
// Optimize Tensor Programs, NeurIPS 2018). After every plan_size results, boosted trees are trained
// on all results, and simulated annealing looks for the points that they rank highest. A base model
// (base_model.h) plans the first points and gives estimates, which the trees then correct.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "base/numbers/float_matrix.h"
#include "costmodel/forest.h"
#include "search/templates/tuners/annealing.h"
#include "search/templates/tuners/base_model.h"
#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

// Returns the features of a point. Rows of one space have the same length, or are filled up with
// zeros. Empty if the point makes no program.
using PointFeatures = std::function<std::vector<float>(int64_t index)>;

// Returns the values of a configuration's knobs as numbers: sizes of splits, permutations, one of
// 11 places for each word of an annotation, and options. An option that is a word gets a number
// that tells it from other words.
std::vector<float> KnobFeatures(const Config& config);

struct ModelOptions {
  int plan_size = 64;
  // The loss for the throughput relative to the best: the order of pairs, or else the square error.
  bool rank_loss = false;
  // If above 1, the search finds so many times as many points, and takes those whose knobs have the
  // most values that the others lack.
  double diversity_ratio = 0;
  AnnealingOptions annealing = {};
  // Learned from the same features. Null: nothing is known of other computations.
  std::shared_ptr<const BaseModel> base = {};
  std::stop_token stop = {};  // requested: planning ends soon
};

class ModelTuner final : public ConfigTuner {
 public:
  // `space` outlives the tuner.
  ModelTuner(const ConfigSpace& space, PointFeatures features, uint64_t seed,
             const ModelOptions& options = {});
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double throughput) override;

  int trainings() const { return trainings_; }

 private:
  // Looks for the points that the models rank highest.
  void Plan();
  Status Train();
  std::vector<double> Scores(std::span<const int64_t> indices);
  // Reads from a cache.
  const std::vector<float>& FeaturesOf(int64_t index);
  FloatMatrix Rows(std::span<const int64_t> indices);
  // Returns the base model's estimates for the rows, or zeros without a base model.
  std::vector<float> Estimates(std::span<const float* const> rows) const;

  const ConfigSpace& space_;
  const PointFeatures features_;
  const ModelOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::unordered_map<int64_t, double> throughputs_;
  std::vector<int64_t> told_;  // in the order of their first results
  std::unordered_map<int64_t, std::vector<float>> cache_;
  int width_ = 0;                          // length of feature rows
  std::shared_ptr<const BaseModel> base_;  // null: there was none, or it was dropped
  double base_weight_ = 1;
  bool has_planned_ = false;
  costmodel::Forest forest_;
  std::vector<int64_t> chains_;
  std::vector<int64_t> plan_;  // the best first
  size_t planned_ = 0;         // number of points of the plan that were given or skipped
  int trainings_ = 0;
};

// Picks `count` of `points`, which have the best first. Each next point is the one that adds the
// most values of knobs that the earlier ones lack; among equals, the better one.
std::vector<int64_t> PickDiverse(const ConfigSpace& space, std::span<const Scored> points,
                                 int count);

}  // namespace kiln::search
