// A cost model halfway between two others: its times are the geometric means of theirs.
//
// One of the two may learn from few results, and correct the estimates of the other. Then the mean
// believes half of each correction, because a model with few results generalises too much.
//
// Both must score programs and rows by minus their seconds. The mean learns nothing itself. Any
// thread, as far as both models allow it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost_model.h"

namespace kiln::costmodel {

class MeanModel final : public CostModel {
 public:
  MeanModel(std::shared_ptr<const CostModel> a, std::shared_ptr<const CostModel> b);

  std::string_view name() const override { return name_; }  // "a and b"
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return a_->trained() && b_->trained(); }
  StatusOr<std::string> Save() const override { return std::string(name()); }
  Status Load(std::string_view bytes) override;

 private:
  const std::shared_ptr<const CostModel> a_, b_;
  const std::string name_;
};

}  // namespace kiln::costmodel
