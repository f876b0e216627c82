// Estimates the seconds that a compiler for a GPU needs for a program, from its feature rows and
// without training.
//
// A row's seconds grow with the accesses to memory that its store comes to once its loops are
// unrolled, and with the registers that these need. The rest is the compiler's start, which belongs
// to the first row. The score of a row is minus its seconds.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost_model.h"

namespace kiln::costmodel {

class BuildEstimate final : public CostModel {
 public:
  // Refuses columns that lack one which the estimate needs.
  static StatusOr<std::unique_ptr<BuildEstimate>> Make(std::span<const std::string_view> columns);

  std::string_view name() const override { return "build estimate"; }
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return std::string(name()); }
  Status Load(std::string_view bytes) override;

 private:
  explicit BuildEstimate(std::vector<int> columns, int all)
      : columns_(std::move(columns)), num_columns_(all) {}

  const std::vector<int> columns_;  // index: Column in the .cc file
  const int num_columns_;
};

}  // namespace kiln::costmodel
