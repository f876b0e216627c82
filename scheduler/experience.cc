#include "scheduler/experience.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/log.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "search/samples.h"

namespace kiln::scheduler {
namespace {

bool SameDevice(std::string_view a, std::string_view b) { return a.empty() || b.empty() || a == b; }

double CostOf(const store::Record& record) {
  return record.error == store::kNoError ? store::Cost(record) : 0;
}

// The tasks that records are of, each parsed once.
class TaskTable {
 public:
  // nullptr: its DAG is not known or does not parse.
  const search::Task* Find(const store::Record& record) {
    const auto [at, is_new] =
        tasks_.try_emplace({record.workload_key, record.target, record.hardware}, nullptr);
    if (!is_new) return at->second.get();
    auto dag = dag::ParseDag(record.dag);
    auto target = target::ParseTarget(record.target);
    if (!dag.ok() || !target.ok()) return nullptr;
    at->second = std::make_unique<search::Task>(*std::move(dag), *std::move(target),
                                                HardwareOf(record), record.workload_key);
    return at->second.get();
  }

 private:
  static target::HardwareParams HardwareOf(const store::Record& record) {
    const store::HardwareParams& h = record.hardware;
    return {.num_cores = static_cast<int32_t>(h[0]),
            .vector_unit_bytes = static_cast<int32_t>(h[1]),
            .cache_line_bytes = static_cast<int32_t>(h[2]),
            .max_shared_memory_per_block_bytes = h[3],
            .max_local_memory_per_block_bytes = h[4],
            .max_threads_per_block = static_cast<int32_t>(h[5]),
            .max_vthread_extent = static_cast<int32_t>(h[6]),
            .warp_size = static_cast<int32_t>(h[7])};
  }

  std::map<std::tuple<std::string, std::string, store::HardwareParams>,
           std::unique_ptr<search::Task>>
      tasks_;
};

Status GatherOwn(store::Store& store, std::string_view job_id, const search::Task& task,
                 std::string_view device, std::vector<search::Observation>& observations) {
  KILN_ASSIGN_OR_RETURN(
      const std::vector<store::Record> records,
      store.RecordsOfWorkload(task.workload_key, target::PrintTarget(task.target)));
  std::set<uint64_t> known;
  for (const store::Record& record : records) {
    if (record.job_id == job_id || !SameDevice(record.device, device)) continue;
    auto steps = schedule::ParseSteps(record.steps);
    if (!steps.ok()) continue;
    search::Observation o;
    o.candidate.hash = schedule::HashSteps(*steps);
    if (!known.insert(o.candidate.hash).second) continue;
    o.candidate.steps = *std::move(steps);
    o.candidate.origin = fmt::format("trial {} of job {}", record.trial, record.job_id);
    o.valid = record.error == store::kNoError;
    o.cost_s = CostOf(record);
    o.trial = record.trial;
    observations.push_back(std::move(o));
  }
  return OkStatus();
}

}  // namespace

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
    if (!own.insert({tasks[i].workload_key, target}).second) continue;
    KILN_RETURN_IF_ERROR(GatherOwn(store, job_id, tasks[i], device, experience.of_tasks[i]));
  }

  TaskTable table;
  std::vector<search::Measured> measured;
  for (const std::string& target : targets) {
    KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                          store.LatestRecords(target, options.latest_records));
    for (const store::Record& record : records) {
      if (record.job_id == job_id) continue;
      const bool is_own = own.contains({record.workload_key, record.target});
      if (is_own && SameDevice(record.device, device)) continue;
      const search::Task* task = table.Find(record);
      if (task == nullptr) continue;
      auto steps = schedule::ParseSteps(record.steps);
      if (!steps.ok()) continue;
      measured.push_back({.task = task,
                          .steps = *std::move(steps),
                          .cost_s = CostOf(record),
                          .sample_task = search::SampleTask(*task, record.device)});
    }
  }
  experience.of_others = search::MakeSamples(measured, pool);
  KILN_DEBUG_LOG("costmodel", 1, "{} records of other tasks, {} of them are samples",
                 measured.size(), experience.of_others.size());
  return experience;
}

}  // namespace kiln::scheduler
