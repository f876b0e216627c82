// A cost model halfway between two others: its times are the geometric means of theirs.
//
// Between a model that learns from few results and the estimates that it corrects, it believes half
// of each correction: where the one has seen little, it takes what it has seen for too general.
//
// Both must score programs and rows by minus their seconds. Learns nothing itself; any thread, as
// far as both allow it.
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
