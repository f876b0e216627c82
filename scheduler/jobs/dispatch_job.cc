#include "scheduler/jobs/dispatch_job.h"

#include <utility>

#include "compiler/dag/least_operations.h"
#include "compiler/target/target.h"

namespace kiln::scheduler {
namespace {

std::string DescriptionOf(const CheckedJob& job, size_t task) {
  const v1::TaskSpec& spec = job.spec.tasks(static_cast<int>(task));
  const std::string& name = spec.description();
  if (name.empty()) return fmt::format("task {}", task);
  return spec.has_alternative_of() ? fmt::format("{} ({})", name, spec.variant()) : name;
}

// Returns the lowest cost in this job and earlier ones.
std::optional<double> BestCost(const TaskHistory& history, const training::TaskResults& earlier) {
  std::optional<double> best_s = history.best_cost_s;
  if (earlier.best.has_value() && (!best_s.has_value() || earlier.best->cost_s < *best_s)) {
    best_s = earlier.best->cost_s;
  }
  return best_s;
}

}  // namespace

Dispatcher::Job DispatchJobOf(const std::string& job_id, const CheckedJob& job,
                              const LeasedDevice& device, JobHistory history,
                              const WarmStart& start,
                              std::vector<std::optional<SampledReference>> samples,
                              const std::vector<store::TaskRow>& rows) {
  Dispatcher::Job dispatch;
  dispatch.id = job_id;
  dispatch.options = job.spec.options();
  dispatch.runner_target = device.lease.worker().target();
  dispatch.on_cpu = job.tasks[0].target.kind->uses_host_cores;
  for (size_t i = 0; i < device.tasks.size(); ++i) {
    const search::Task& task = device.tasks[i];
    TaskHistory& own = history.tasks[i];
    dispatch.tasks.push_back(
        {.workload_id = job.tasks[i].workload_id,
         .workload_key = job.tasks[i].workload_key,
         .dag = job.spec.tasks(static_cast<int>(i)).dag(),
         .target = target::PrintTarget(task.target),
         .hardware = HardwareRowOf(task.hardware),
         .flop_count = job.tasks[i].flop_count,
         .operations = dag::LeastOperations(*job.tasks[i].dag),
         .best_cost_s = BestCost(own, start.of_tasks[i]),
         .reference_cost_s = i < rows.size() ? rows[i].reference_cost_s : std::nullopt,
         .description = DescriptionOf(job, i),
         .plain_s = PlainSecondsOf(job.tasks[i]),
         .sample = std::move(samples[i]),
         .group = GroupOf(job, i),
         .trials = static_cast<int>(own.observations.size()),
         .elites = std::move(own.elites)});
  }
  return dispatch;
}

}  // namespace kiln::scheduler
