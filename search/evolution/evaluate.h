// Feature rows and scores of many individuals at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/float_matrix.h"
#include "base/thread_pool.h"
#include "compiler/ir/program.h"
#include "costmodel/cost_model.h"
#include "search/evolution/individual.h"
#include "search/space/round_report.h"
#include "search/space/task.h"

namespace kiln::search {

// What a model is told of a schedule. Called by several threads at once.
using FeatureFn = std::function<FloatMatrix(const schedule::State&, const ir::Program&)>;

// Work is shared by threads; results do not depend on their number.
class Workers {
 public:
  // threads <= 0: one for each CPU.
  Workers(const Task& task, const FeatureFn& features, int threads);

  // body(i) for all i in [0, count).
  void ForEach(int64_t count, const std::function<void(int64_t)>& body) const;

  const Task& task;
  const FeatureFn& features;

 private:
  std::unique_ptr<ThreadPool> pool_;  // beside the calling thread; null: it works alone
};

// Lowers those that have no rows yet and gives them some; drops those that do not lower or have
// nothing to tell. The order of the rest stays. States are let go.
void FillRows(const Workers& workers, std::vector<Individual>& individuals, RoundReport& report);

// Scores all. A score that is not a number counts as the worst.
void FillScores(const costmodel::CostModel& model, std::vector<Individual>& individuals,
                RoundReport& report);

}  // namespace kiln::search
