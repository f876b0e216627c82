#include "search/templates/tuners/base_model.h"

#include <algorithm>
#include <cmath>

namespace kiln::search {
namespace {

// The constants are autotvm's.
constexpr double kHalving = 64;
constexpr double kMinWeight = 0.05;

}  // namespace

StatusOr<std::shared_ptr<const BaseModel>> BaseModel::Learn(std::span<const EarlierPoint> points,
                                                            const PointLearning& learning) {
  size_t width = 1;
  for (const EarlierPoint& point : points) width = std::max(width, point.features.size());
  FloatMatrix rows(static_cast<int>(points.size()), static_cast<int>(width));
  std::vector<float> throughputs;
  for (size_t i = 0; i < points.size(); ++i) {
    std::ranges::copy(points[i].features, rows.row(static_cast<int>(i)).begin());
    throughputs.push_back(points[i].throughput);
  }
  KILN_ASSIGN_OR_RETURN(costmodel::Forest forest, LearnPoints(rows, throughputs, {}, learning));
  return std::shared_ptr<const BaseModel>(new BaseModel(std::move(forest)));
}

double BaseModel::Weight(int64_t results) {
  const double weight = std::exp2(-static_cast<double>(results) / kHalving);
  return weight < kMinWeight ? 0 : weight;
}

}  // namespace kiln::search
