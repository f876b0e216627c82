#include "client/compile/schedule_choice.h"

#include <fmt/format.h>

#include "client/view/format.h"
#include "compiler/dag/workload_id.h"
#include "compiler/schedule/step.h"
#include "device/calibration.h"
#include "rpc/hardware_message.h"
#include "search/policies/policy.h"

namespace kiln::client {
namespace {

constexpr std::string_view kPolicy = "sketch.analytic";
// What a search of a trial round draws and breeds is for rounds that measure: one choice needs less.
constexpr double kDraws = 128, kPopulation = 256, kGenerations = 2;

}  // namespace

StatusOr<ScheduleChoice> BestRecordOf(const dag::Dag& dag, const target::Target& target,
                                      Archive& archive) {
  v1::BestRequest request;
  request.set_workload_id(dag::WorkloadId(dag));
  request.set_target(target::PrintTarget(target));
  KILN_ASSIGN_OR_RETURN(const std::vector<v1::Record> records, archive.Best(request));
  ScheduleChoice best;
  for (const v1::Record& record : records) {
    const double cost_s = CostOf(record.result());
    if (!best.steps.empty() && cost_s >= best.cost_s) continue;
    best = {.steps = record.steps(),
            .record = fmt::format("{}", record.id()),
            .cost_s = cost_s,
            .hardware = HardwareParamsOf(record.hardware())};
  }
  return best;
}

StatusOr<std::string> StepsWithoutMeasuring(const search::Task& task, uint64_t seed) {
  const device::Calibration calibration = device::CalibrationOf(task.device).row;
  KILN_ASSIGN_OR_RETURN(const search::Models models,
                        search::MakeModels(kPolicy, seed, calibration));
  KILN_ASSIGN_OR_RETURN(
      const auto policy,
      search::MakePolicy(kPolicy, task, seed,
                         {.parameters = {{"sample_init_population", kDraws},
                                         {"evolutionary_search_population", kPopulation},
                                         {"evolutionary_search_num_iters", kGenerations}},
                          .models = models,
                          .threads = 1}));
  KILN_ASSIGN_OR_RETURN(const std::vector<search::Candidate> candidates, policy->Propose(1));
  if (candidates.empty()) return std::string("[]");  // as it stands: there is nothing to choose
  return schedule::PrintSteps(candidates[0].steps);
}

}  // namespace kiln::client
