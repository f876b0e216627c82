#include "scheduler/experience.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/rng.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "compiler/target/meaning.h"
#include "costmodel/trained/record_tasks.h"
#include "proto/trial.pb.h"
#include "search/policies/samples.h"
#include "store/plausible.h"

namespace kiln::scheduler {
namespace {

bool SameDevice(std::string_view a, std::string_view b) { return a.empty() || b.empty() || a == b; }

std::optional<double> CostOf(const store::Record& record) {
  return record.error == store::kNoError ? std::optional(store::Cost(record)) : std::nullopt;
}

// Which records are of a task's target, by what their targets mean; each text is looked at once.
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

// Was it the candidate that succeeded or failed, and a schedule? Kernels that people wrote have
// none.
bool SaysSomething(const store::Record& record) {
  return record.error != v1::UNKNOWN_ERROR && !handwritten::IsKernelPoint(record.steps);
}

// Up to `most` of `records`, in their order: one half the fastest, the other by chance.
std::vector<const store::Record*> Choose(std::vector<const store::Record*> records, size_t most) {
  if (records.size() <= most) return records;
  std::vector<size_t> order(records.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const std::optional<double> x = CostOf(*records[a]), y = CostOf(*records[b]);
    if (x.has_value() != y.has_value()) return x.has_value();
    return x != y ? *x < *y : a < b;
  });
  const size_t best = (most + 1) / 2;
  // The same ones each time, as long as there are no more records.
  Rng rng(records.size());
  for (size_t i = best; i < most; ++i) {
    const int64_t left = static_cast<int64_t>(order.size() - i);
    std::swap(order[i], order[i + static_cast<size_t>(UniformInt(rng, left))]);
  }
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<const store::Record*> chosen;
  for (const size_t i : order) chosen.push_back(records[i]);
  return chosen;
}

using Steps = std::vector<schedule::StepPtr>;

// The steps of each; nothing where they do not parse, which is said once.
std::vector<std::optional<Steps>> ParseAll(std::string_view job_id,
                                           const std::vector<const store::Record*>& records,
                                           const std::stop_token& stop, ThreadPool& pool) {
  std::vector<std::optional<Steps>> all(records.size());
  std::vector<Status> refused(records.size());
  pool.ParallelFor(static_cast<int64_t>(records.size()), [&](int64_t i) {
    if (stop.stop_requested()) return;
    auto steps = schedule::ParseSteps(records[i]->steps);
    refused[i] = steps.status();
    if (steps.ok()) all[i] = *std::move(steps);
  });
  const auto count = std::ranges::count_if(refused, [](const Status& s) { return !s.ok(); });
  if (count > 0) {
    const auto first = std::ranges::find_if(refused, [](const Status& s) { return !s.ok(); });
    LogWarn("job {}: {} of {} earlier records are left out; record {}: {}", job_id, count,
            records.size(), records[static_cast<size_t>(first - refused.begin())]->id,
            Message(*first));
  }
  return all;
}

Status GatherOwn(store::Store& store, std::string_view job_id, const search::Task& task,
                 std::string_view device, const ExperienceOptions& options, ThreadPool& pool,
                 TaskExperience& own) {
  KILN_ASSIGN_OR_RETURN(
      const std::vector<store::Record> found,
      store.RecordsOfWorkload(
          {.id = dag::WorkloadId(*task.dag), .keys = dag::WorkloadKeys(*task.dag)}, ""));
  TargetsLike same_target(task);
  std::vector<const store::Record*> records;
  for (const store::Record& record : found) {
    if (record.job_id == job_id || !SameDevice(record.device, device)) continue;
    if (!same_target.Has(record) || store::HasRewrittenLayouts(record)) continue;
    // Older databases hold costs that no device can have; those of programs that are not run are
    // made up.
    const bool plausible = !task.target.kind->runs_programs ||
                           store::CheckPlausible(record, task.dag->flop_count()).ok();
    if (SaysSomething(record) && plausible) records.push_back(&record);
  }
  const std::vector<const store::Record*> chosen = Choose(records, options.observed);
  const std::set<const store::Record*> observed(chosen.begin(), chosen.end());
  std::vector<std::optional<Steps>> steps = ParseAll(job_id, records, options.stop, pool);
  std::set<uint64_t> known;
  for (size_t i = 0; i < records.size(); ++i) {
    const store::Record& record = *records[i];
    if (!steps[i].has_value()) continue;
    search::Observation o;
    o.valid = record.error == store::kNoError;
    o.cost_s = CostOf(record).value_or(0);
    const bool decides = o.valid && !record.stopped_early && !store::IsImported(record);
    if (decides && (!own.best.has_value() || o.cost_s < own.best->cost_s)) {
      own.best = {record.id, o.cost_s};
    }
    o.candidate.hash = schedule::HashSteps(*steps[i]);
    if (!known.insert(o.candidate.hash).second) continue;
    if (!observed.contains(&record)) {
      own.avoid.push_back(o.candidate.hash);
      continue;
    }
    o.candidate.steps = *std::move(steps[i]);
    o.record = record.id;
    own.observations.push_back(std::move(o));
  }
  return OkStatus();
}

// By workload and device: costs of one are never compared with those of another.
using Groups =
    std::map<std::pair<std::string_view, std::string_view>, std::vector<const store::Record*>>;

std::vector<const store::Record*> ChooseOfEach(const Groups& groups, size_t most) {
  std::vector<size_t> sizes;
  for (const auto& [key, records] : groups) sizes.push_back(records.size());
  std::sort(sizes.begin(), sizes.end());
  // What small ones do not use is the others'.
  size_t share = 0, left = most;
  for (size_t i = 0; i < sizes.size(); ++i) {
    share = std::max<size_t>(1, left / (sizes.size() - i));
    left -= std::min({left, share, sizes[i]});
  }
  std::vector<const store::Record*> chosen;
  for (const auto& [key, records] : groups) {
    for (const store::Record* record : Choose(records, share)) chosen.push_back(record);
  }
  return chosen;
}

}  // namespace

