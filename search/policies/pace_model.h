// A cost model for a search whose pace is that of its builds: the times of another model, longer by
// as much as their builds take long. A program whose trial takes twice as long has to be 16% faster
// for the same score.
//
// Learns nothing itself. Both models outlive it. Any thread, as far as both models allow it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/build_model.h"
#include "costmodel/cost_model.h"

namespace kiln::search {

class PaceModel final : public costmodel::CostModel {
 public:
  // A trial takes `other_s` besides its build.
  PaceModel(const costmodel::CostModel& times, const costmodel::BuildModel& builds, double other_s)
      : times_(times), builds_(builds), other_s_(other_s) {}

  std::string_view name() const override { return times_.name(); }
  Status Update(std::vector<costmodel::Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  bool reads_steps() const override { return times_.reads_steps(); }
  std::vector<double> PredictSchedules(std::span<const FloatMatrix* const> programs,
                                       std::span<const std::string> steps) const override;
  // Rows have no builds of their own.
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    return times_.PredictRows(program);
  }
  bool trained() const override { return times_.trained(); }
  StatusOr<std::string> Save() const override { return times_.Save(); }
  Status Load(std::string_view) override;

 private:
  std::vector<double> Weighed(std::vector<double> scores,
                              std::span<const FloatMatrix* const> programs) const;

  const costmodel::CostModel& times_;
  const costmodel::BuildModel& builds_;
  const double other_s_;
};

}  // namespace kiln::search
