// The learned cost model: boosted trees over feature rows. The trees either predict a program's
// throughput relative to the best of its task as the sum of its rows (Ansor, OSDI 2020), or they
// correct the estimates of another model, which does not learn. boost_input.h has both losses.
//
// The model keeps its samples, with packed rows (base/numbers/packed_rows.h). When their number has
// grown by much, it trains anew; in between it adds a few trees to those that it has: see
// XgbOptions.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/numbers/packed_rows.h"
#include "costmodel/boost.h"
#include "costmodel/cost_model.h"

namespace kiln::costmodel {

struct XgbOptions {
  BoostOptions boost;
  // The model that the trees correct. Its PredictRows gives minus the seconds of each row. That
  // model ranks well before there are results, and its errors are simpler to learn than whole
  // times. Scores are then minus the seconds of a program. Needs Objective::kTime. Null: the trees
  // stand alone.
  std::shared_ptr<const CostModel> estimate;
  int feature_version = 1;
  // The model does not train with fewer samples.
  int min_samples = 32;
  // So many of the latest samples are kept.
  int max_samples = 10000;
  // Returns how many of them may be kept now. Empty: all of them.
  std::function<size_t(size_t wanted)> kept_samples = {};
  // The model trains anew when the samples that are not prior have grown by this share since the
  // last full training, and with the first min_samples of them.
  double full_growth = 0.5;
  // In between the model adds trees when these samples have grown by this share since the last
  // training.
  double step_growth = 0.05;
  int step_rounds = 20;
  // Slow and failed programs weigh at least this; the best of a task weighs 1.
  double min_weight = 0.03;
  // When there are other samples, all prior samples together weigh at most as much as so many of
  // the best.
  double prior_weight = 256;
};

class XgbModel final : public CostModel {
 public:
  explicit XgbModel(const XgbOptions& options);

  std::string_view name() const override { return "xgb"; }
  Status Update(std::vector<Sample> samples) override;
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return forest() != nullptr; }
  std::vector<ColumnImportance> Importance() const override;
  StatusOr<std::string> Save() const override;
  // Later samples add trees to the loaded ones, until there are more samples than the loaded model
  // had.
  Status Load(std::string_view bytes) override;

 private:
  // The part of a sample that the model keeps.
  struct Known {
    PackedRows rows;
    uint64_t task = 0, id = 0;
    std::optional<double> cost_s = {};
    bool prior = false;
    std::vector<float> estimates;  // of the rows: logarithms of seconds
  };

  std::string_view kind() const;
  Status Check(const std::vector<Sample>& samples) const;
  void Keep(const Sample& sample);
  // Log seconds; empty without estimates.
  std::vector<float> Estimates(const FloatMatrix& program) const;
  void Correct(const Sample& correction);
  Status Train(bool full);
  std::shared_ptr<const Forest> forest() const;  // nullptr: not trained
  void Publish(Forest forest);

  const XgbOptions options_;
  mutable std::mutex update_mutex_;  // one Update or Load at a time; guards the members below
  std::vector<Known> samples_;
  int columns_ = 0;                                   // of the samples
  std::unordered_map<uint64_t, RowsPacker> packers_;  // key: task
  std::unordered_map<uint64_t, double> best_cost_s_;  // key: task
  uint64_t prior_seen_ = 0;                           // number of prior samples ever given
  uint64_t seen_ = 0;                                 // number of other samples ever given
  uint64_t seen_at_training_ = 0, seen_at_full_ = 0;

  mutable std::mutex forest_mutex_;  // held to copy the pointer
  std::shared_ptr<const Forest> forest_;
};

}  // namespace kiln::costmodel
