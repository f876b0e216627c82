#include "scheduler/words/task_shares.h"

#include <algorithm>

#include "scheduler/words/variant_groups.h"
#include "search/tuning/objective.h"

namespace kiln {

std::vector<double> SharesOf(const v1::JobStatus& job) {
  std::vector<double> shares(static_cast<size_t>(job.tasks_size()), 0.0);
  const auto kind = search::ParseObjective(job.spec().options().objective());
  const bool is_sum =
      kind.value_or(search::ObjectiveKind::kWeightedSum) == search::ObjectiveKind::kWeightedSum;
  const double total_s = ObjectiveOf(job).value_or(0);
  if (!is_sum || total_s <= 0) return shares;
  for (const std::vector<int>& variants : VariantGroupsOf(job)) {
    const int fastest = Fastest(job, variants);
    const double weight = std::max(job.tasks(variants[0]).spec().weight(), 0.0);
    shares[static_cast<size_t>(fastest)] = weight * job.tasks(fastest).best_cost_s() / total_s;
  }
  return shares;
}

}  // namespace kiln
