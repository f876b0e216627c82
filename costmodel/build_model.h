// Predicts the seconds that the build of a program takes: an estimate from its feature rows, which
// boosted trees correct by the builds of the job so far.
//
// Thread-safe as CostModel is.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "costmodel/cost_model.h"

namespace kiln::costmodel {

// A program that was built.
struct Built {
  std::shared_ptr<const FloatMatrix> rows;
  double build_s = 0;  // positive
};

class BuildModel {
 public:
  // `columns` are the names of the columns of all rows. Refuses columns that lack one which the
  // estimate needs. A training ends soon after `stop` is requested, and has no effect then.
  static StatusOr<std::unique_ptr<BuildModel>> Make(std::span<const std::string_view> columns,
                                                    uint64_t seed,
                                                    const std::stop_token& stop = {});

  // Learns from builds that were not given before. May train, which takes some 10 ms.
  Status Learn(std::span<const Built> builds);

  // Returns the seconds of each program's build. A program without rows takes infinitely long.
  std::vector<double> Seconds(std::span<const FloatMatrix* const> programs) const;

 private:
  BuildModel(std::shared_ptr<const CostModel> estimate, std::unique_ptr<CostModel> learned)
      : estimate_(std::move(estimate)), learned_(std::move(learned)) {}

  const std::shared_ptr<const CostModel> estimate_;
  const std::unique_ptr<CostModel> learned_;  // corrects the estimate
};

}  // namespace kiln::costmodel
