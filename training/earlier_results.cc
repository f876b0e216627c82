#include "training/earlier_results.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "compiler/target/meaning.h"
#include "search/policies/samples.h"
#include "training/earlier_records.h"
#include "training/left_out.h"
#include "training/record_tasks.h"

namespace kiln::training {
namespace {

// Tells which records are for a task's target, by the meaning of both targets. Compares each text
// once.
class TargetsLike {
 public:
  explicit TargetsLike(const search::Task& task)
      : target_(target::PrintTarget(task.target)), hardware_(task.hardware) {}

  bool Has(const store::Record& record) {
    const auto [at, is_new] = known_.try_emplace({record.target, record.hardware}, false);
    if (is_new) {
      at->second =
          target::MeanSame(record.target, HardwareParamsOf(record.hardware), target_, hardware_);
    }
    return at->second;
  }

 private:
  const std::string target_;
  const HardwareParams hardware_;
  std::map<std::pair<std::string, HardwareRow>, bool> known_;
};

// Counts the record for the task's best. Returns what it says, without its candidate.
search::Observation Observe(const store::Record& record, TaskResults& own) {
  search::Observation o;
  o.valid = record.error == store::kNoError;
  o.cost_s = CostOf(record).value_or(0);
  o.record = record.id;
  const bool decides = o.valid && !record.stopped_early && !store::IsImported(record);
  if (decides && (!own.best.has_value() || o.cost_s < own.best->cost_s)) {
    own.best = {record.id, o.cost_s};
  }
  return o;
}

Status GatherOwnRecords(store::Store& store, std::string_view job_id, const search::Task& task,
                        std::string_view device, const EarlierResultsOptions& options,
                        ThreadPool& pool, TaskResults& own) {
  KILN_ASSIGN_OR_RETURN(
      const std::vector<store::Record> found,
      store.RecordsOfWorkload(
          {.id = dag::WorkloadId(*task.dag), .keys = dag::WorkloadKeys(*task.dag)}, ""));
  TargetsLike same_target(task);
  RecordList records;
  for (const store::Record& record : found) {
    if (record.job_id == job_id || !SameDevice(record.device, device)) continue;
    if (!same_target.Has(record) || !WhyLeftOut(record).empty()) continue;
    // Older databases hold costs that no device can have.
    if (CheckMeasuredCosts(record, task).ok()) records.push_back(&record);
  }
  const RecordList chosen = Choose(records, options.observed);
  const std::set<const store::Record*> observed(chosen.begin(), chosen.end());
  std::vector<std::optional<Steps>> steps = ParseAll(job_id, records, options.stop, pool);
  std::set<uint64_t> known;
  for (size_t i = 0; i < records.size(); ++i) {
    const store::Record& record = *records[i];
    if (!steps[i].has_value()) continue;
    search::Observation o = Observe(record, own);
    o.candidate.hash = schedule::HashSteps(*steps[i]);
    if (!known.insert(o.candidate.hash).second) continue;
    if (!observed.contains(&record)) {
      own.avoid.push_back(o.candidate.hash);
      continue;
    }
    o.candidate.steps = *std::move(steps[i]);
    o.candidate.origin = record.origin;
    own.observations.push_back(std::move(o));
  }
  return OkStatus();
}

}  // namespace

StatusOr<TaskResults> GatherKernelPoints(store::Store& store, std::string_view job_id,
                                         const search::Task& task, std::string_view device) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> found,
                        store.RecordsOfWorkload({.id = dag::WorkloadId(*task.dag)}, ""));
  TaskResults own;
  TargetsLike same_target(task);
  std::set<uint64_t> known;
  for (const store::Record& record : found) {
    if (record.job_id == job_id || !SameDevice(record.device, device)) continue;
    if (record.error == store::kUnknownError || !handwritten::IsKernelPoint(record.steps)) continue;
    if (!same_target.Has(record)) continue;
    auto candidate = search::ParseCandidate(record.steps);
    if (!candidate.ok()) continue;
    search::Observation o = Observe(record, own);
    if (!known.insert(candidate->hash).second) continue;
    o.candidate = *std::move(candidate);
    o.candidate.origin = record.origin;
    own.observations.push_back(std::move(o));
  }
  return own;
}

bool CanRankNewTasks(const EarlierResults& results) {
  constexpr size_t kSamples = 256, kTasks = 3;
  std::set<uint64_t> tasks;
  for (const costmodel::Sample& sample : results.of_others) tasks.insert(sample.task);
  return results.of_others.size() >= kSamples && tasks.size() >= kTasks;
}

StatusOr<EarlierResults> GatherEarlierResults(store::Store& store, std::string_view job_id,
                                              std::span<const search::Task> tasks,
                                              std::string_view device, ThreadPool& pool,
                                              const EarlierResultsOptions& options) {
  EarlierResults results;
  results.of_tasks.resize(tasks.size());
  std::set<std::string> targets;
  std::set<std::pair<std::string, std::string>> own;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string target = target::PrintTarget(tasks[i].target);
    targets.insert(target);
    // A job may hold a task twice. Only the first one observes the records, or the shared model
    // would learn them twice.
    if (!own.insert({dag::WorkloadId(*tasks[i].dag), target}).second) continue;
    KILN_RETURN_IF_ERROR(
        GatherOwnRecords(store, job_id, tasks[i], device, options, pool, results.of_tasks[i]));
  }
  if (options.samples == 0) return results;

  std::vector<store::Record> found;
  for (const std::string& target : targets) {
    KILN_ASSIGN_OR_RETURN(std::vector<store::Record> records,
                          store.LatestRecords(target, options.latest_records));
    std::move(records.begin(), records.end(), std::back_inserter(found));
  }
  RecordGroups groups;
  for (const store::Record& record : found) {
    if (record.job_id == job_id || !WhyLeftOut(record).empty()) continue;
    // Without its DAG a record does not say which task it is for.
    if (record.workload_id.empty()) continue;
    const bool is_own = own.contains({record.workload_id, record.target});
    if (is_own && SameDevice(record.device, device)) continue;
    groups[{record.workload_id, record.device}].push_back(&record);
  }
  const RecordList chosen = ChooseFromEachGroup(groups, options.samples);
  std::vector<std::optional<Steps>> steps = ParseAll(job_id, chosen, options.stop, pool);
  RecordTasks table(options.stop);
  std::vector<search::Measured> measured;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const store::Record& record = *chosen[i];
    if (options.stop.stop_requested()) break;
    const search::Task* task = table.Find(record);
    if (task == nullptr || !steps[i].has_value()) continue;
    measured.push_back({.task = task,
                        .steps = *std::move(steps[i]),
                        .cost_s = CostOf(record),
                        .sample_task = search::SampleTask(*task, record.device)});
  }
  results.of_others = search::MakeSamples(measured, pool);
  for (costmodel::Sample& sample : results.of_others) sample.prior = true;
  KILN_DEBUG_LOG("costmodel", 1, "{} records of other tasks, {} of them are samples",
                 measured.size(), results.of_others.size());
  return results;
}

}  // namespace kiln::training