bool TeachesOthers(const Experience& experience) {
  constexpr size_t kSamples = 256, kTasks = 3;
  std::set<uint64_t> tasks;
  for (const costmodel::Sample& sample : experience.of_others) tasks.insert(sample.task);
  return experience.of_others.size() >= kSamples && tasks.size() >= kTasks;
}

StatusOr<Experience> GatherExperience(store::Store& store, std::string_view job_id,
                                      std::span<const search::Task> tasks, std::string_view device,
                                      ThreadPool& pool, const ExperienceOptions& options) {
  Experience experience;
  experience.of_tasks.resize(tasks.size());
  std::set<std::string> targets;
  std::set<std::pair<std::string, std::string>> own;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string target = target::PrintTarget(tasks[i].target);
    targets.insert(target);
    // A job may hold a task twice: then the first one alone learns, or the model would twice.
    if (!own.insert({dag::WorkloadId(*tasks[i].dag), target}).second) continue;
    KILN_RETURN_IF_ERROR(
        GatherOwn(store, job_id, tasks[i], device, options, pool, experience.of_tasks[i]));
  }
  if (options.samples == 0) return experience;

  std::vector<store::Record> found;
  for (const std::string& target : targets) {
    KILN_ASSIGN_OR_RETURN(std::vector<store::Record> records,
                          store.LatestRecords(target, options.latest_records));
    std::move(records.begin(), records.end(), std::back_inserter(found));
  }
  Groups groups;
  for (const store::Record& record : found) {
    if (record.job_id == job_id || !SaysSomething(record)) continue;
    // The tasks are not known without their DAGs.
    if (record.workload_id.empty()) continue;
    const bool is_own = own.contains({record.workload_id, record.target});
    if (is_own && SameDevice(record.device, device)) continue;
    groups[{record.workload_id, record.device}].push_back(&record);
  }
  const std::vector<const store::Record*> chosen = ChooseOfEach(groups, options.samples);
  std::vector<std::optional<Steps>> steps = ParseAll(job_id, chosen, options.stop, pool);
  costmodel::RecordTasks table(options.stop);
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
  experience.of_others = search::MakeSamples(measured, pool);
  for (costmodel::Sample& sample : experience.of_others) sample.prior = true;
  KILN_DEBUG_LOG("costmodel", 1, "{} records of other tasks, {} of them are samples",
                 measured.size(), experience.of_others.size());
  return experience;
}

}  // namespace kiln::scheduler
