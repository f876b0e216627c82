// Scores at random. A learned model must be better. The same rows and seed give the same score.
#pragma once

#include <atomic>

#include "costmodel/cost_model.h"
#include "costmodel/cost_model_kind.h"

namespace kiln::costmodel {

extern const CostModelKind kRandom;

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}

  std::string_view name() const override { return "random"; }
  Status Update(std::vector<Sample> samples) override;
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return false; }
  // The seed is the whole state of the model.
  StatusOr<std::string> Save() const override;
  Status Load(std::string_view bytes) override;

 private:
  std::atomic<uint64_t> seed_;
};

}  // namespace kiln::costmodel
