// A search problem for tests, without a compiler or a device: the features are a schedule's tile
// lengths, the hidden cost is a function of them, and a small model learns it.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers/float_matrix.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/steps/steps.h"
#include "costmodel/cost_model.h"
#include "search/evolution/tile_moves.h"

namespace kiln::search {

inline constexpr int kTileColumns = 48;

// Returns the choice that a step makes for tiles in shared memory: the depth of a BF step, the
// rows' alignment of an SA step, 2 for an LA step that moves an axis, the value of a GPU hint plus
// one, and 0 for all other steps.
inline int FetchChoice(const schedule::Step& step) {
  if (const auto* buffering = schedule::As<schedule::BufferingStep>(step))
    return buffering->depth + (buffering->asynchronous ? 1 : 0);
  if (const auto* align = schedule::As<schedule::StorageAlignStep>(step)) return align->factor;
  for (const ir::HintRow& row : ir::kHints) {
    if (!row.is_gpu_only) continue;
    if (const auto value = schedule::HintOf(step, row.hint)) return 1 + *value;
  }
  const auto* layout = schedule::As<schedule::LayoutStep>(step);
  return layout == nullptr ? 0 : std::ranges::is_sorted(layout->order) ? 1 : 2;
}

// Returns one row: log2 of all levels of all splits, then of the unroll depths and fetch choices.
inline FloatMatrix TileFeatures(std::span<const schedule::StepPtr> steps) {
  FloatMatrix rows(1, kTileColumns);
  size_t column = 0;
  const auto add = [&](double value) {
    if (column < kTileColumns) rows.row(0)[column++] = static_cast<float>(std::log2(value));
  };
  for (const Tiles& tiles : TilesOf(steps)) {
    for (int64_t level : tiles.levels) add(static_cast<double>(level));
  }
  for (const schedule::StepPtr& step : steps) {
    if (const auto depth = schedule::HintOf(*step, ir::Hint::kUnroll)) add(*depth + 1.0);
    if (const int choice = FetchChoice(*step); choice > 0) add(choice);
  }
  return rows;
}

inline FloatMatrix TileFeaturesOf(const schedule::State& state, const ir::Program&) {
  return TileFeatures(state.steps());
}

// Returns a lower cost the nearer the levels of the tiles are to hidden values. Each level has its
// own hidden value.
inline double HiddenCost(std::span<const schedule::StepPtr> steps) {
  double distance = 0;
  int i = 0;
  for (const Tiles& tiles : TilesOf(steps)) {
    for (int64_t level : tiles.levels) {
      const double wanted = 4 * std::fmod(0.618 * ++i, 1);
      distance += std::pow(std::log2(static_cast<double>(level)) - wanted, 2);
    }
  }
  for (const schedule::StepPtr& step : steps) {
    if (const int choice = FetchChoice(*step); choice > 0) distance += std::log2(choice);
  }
  return 1e-5 * std::exp2(0.1 * distance);
}

// A sum of one term for each column's value, which is enough for the hidden cost. Learns at once.
class AdditiveModel final : public costmodel::CostModel {
 public:
  std::string_view name() const override { return "additive"; }
  Status Update(std::vector<costmodel::Sample> samples) override {
    ++updates;
    std::move(samples.begin(), samples.end(), std::back_inserter(samples_));
    for (int pass = 0; pass < 60; ++pass) {
      for (const costmodel::Sample& sample : samples_) {
        const FloatMatrix& rows = *sample.rows;
        const double truth = sample.cost_s ? -std::log2(*sample.cost_s) : 0;
        const double step = 0.5 * (truth - PredictRows(rows)[0]) / (1 + rows.columns());
        bias_ += step;
        for (int i = 0; i < rows.columns(); ++i) terms_[{i, std::lround(rows.row(0)[i])}] += step;
      }
    }
    return OkStatus();
  }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
    std::vector<double> scores;
    for (const FloatMatrix* program : programs) scores.push_back(PredictRows(*program)[0]);
    return scores;
  }
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    double score = bias_;
    for (int i = 0; i < program.columns(); ++i) {
      const auto term = terms_.find({i, std::lround(program.row(0)[i])});
      if (term != terms_.end()) score += term->second;
    }
    return {score};
  }
  bool trained() const override { return samples_.size() >= 8; }
  StatusOr<std::string> Save() const override { return std::string(); }
  Status Load(std::string_view) override { return OkStatus(); }

  const std::vector<costmodel::Sample>& samples() const { return samples_; }
  int updates = 0;

 private:
  std::vector<costmodel::Sample> samples_;
  std::map<std::pair<int, long>, double> terms_;
  double bias_ = 0;
};

}  // namespace kiln::search
