#include "scheduler/jobs/warm_start.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "scheduler/values/job_spec.h"
#include "search/policies/policy.h"
#include "search/space/parameters.h"

namespace kiln::scheduler {
namespace {

size_t StatesOf(const training::TaskResults& task) {
  return task.observations.size() + task.avoid.size();
}

Status AddKnownKernelPoints(const std::string& job_id, const LeasedDevice& device,
                            store::Store& store, WarmStart& start) {
  for (size_t i = 0; i < device.tasks.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(start.of_tasks[i],
                          training::GatherKernelPoints(store, job_id, device.tasks[i],
                                                       device.lease.worker().device()));
  }
  return OkStatus();
}

training::TaskResults OnlyHashes(const training::TaskResults& task) {
  training::TaskResults only;
  only.measured = task.avoid;
  for (const search::Observation& o : task.observations) only.measured.push_back(o.candidate.hash);
  return only;
}

}  // namespace

StatusOr<WarmStart> MakeWarmStart(const std::string& job_id, const CheckedJob& job,
                                  const LeasedDevice& device, const search::Models& models,
                                  store::Store& store, const std::stop_token& stop) {
  const v1::TuneOptions& tune = job.spec.options();
  KILN_ASSIGN_OR_RETURN(const search::PolicyKind* const policy, search::FindPolicy(tune.policy()));
  WarmStart start{.of_tasks = std::vector<training::TaskResults>(device.tasks.size())};
  start.of_templates.of_tasks.resize(device.tasks.size());
  if (tune.no_warm_start()) return start;
  if (!tune.kernel().empty()) {
    KILN_RETURN_IF_ERROR(AddKnownKernelPoints(job_id, device, store, start));
    if (!policy->learns_from_points) return start;
  }
  // Without a model the records are not used, and chance alone should decide.
  const bool has_model = models.prior != nullptr || policy->learns_from_points;
  const double start_s = Clock::Real().MonotonicSeconds();
  ThreadPool pool(0);
  training::EarlierResultsOptions options;
  options.stop = stop;
  if (policy->learns_from_points) {
    KILN_ASSIGN_OR_RETURN(const search::TemplatePtr given, GivenTemplate(tune));
    KILN_ASSIGN_OR_RETURN(
        const search::Parameters parameters,
        search::MakeParameters({tune.policy_parameters().begin(), tune.policy_parameters().end()}));
    KILN_ASSIGN_OR_RETURN(start.of_templates,
                          training::LearnTemplateModels(store, job_id, given, parameters,
                                                        device.tasks, pool, options));
  }
  if (!tune.kernel().empty()) return start;
  if (models.learned == nullptr) options.samples = 0;
  KILN_ASSIGN_OR_RETURN(
      training::EarlierResults earlier,
      training::GatherEarlierResults(store, job_id, device.tasks, device.lease.worker().device(),
                                     pool, options));
  start.knows_others = training::CanRankNewTasks(earlier);
  const size_t samples = earlier.of_others.size();
  if (samples > 0) {
    const Status trained = models.learned->Update(std::move(earlier.of_others));
    if (stop.stop_requested()) return Cancelled("stopped");
    // The model then learns from this job alone.
    if (!trained.ok()) LogWarn("job {}: no warm start: {}", job_id, Message(trained));
  }
  start.of_tasks = std::move(earlier.of_tasks);
  if (!has_model) {
    for (training::TaskResults& task : start.of_tasks) task = OnlyHashes(task);
    return start;
  }
  size_t states = 0;
  for (const training::TaskResults& task : start.of_tasks) states += StatesOf(task);
  if (states + samples > 0) {
    LogInfo("job {}: knows {} states of earlier jobs, model begins with {} samples; took {:.2f} s",
            job_id, states, samples, Clock::Real().MonotonicSeconds() - start_s);
  }
  return start;
}

std::vector<LiveStatus::Known> KnownStatesOf(const WarmStart& start) {
  std::vector<LiveStatus::Known> known;
  for (const training::TaskResults& task : start.of_tasks) {
    LiveStatus::Known& of_task = known.emplace_back();
    of_task.states = static_cast<uint32_t>(StatesOf(task));
    if (task.best.has_value()) of_task.best = {task.best->record_id, task.best->cost_s};
  }
  return known;
}

}  // namespace kiln::scheduler
