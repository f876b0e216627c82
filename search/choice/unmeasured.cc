#include "search/choice/unmeasured.h"

#include <memory>
#include <vector>

#include "base/cpu_time.h"
#include "compiler/schedule/step.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

constexpr std::string_view kPolicy = "heuristic";

}  // namespace

StatusOr<UnmeasuredChoice> ChooseWithoutMeasuring(const Task& task,
                                                  const device::Calibration& calibration,
                                                  uint64_t seed) {
  const double start = ThreadCpuSeconds();
  KILN_ASSIGN_OR_RETURN(const Models models, MakeModels(kPolicy, seed, calibration));
  KILN_ASSIGN_OR_RETURN(const auto policy,
                        MakePolicy(kPolicy, task, seed, {.models = models, .threads = 1}));
  KILN_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, policy->Propose(1));
  UnmeasuredChoice choice{.steps = "[]", .origin = "as it is declared"};
  if (!candidates.empty()) {
    choice.steps = schedule::PrintSteps(candidates[0].steps);
    choice.origin = candidates[0].origin;
    choice.predicted_s = -candidates[0].score;  // of the analytic model
  }
  choice.looked_at = policy->last_round().evaluated;
  choice.cpu_s = ThreadCpuSeconds() - start;
  return choice;
}

}  // namespace kiln::search
