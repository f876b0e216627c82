// Plans points by a learned model, as autotvm's XGBTuner (TVM v0.8,
// python/tvm/autotvm/tuner/xgboost_tuner.py and model_based_tuner.py; Chen et al., Learning to
// Optimize Tensor Programs, NeurIPS 2018): after every plan_size results boosted trees are trained
// on all of them, and simulated annealing looks for the points that they rank highest. A base model
// (base_model.h) plans the first points, and estimates what the trees then correct.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "base/float_matrix.h"
#include "costmodel/forest.h"
#include "search/templates/tuners/annealing.h"
#include "search/templates/tuners/base_model.h"
#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

// What the model sees of a point. Of one space all have the same length, or are filled up with
// zeros. Empty: the point makes no program.
using PointFeatures = std::function<std::vector<float>(int64_t index)>;

// The values of a configuration's knobs as numbers: sizes of splits, permutations, of an annotation
// one of 11 places for each word, options (of words a number that tells them apart).
std::vector<float> KnobFeatures(const Config& config);

struct ModelOptions {
  int plan_size = 64;
  // Throughput relative to the best: its square error, or the order of pairs.
  bool rank_loss = false;
  // Above 1: so many times as many points are looked for, of which those are taken that have the
  // most values of knobs that others have not.
  double diversity_ratio = 0;
  AnnealingOptions annealing = {};
  // Of the same features. Null: nothing is known of other computations.
  std::shared_ptr<const BaseModel> base = {};
  std::stop_token stop = {};  // requested: planning ends soon
};

class ModelTuner final : public ConfigTuner {
 public:
  // `space` outlives it.
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
  // Of a cache.
  const std::vector<float>& FeaturesOf(int64_t index);
  FloatMatrix Rows(std::span<const int64_t> indices);
  // What the base model says of them; all 0 without one.
  std::vector<float> Estimates(std::span<const float* const> rows) const;

  const ConfigSpace& space_;
  const PointFeatures features_;
  const ModelOptions options_;
  VisitedPoints visited_;
  Rng rng_;
  std::unordered_map<int64_t, double> throughputs_;
  std::vector<int64_t> told_;  // in the order of their first results
  std::unordered_map<int64_t, std::vector<float>> cache_;
  int width_ = 0;                          // of feature rows
  std::shared_ptr<const BaseModel> base_;  // null: there is none, or not any more
  double base_weight_ = 1;
  bool has_planned_ = false;
  costmodel::Forest forest_;
  std::vector<int64_t> chains_;
  std::vector<int64_t> plan_;  // the best first
  size_t planned_ = 0;         // of these have been given or left out
  int trainings_ = 0;
};

// Of `points`, the best first, `count`: one after the other that which adds the most values of
// knobs that those before it have not; of equals the better one.
std::vector<int64_t> PickDiverse(const ConfigSpace& space, std::span<const Scored> points,
                                 int count);

}  // namespace kiln::search
