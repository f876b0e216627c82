#include "scheduler/dispatch/worker_requests.h"

#include <algorithm>
#include <utility>

#include "base/numbers/rng.h"
#include "proto/job_defaults.h"
#include "rpc/artifact_signature.h"
#include "rpc/hardware_message.h"
#include "rpc/trace_context.h"
#include "scheduler/remeasure/races.h"

namespace kiln::scheduler {
namespace {

using std::chrono::milliseconds;

// The best candidates are checked again with other inputs if the reference takes no longer than
// this: it has to run once for these inputs. The limit is short while trials may come, because the
// reference keeps the device from them.
constexpr double kCheapReference_s = 0.05;
constexpr double kFinalReference_s = 5;
constexpr uint64_t kOtherInputs = 1;  // stream of the job's seed

milliseconds ReferenceLimit(const Dispatcher::Job& job) {
  return milliseconds(static_cast<int64_t>(1e3 * job.options.reference_limit_s()));
}

bool IsCheap(const AnswerCheck& check, RemeasureReason why) {
  const double longest_s = why == RemeasureReason::kIdle ? kCheapReference_s : kFinalReference_s;
  return check.reference_cost_s.has_value() && *check.reference_cost_s <= longest_s &&
         !check.same_inputs;
}

}  // namespace

std::string TrialIdOf(const Dispatcher::Job& job, const BuildItem& item) {
  if (const auto* trial = std::get_if<InFlightTrial>(&item.work)) {
    return fmt::format("{}/{}", job.id, trial->trial.number);
  }
  if (const auto* finalist = std::get_if<FinalistBuild>(&item.work)) {
    return fmt::format("{}/record {}", job.id,
                       finalist->race->entries[finalist->entry].finalist.record_id);
  }
  return std::string(kReferenceTrial);
}

v1::BuildRequest BuildRequestOf(const Dispatcher::Job& job, const BuildItem& item,
                                std::string dag) {
  const DispatchTask& task = job.tasks[item.task];
  v1::BuildRequest request;
  request.set_dag(std::move(dag));
  request.set_target(task.target);
  request.set_steps(item.steps);
  request.set_kernel(job.options.kernel());
  *request.mutable_hardware() = HardwareMessage(HardwareParamsOf(task.hardware));
  request.set_timeout_ms(job.options.build_timeout_ms());
  request.set_trial(TrialIdOf(job, item));
  const auto* trial = std::get_if<InFlightTrial>(&item.work);
  if (trial == nullptr) return request;
  request.set_traceparent(
      PrintTraceparent(TraceOfTrial(job.id, trial->trial.number, TrialSpan::kBuild)));
  const auto fault = job.options.faults().find(trial->trial.number);
  if (fault != job.options.faults().end()) {
    request.set_fault(static_cast<v1::Fault>(fault->second));
  }
  return request;
}

milliseconds BuildDeadline(const Dispatcher::Job& job, const DispatchOptions& options) {
  const uint32_t limit = job.options.build_timeout_ms();
  return milliseconds(limit == 0 ? kDefaultBuildTimeoutMs : limit) + options.build_slack;
}

v1::MeasureRequest TrialRequest(const Dispatcher::Job& job, int task, const AnswerCheck& check,
                                const v1::Artifact& artifact) {
  v1::MeasureRequest request;
  *request.mutable_artifact() = artifact;
  request.set_trial(artifact.trial());
  request.set_operations(job.tasks[task].operations);
  request.set_reference_digest(check.reference->digest());
  request.set_seed(job.options.seed());
  *request.mutable_tolerance() = check.tolerance;
  if (!check.unlimited) {
    request.set_reference_timeout_ms(static_cast<uint32_t>(ReferenceLimit(job).count()));
  }
  request.mutable_samples()->Add(check.samples.begin(), check.samples.end());
  if (check.known != nullptr)
    request.mutable_known()->Add(check.known->begin(), check.known->end());
  v1::MeasureOptions& options = *request.mutable_options();
  options = job.options.measure();
  options.set_early_stop_ratio(std::max(0.0, options.early_stop_ratio()));
  options.set_best_cost_s(check.best_cost_s.value_or(0));
  return request;
}

v1::MeasureRequest RemeasureRequest(const Dispatcher::Job& job, int task, const AnswerCheck& check,
                                    const v1::Artifact& artifact, RemeasureReason why) {
  v1::MeasureRequest request = TrialRequest(job, task, check, artifact);
  if (IsCheap(check, why)) {
    request.set_seed(SplitSeed(job.options.seed(), kOtherInputs));
    request.clear_known();  // the known elements are for the trials' inputs
  }
  v1::MeasureOptions& options = *request.mutable_options();
  SetRemeasurement(job.options.trials(), options);
  if (why == RemeasureReason::kIdle) {
    options.set_repeat(1);
    options.set_idle_ms(job.options.measure().idle_ms());
  }
  return request;
}

milliseconds MeasureDeadline(const Dispatcher::Job& job, const DispatchOptions& options,
                             bool with_reference) {
  const v1::MeasureOptions& measure = job.options.measure();
  const uint32_t limit = measure.timeout_ms();
  return milliseconds(limit == 0 ? kDefaultRunTimeoutMs : limit) +
         milliseconds(measure.cooldown_ms()) +
         (with_reference ? options.reference_slack + ReferenceLimit(job) : options.measure_slack);
}

}  // namespace kiln::scheduler
