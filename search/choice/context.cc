#include "search/choice/context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "base/text/utf8.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/target/meaning.h"
#include "compiler/target/recorded.h"
#include "device/calibration.h"
#include "device/measured_as.h"
#include "search/choice/heuristic_choice.h"
#include "search/choice/record_or_heuristic.h"
#include "search/choice/workload_distance.h"

namespace kiln::search {
namespace {

Choice SetTo(std::string_view steps) {
  return {.source = ChoiceSource::kSet, .steps = std::string(steps), .record = {}};
}

bool IsFor(const Task& task, std::string_view target) {
  return target::MeanSame(target, {}, target::PrintTarget(task.target), {});
}

Status Lowers(const Task& task, std::string_view steps) {
  KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(task.dag, parsed, task.stop));
  return lower::Lower(state, {.gpu = task.target.is_gpu(), .stop = task.stop}).status();
}

std::string WayText(const std::string& measured_as) {
  return measured_as.empty() ? "in an unknown way" : measured_as;
}

// Returns the rank of a record that was chosen. Ids do not count: the computations differ.
store::Rank RankOf(const Choice& choice) {
  return {.measured_as = choice.measured_as, .cost_s = choice.cost_s};
}

bool IsOfKind(const store::Record& record, const Task& task) {
  const auto parsed = target::ParseRecordedTarget(record.target);
  return parsed.ok() && parsed->target.kind == task.target.kind;
}

}  // namespace

Status CheckApplies(const Task& task, std::string_view steps) {
  const Status lowers = Lowers(task, steps);
  if (lowers.ok() || lowers.code() == StatusCode::kCancelled) return lowers;
  return InvalidArgument("the steps do not apply to the computation: {}", Message(lowers));
}

// ---- any context ----------------------------------------------------------------------------

Choice Context::Kept(const Task& task) {
  std::lock_guard lock(mutex_);
  const auto of_computation = kept_.find(dag::WorkloadId(*task.dag));
  if (of_computation == kept_.end()) return {};
  for (const auto& [target, steps] : of_computation->second) {
    if (IsFor(task, target)) return SetTo(steps);
  }
  return {};
}

StatusOr<Choice> Context::Query(const Task& task) {
  Choice choice = Kept(task);
  if (choice.source == ChoiceSource::kNone) {
    KILN_ASSIGN_OR_RETURN(choice, Find(task));
  }
  if (choice.source != ChoiceSource::kNone || outer_ == nullptr) return choice;
  return outer_->Query(task);
}

Status Context::Update(const Task& task, std::string_view steps) {
  KILN_RETURN_IF_ERROR(CheckApplies(task, steps));
  return Keep(task, steps);
}

Status Context::Keep(const Task& task, std::string_view steps) {
  std::lock_guard lock(mutex_);
  auto& schedules = kept_[dag::WorkloadId(*task.dag)];
  std::erase_if(schedules, [&](const auto& kept) { return IsFor(task, kept.first); });
  schedules.emplace_back(target::PrintTarget(task.target), steps);
  return OkStatus();
}

// ---- history --------------------------------------------------------------------------------

StatusOr<Choice> HistoryBest::Find(const Task& task) {
  std::lock_guard lock(mutex_);
  const std::string id = dag::WorkloadId(*task.dag);
  KILN_ASSIGN_OR_RETURN(const auto pinned, records_.Set(id));
  for (const store::PinnedSchedule& set : pinned) {
    if (IsFor(task, set.target)) return SetTo(set.steps);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, RecordsFor(task, id));
  const store::Record* best = nullptr;
  for (const store::Record& record : records) {
    if (best != nullptr && !store::BetterThan(record, *best)) continue;
    // A key stands for computations of any types, so a record that is known by its key may be of
    // another one.
    if (record.dag.empty()) {
      const Status applies = CheckApplies(task, record.steps);
      if (applies.code() == StatusCode::kCancelled) return applies;
      if (!applies.ok()) continue;
    }
    best = &record;
  }
  if (best != nullptr) return OrHeuristic(task, *best);
  if (!options_.include_compatible) return Choice();
  KILN_ASSIGN_OR_RETURN(Choice compatible, Compatible(task));
  if (compatible.source == ChoiceSource::kNone || !options_.heuristic_seed.has_value())
    return compatible;
  return RecordOrHeuristic(task, records_, *options_.heuristic_seed)
      .ChooseCompatible(std::move(compatible));
}

