#include "costmodel/mean_model.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kiln::costmodel {
namespace {

std::vector<double> Means(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = -std::sqrt(a[i] * b[i]);
  return a;
}

}  // namespace

MeanModel::MeanModel(std::shared_ptr<const CostModel> a, std::shared_ptr<const CostModel> b)
    : a_(std::move(a)), b_(std::move(b)), name_(fmt::format("{} and {}", a_->name(), b_->name())) {}

std::vector<double> MeanModel::Predict(std::span<const FloatMatrix* const> programs) const {
  return Means(a_->Predict(programs), b_->Predict(programs));
}

std::vector<double> MeanModel::PredictRows(const FloatMatrix& program) const {
  return Means(a_->PredictRows(program), b_->PredictRows(program));
}

Status MeanModel::Load(std::string_view bytes) {
  if (bytes == name()) return OkStatus();
  return InvalidArgument("{} bytes are no saved model '{}'", bytes.size(), name());
}

}  // namespace kiln::costmodel
