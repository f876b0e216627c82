#include "client/compile/schedule_choice.h"

#include <fmt/format.h>

#include <set>

#include "base/cpu_time.h"
#include "base/utf8.h"
#include "client/compile/workload_distance.h"
#include "client/view/format.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/workload_id.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "device/calibration.h"
#include "rpc/hardware_message.h"
#include "search/policies/policy.h"

namespace kiln::client {
namespace {

constexpr std::string_view kPolicy = "heuristic";

bool IsOfKind(const v1::Record& record, const target::Target& target) {
  const auto parsed = target::ParseTarget(record.target());
  return parsed.ok() && parsed->kind == target.kind;
}

}  // namespace

ScheduleChoice ChoiceOf(const v1::Record& record) {
  return {.steps = record.steps(),
          .record = fmt::format("{}", record.id()),
          .cost_s = CostOf(record.result()),
          .hardware = HardwareParamsOf(record.hardware()),
          .device = record.result().device(),
          .reused_from = {}};
}

StatusOr<ScheduleChoice> BestRecordOf(const dag::Dag& dag, const target::Target& target,
                                      Archive& archive) {
  v1::BestRequest request;
  request.set_workload_id(dag::WorkloadId(dag));
  request.set_target(target::PrintTarget(target));
  KILN_ASSIGN_OR_RETURN(const std::vector<v1::Record> records, archive.Best(request));
  ScheduleChoice best;
  for (const v1::Record& record : records) {
    if (best.steps.empty() || CostOf(record.result()) < best.cost_s) best = ChoiceOf(record);
  }
  return best;
}

StatusOr<ScheduledDag> FasterRecordOf(const dag::DagPtr& dag, const target::Target& target,
                                      Archive& archive) {
  ScheduledDag chosen{.dag = dag, .schedule = {}};
  KILN_ASSIGN_OR_RETURN(chosen.schedule, BestRecordOf(*dag, target, archive));
  const dag::DagPtr plain = dag::PlainInputs(dag);
  if (plain == dag) return chosen;
  KILN_ASSIGN_OR_RETURN(ScheduleChoice other, BestRecordOf(*plain, target, archive));
  const bool is_faster = chosen.schedule.record.empty() || other.cost_s < chosen.schedule.cost_s;
  if (!other.record.empty() && is_faster) chosen = {plain, std::move(other)};
  return chosen;
}

Status RelatedRecords::ReadJobs() {
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive_.Jobs(std::nullopt));
  std::set<std::string> seen;
  by_hash_.emplace();
  for (const v1::JobStatus& job : jobs) {
    for (const v1::TaskStatus& task : job.tasks()) {
      if (task.workload_id().empty() || !seen.insert(task.workload_id()).second) continue;
      by_hash_->emplace(
          WorkloadHash(task.workload_key()),
          Related{task.workload_key(), task.workload_id(), OneLine(task.spec().description())});
    }
  }
  return OkStatus();
}

StatusOr<ScheduleChoice> RelatedRecords::Find(const graph::NetworkTask& task,
                                              const target::Target& target) {
  if (!by_hash_.has_value()) KILN_RETURN_IF_ERROR(ReadJobs());
  ScheduleChoice best;
  double least_s = 0;
  const auto [begin, end] = by_hash_->equal_range(WorkloadHash(task.workload_key));
  for (auto it = begin; it != end; ++it) {
    const Related& related = it->second;
    const auto distance = WorkloadDistance(task.workload_key, related.key);
    if (!distance.has_value()) continue;
    v1::BestRequest request;
    request.set_workload_id(related.id);
    KILN_ASSIGN_OR_RETURN(const std::vector<v1::Record> records, archive_.Best(request));
    for (const v1::Record& record : records) {
      const double cost_s = CostOf(record.result()) * *distance;
      if (!IsOfKind(record, target) || cost_s <= 0) continue;
      if (handwritten::IsKernelPoint(record.steps())) continue;  // no schedule
      if (!best.steps.empty() && cost_s >= least_s) continue;
      least_s = cost_s;
      best = ChoiceOf(record);
      best.cost_s = 0;
      best.reused_from = fmt::format("{} for {}", related.description, record.target());
    }
  }
  return best;
}

StatusOr<UnmeasuredChoice> ChooseWithoutMeasuring(const search::Task& task,
                                                  const device::Calibration& calibration,
                                                  uint64_t seed) {
  const double start = ThreadCpuSeconds();
  KILN_ASSIGN_OR_RETURN(const search::Models models,
                        search::MakeModels(kPolicy, seed, calibration));
  KILN_ASSIGN_OR_RETURN(const auto policy,
                        search::MakePolicy(kPolicy, task, seed, {.models = models, .threads = 1}));
  KILN_ASSIGN_OR_RETURN(const std::vector<search::Candidate> candidates, policy->Propose(1));
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

}  // namespace kiln::client
