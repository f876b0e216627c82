// Computes feature rows and scores of many individuals at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/numbers/float_matrix.h"
#include "base/thread_pool.h"
#include "compiler/ir/program.h"
#include "costmodel/cost_model.h"
#include "search/evolution/individual.h"
#include "search/space/round_report.h"
#include "search/space/task.h"

namespace kiln::search {

// Computes the rows that a model sees of a schedule. Several threads call it at once.
using FeatureFn = std::function<FloatMatrix(const schedule::State&, const ir::Program&)>;

// Threads share the work. Results do not depend on their number.
class Workers {
 public:
  // If `threads` is 0 or less, there is one thread for each CPU.
  Workers(const Task& task, const FeatureFn& features, int threads);

  // Calls body(i) for all i in [0, count).
  void ForEach(int64_t count, const std::function<void(int64_t)>& body) const;

  const Task& task;
  const FeatureFn& features;

 private:
  std::unique_ptr<ThreadPool> pool_;  // works beside the calling thread; null: that works alone
};

// Lowers the individuals that have no rows yet, and fills their rows. Drops individuals that do not
// lower or have no rows to show. The order of the rest stays. Releases the states.
void FillRows(const Workers& workers, std::vector<Individual>& individuals, RoundReport& report);

// Scores all individuals. A score that is not a number counts as the worst.
void FillScores(const costmodel::CostModel& model, std::vector<Individual>& individuals,
                RoundReport& report);

}  // namespace kiln::search
