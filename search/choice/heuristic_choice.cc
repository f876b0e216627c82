#include "search/choice/heuristic_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/process/cpu_time.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/schedule/step.h"
#include "search/policies/first_candidates.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

constexpr std::string_view kPolicy = "heuristic";

struct Pool {
  std::vector<Candidate> best;
  int64_t looked_at = 0;
};

StatusOr<Pool> BestOfPool(const Task& task, const device::Calibration& calibration, uint64_t seed,
                          int n) {
  KILN_ASSIGN_OR_RETURN(const Models models, MakeModels(kPolicy, seed, calibration));
  KILN_ASSIGN_OR_RETURN(const auto policy,
                        MakePolicy(kPolicy, task, seed, {.models = models, .threads = 1}));
  Pool pool;
  KILN_ASSIGN_OR_RETURN(pool.best, policy->Propose(n));
  pool.looked_at = policy->last_round().evaluated;
  return pool;
}

}  // namespace

StatusOr<HeuristicChoice> ChooseHeuristic(const Task& task, const device::Calibration& calibration,
                                          uint64_t seed) {
  const double start = ThreadCpuSeconds();
  KILN_ASSIGN_OR_RETURN(const Pool pool, BestOfPool(task, calibration, seed, 1));
  HeuristicChoice choice{.steps = "[]", .origin = "as it is declared"};
  if (!pool.best.empty()) {
    choice.steps = schedule::PrintSteps(pool.best[0].steps);
    choice.origin = pool.best[0].origin;
    choice.predicted_s = -pool.best[0].score;  // the scores are the analytic model's
  }
  choice.looked_at = pool.looked_at;
  choice.cpu_s = ThreadCpuSeconds() - start;
  return choice;
}

StatusOr<std::vector<Candidate>> HeuristicSchedules(const Task& task, int n) {
  const int cores = std::max(1, task.hardware.num_cores);
  target::HardwareParams hardware = target::DefaultHardware(task.target, cores);
  // The fast tiles of an online softmax take more shared memory than every device has.
  if (task.target.is_gpu() && dag::FindSoftmaxChain(*task.dag).ok()) {
    hardware.max_shared_memory_per_block_bytes =
        std::max(hardware.max_shared_memory_per_block_bytes,
                 task.hardware.max_shared_memory_per_block_bytes);
  }
  Task unknown(task.dag, task.target, hardware, task.workload_key);
  unknown.stop = task.stop;
  StatusOr<Pool> pool =
      BestOfPool(unknown, device::CalibrationOf(unknown.device).row, kHeuristicSeed, n);
  if (task.stop.stop_requested()) return Cancelled("stopped");
  if (!pool.ok()) return std::vector<Candidate>();
  for (Candidate& candidate : pool->best) {
    candidate.origin = fmt::format("{}{}", kHeuristicOrigin, candidate.origin);
  }
  return std::move(pool->best);
}

}  // namespace kiln::search