// Returns the best records of the task's computation for targets that mean the same as its own, one
// for each text of a target and way of measuring.
StatusOr<std::vector<store::Record>> HistoryBest::RecordsFor(const Task& task,
                                                             const std::string& id) {
  KILN_ASSIGN_OR_RETURN(std::vector<store::Record> records,
                        records_.Best({.id = id, .keys = dag::WorkloadKeys(*task.dag)}));
  const std::string target = target::PrintTarget(task.target);
  std::erase_if(records, [&](const store::Record& record) {
    return !target::MeanSame(record.target, HardwareParamsOf(record.hardware), target, {});
  });
  if (options_.as_deployed.empty()) return records;
  std::set<std::string> ways;
  for (const store::Record& record : records) ways.insert(WayText(record.measured_as));
  std::erase_if(records, [&](const store::Record& record) {
    return !device::IsAsDeployed(record.measured_as, options_.as_deployed);
  });
  if (!records.empty()) return records;
  if (ways.empty()) {
    return NotFound(
        "the computation has no record for {}, so none that was measured as {}: tune it with "
        "--as-deployed {}, or ask for records of any way",
        target, options_.as_deployed, options_.as_deployed);
  }
  return FailedPrecondition(
      "the computation has no record for {} that was measured as {}, only {}: tune it with "
      "--as-deployed {}, or ask for records of any way",
      target, options_.as_deployed, fmt::join(ways, ", "), options_.as_deployed);
}

StatusOr<Choice> HistoryBest::OrHeuristic(const Task& task, const store::Record& best) {
  if (!options_.heuristic_seed.has_value()) return ChoiceOf(best);
  return RecordOrHeuristic(task, records_, *options_.heuristic_seed).Choose(best);
}

StatusOr<Choice> HistoryBest::Compatible(const Task& task) {
  const std::string key = dag::WorkloadKey(*task.dag);
  KILN_ASSIGN_OR_RETURN(const auto related, records_.WithHash(WorkloadHash(key)));
  const bool has_rival = options_.heuristic_seed.has_value() && task.target.kind->runs_programs;
  Choice best;
  store::Rank least;
  for (const KnownComputation& computation : related) {
    const auto distance = WorkloadDistance(key, computation.key);
    if (!distance.has_value()) continue;
    KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                          records_.Best({.id = computation.id}));
    for (const store::Record& record : records) {
      const double cost_s = store::Cost(record) * *distance;
      if (!IsOfKind(record, task) || cost_s <= 0) continue;
      // A hand-written kernel has no schedule.
      if (handwritten::IsKernelPoint(record.steps)) continue;
      if (has_rival && !IsWorthReusing(record)) continue;
      store::Rank rank = store::RankOf(record);
      rank.cost_s = cost_s;
      if (best.source != ChoiceSource::kNone && !(rank < least)) continue;
      least = std::move(rank);
      best = ChoiceOf(record);
      best.source = ChoiceSource::kCompatible;
      best.cost_s = 0;
      best.distance = *distance;
      best.reused_from = fmt::format("{} for {}", OneLine(computation.description), record.target);
    }
  }
  return best;
}

// ---- without history ------------------------------------------------------------------------

StatusOr<Choice> FixedSchedule::Find(const Task& task) {
  if (!workload_ids_.empty() && !workload_ids_.contains(dag::WorkloadId(*task.dag)))
    return Choice();
  const Status applies = CheckApplies(task, steps_);
  if (applies.code() == StatusCode::kCancelled) return applies;
  if (!applies.ok()) return Choice();
  return Choice{.source = ChoiceSource::kFixed, .steps = steps_, .record = {}};
}

StatusOr<Choice> SampledSchedule::Find(const Task& task) {
  KILN_ASSIGN_OR_RETURN(HeuristicChoice sampled,
                        ChooseHeuristic(task, device::CalibrationOf(task.device).row, seed_));
  return Choice{.source = ChoiceSource::kSample,
                .steps = std::move(sampled.steps),
                .record = {},
                .hardware = task.hardware,
                .origin = std::move(sampled.origin),
                .predicted_s = sampled.predicted_s};
}

StatusOr<Choice> Fallback::Find(const Task& task) {
  std::lock_guard lock(mutex_);
  if (warned_workloads_.insert(dag::WorkloadId(*task.dag)).second) {
    LogWarn("no schedule is known of {} for {}: tune it, or it runs as it is declared",
            dag::WorkloadKey(*task.dag), target::PrintTarget(task.target));
  }
  return Choice();
}

std::shared_ptr<Context> HistoryBestOrSample(KnownRecords& records, uint64_t seed) {
  return std::make_shared<HistoryBest>(
      records, HistoryOptions{.include_compatible = true, .heuristic_seed = seed},
      std::make_shared<SampledSchedule>(seed));
}

StatusOr<ScheduledDag> FasterOf(const Task& task, Context& context) {
  ScheduledDag chosen{.dag = task.dag, .schedule = {}};
  KILN_ASSIGN_OR_RETURN(chosen.schedule, context.Query(task));
  const dag::DagPtr plain = dag::PlainInputs(task.dag);
  if (plain == task.dag || chosen.schedule.source == ChoiceSource::kSet) return chosen;
  Task other = task;
  other.dag = plain;
  KILN_ASSIGN_OR_RETURN(Choice of_plain, context.Query(other));
  const bool has_record = chosen.schedule.source == ChoiceSource::kRecord;
  const bool is_faster = !has_record || RankOf(of_plain) < RankOf(chosen.schedule);
  if (of_plain.source == ChoiceSource::kRecord && is_faster) chosen = {plain, std::move(of_plain)};
  return chosen;
}

}  // namespace kiln::search
