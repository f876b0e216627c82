#include "search/templates/tuners/point_forest.h"

#include <algorithm>
#include <vector>

#include "costmodel/boost.h"

namespace kiln::search {
namespace {

costmodel::BoostOptions BoostingOf(const PointLearning& learning) {
  return {.objective =
              learning.rank_loss ? costmodel::Objective::kRank : costmodel::Objective::kThroughput,
          .max_depth = 3,
          .gamma = 0.0001,
          .min_child_weight = 1,
          .eta = 0.3,
          .lambda = 1,
          .colsample_bynode = 1,
          .subsample = 1,
          .max_bin = 256,
          .max_rounds = 400,
          .stop = learning.stop};
}

}  // namespace

StatusOr<costmodel::Forest> LearnPoints(const FloatMatrix& rows, std::span<const float> throughputs,
                                        std::span<const float> estimates,
                                        const PointLearning& learning) {
  std::vector<FloatMatrix> programs;
  std::vector<costmodel::Pack> packs;
  programs.reserve(throughputs.size());
  for (size_t i = 0; i < throughputs.size(); ++i) {
    FloatMatrix& program = programs.emplace_back(1, rows.columns());
    std::ranges::copy(rows.row(static_cast<int>(i)), program.row(0).begin());
    packs.push_back({.rows = &program,
                     .throughput = throughputs[i],
                     .estimates = estimates.empty() ? estimates : estimates.subspan(i, 1)});
  }
  const costmodel::BoostOptions boosting = BoostingOf(learning);
  const costmodel::BoostInput set(packs, boosting.objective);
  costmodel::Forest forest(rows.columns());
  KILN_RETURN_IF_ERROR(costmodel::Boost(set, boosting, forest));
  return forest;
}

}  // namespace kiln::search
