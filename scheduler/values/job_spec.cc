#include "scheduler/values/job_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/dag/sample_outputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/computation.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/target/warp_size.h"
#include "proto/builder.pb.h"
#include "proto/job_defaults.h"
#include "scheduler/values/served_code.h"
#include "search/policies/policy.h"
#include "search/policies/template_features.h"
#include "search/space/parameters.h"
#include "search/templates/kernel_template.h"
#include "search/templates/shipped.h"
#include "search/tuning/objective.h"

namespace kiln::scheduler {
namespace {

constexpr int kMaxTasks = 10'000;

Status CheckAtMost(std::string_view name, uint32_t value, uint32_t most) {
  if (value <= most) return OkStatus();
  return InvalidArgument("option {} is {}, expected at most {}", name, value, most);
}

Status CheckNotNegative(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return OkStatus();
  return InvalidArgument("option {} is {}, expected a finite number that is not negative", name,
                         value);
}

Status CheckMeasure(v1::MeasureOptions& measure) {
  KILN_RETURN_IF_ERROR(CheckAtMost("number", measure.number(), kMaxCalls));
  KILN_RETURN_IF_ERROR(CheckAtMost("repeat", measure.repeat(), kMaxCalls));
  KILN_RETURN_IF_ERROR(CheckAtMost("min_repeat_ms", measure.min_repeat_ms(), kLongestMs));
  KILN_RETURN_IF_ERROR(CheckAtMost("cooldown_ms", measure.cooldown_ms(), kLongestMs));
  KILN_RETURN_IF_ERROR(CheckAtMost("timeout_ms", measure.timeout_ms(), kLongestMs));
  KILN_RETURN_IF_ERROR(CheckAtMost("idle_ms", measure.idle_ms(), kLongestIdleMs));
  if (!std::isfinite(measure.early_stop_ratio())) {
    return InvalidArgument(
        "option early_stop_ratio is {}, expected a number, 0 for the default or a negative one for "
        "never",
        measure.early_stop_ratio());
  }
  if (measure.early_stop_ratio() == 0) measure.set_early_stop_ratio(kDefaultEarlyStopRatio);
  measure.clear_best_cost_s();  // the scheduler fills it in
  return OkStatus();
}

Status CheckPolicy(v1::TuneOptions& options) {
  if (options.policy().empty()) options.set_policy(std::string(search::Policies().front()->name));
  KILN_ASSIGN_OR_RETURN(const search::PolicyKind* const kind, search::FindPolicy(options.policy()));
  const std::map<std::string, double> parameters(options.policy_parameters().begin(),
                                                 options.policy_parameters().end());
  KILN_RETURN_IF_ERROR(search::MakeParameters(parameters).status());
  if (kind->learns_from_points) KILN_RETURN_IF_ERROR(search::CheckHistoryFeatures(parameters));
  const bool has_kernel = !options.kernel().empty();
  if (options.schedule_template().empty() && !has_kernel) return OkStatus();
  if (!options.schedule_template().empty() && has_kernel)
    return InvalidArgument("there are a template and a hand-written kernel, expected one of them");
  if (!kind->uses_template) {
    return InvalidArgument("policy {} cannot search a {}, and the job gives one", kind->name,
                           has_kernel ? "hand-written kernel" : "template");
  }
  if (has_kernel && options.calibrate())
    return InvalidArgument("a calibration measures loops, and the job has a hand-written kernel");
  return Annotate(GivenTemplate(options).status(), has_kernel ? "the kernel" : "the template");
}

// Tags the computation, which keeps records of a hand-written kernel apart from those of schedules.
Status TagComputation(const v1::TuneOptions& options, dag::DagText& text) {
  if (options.kernel().empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const handwritten::KernelText kernel,
                        handwritten::ParseKernelText(options.kernel()));
  KILN_ASSIGN_OR_RETURN(text.dag, handwritten::TaggedComputation(kernel, text.dag));
  return OkStatus();
}

// Checks the numbers of the gradient strategy.
Status CheckGradient(v1::TuneOptions& options) {
  if (!options.has_task_alpha()) options.set_task_alpha(kDefaultTaskAlpha);
  if (!(options.task_alpha() >= 0 && options.task_alpha() <= 1)) {
    return InvalidArgument("option task_alpha is {}, expected 0 to 1", options.task_alpha());
  }
  KILN_RETURN_IF_ERROR(CheckNotNegative("task_beta", options.task_beta()));
  if (options.task_beta() == 0) options.set_task_beta(kDefaultTaskBeta);
  KILN_RETURN_IF_ERROR(CheckAtMost("task_window", options.task_window(), kMaxTaskWindow));
  if (options.task_window() == 0) options.set_task_window(kDefaultTaskWindow);
  return OkStatus();
}

Status CheckStrategy(v1::TuneOptions& options) {
  if (options.objective().empty()) options.set_objective("weighted-sum");
  if (!search::ParseObjective(options.objective()).has_value()) {
    return InvalidArgument("objective '{}' is unknown, expected one of: {}", options.objective(),
                           fmt::join(search::ObjectiveNames(), ", "));
  }
  if (options.task_strategy().empty()) options.set_task_strategy(std::string(kGradientStrategy));
  if (options.task_strategy() != kGradientStrategy &&
      options.task_strategy() != kRoundRobinStrategy) {
    return InvalidArgument("task strategy '{}' is unknown, expected {} or {}",
                           options.task_strategy(), kGradientStrategy, kRoundRobinStrategy);
  }
  KILN_RETURN_IF_ERROR(CheckGradient(options));
  KILN_RETURN_IF_ERROR(CheckNotNegative("latency_target_s", options.latency_target_s()));
  KILN_RETURN_IF_ERROR(CheckNotNegative("time_budget_s", options.time_budget_s()));
  KILN_RETURN_IF_ERROR(CheckNotNegative("reference_limit_s", options.reference_limit_s()));
  if (options.reference_limit_s() == 0) options.set_reference_limit_s(kDefaultReferenceLimit_s);
  if (options.reference_limit_s() > kLongestReference_s) {
    return InvalidArgument("option reference_limit_s is {}, expected at most {}",
                           options.reference_limit_s(), kLongestReference_s);
  }
  if (options.finalists() > kMaxFinalists) {
    return InvalidArgument("option finalists is {}, expected at most {}", options.finalists(),
                           kMaxFinalists);
  }
  return OkStatus();
}

// Fills in defaults that depend on the target. A target that runs nothing has lock_step set and no
// finalists, because its costs are always the same.
void FillByTarget(const target::Target& target, v1::TuneOptions& options) {
  const bool runs = target.kind->runs_programs;
  if (!runs) options.set_lock_step(true);
  if (options.finalists() == 0) options.set_finalists(runs ? kDefaultFinalists : -1);
}

Status CheckFaults(const v1::TuneOptions& options) {
  for (const auto& [trial, fault] : options.faults()) {
    if (!v1::Fault_IsValid(static_cast<int>(fault))) {
      return InvalidArgument("trial {} is given the fault {}, expected 0 to {}", trial, fault,
                             static_cast<int>(v1::Fault_MAX));
    }
    if (trial >= options.trials()) {
      return InvalidArgument("trial {} is given a fault, expected a trial below {}", trial,
                             options.trials());
    }
  }
  return OkStatus();
}

Status CheckOptions(v1::TuneOptions& options, int tasks) {
  if (options.trials() == 0) options.set_trials(kDefaultTrials);
  KILN_RETURN_IF_ERROR(CheckAtMost("trials", options.trials(), kMaxTrials));
  KILN_RETURN_IF_ERROR(CheckPolicy(options));
  KILN_RETURN_IF_ERROR(CheckStrategy(options));
  KILN_RETURN_IF_ERROR(CheckMeasure(*options.mutable_measure()));
  KILN_RETURN_IF_ERROR(CheckNotNegative("tolerance.relative", options.tolerance().relative()));
  KILN_RETURN_IF_ERROR(CheckNotNegative("tolerance.absolute", options.tolerance().absolute()));
  KILN_RETURN_IF_ERROR(CheckAtMost("build_timeout_ms", options.build_timeout_ms(), kLongestMs));
  if (options.trials_per_round() == 0) options.set_trials_per_round(kDefaultTrialsPerRound);
  const uint32_t per_task = std::max(1u, options.trials() / static_cast<uint32_t>(tasks));
  options.set_trials_per_round(std::min(options.trials_per_round(), per_task));
  return CheckFaults(options);
}

// Checks the size of all arguments. No device holds more than the limit; a device that holds less
// says so in its first trial.
Status CheckSize(const dag::Dag& dag) {
  constexpr double kMaxBytes = 1024.0 * 1024 * 1024 * 1024;
  double bytes = 0;
  for (const dag::Tensor argument : dag.arguments()) {
    bytes += static_cast<double>(dag.op(argument.op).num_elements()) * dag.type(argument).bytes();
  }
  if (bytes <= kMaxBytes) return OkStatus();
  return InvalidArgument("its arguments take {:.1f} TiB together, expected at most 1 TiB",
                         bytes / kMaxBytes);
}

// Shows an error early that every trial of the task would have.
Status CheckLowers(const CheckedTask& task, const std::stop_token& stop) {
  const auto program =
      lower::Lower(schedule::State(task.dag), {.gpu = task.target.is_gpu(), .stop = stop});
  return Annotate(program.status(), "its loops cannot be generated");
}

StatusOr<CheckedTask> CheckTask(const v1::TuneOptions& options, v1::TaskSpec& spec,
                                const std::stop_token& stop) {
  if (stop.stop_requested()) return Cancelled("stopped");
  CheckedTask task;
  if (spec.dag().empty()) return InvalidArgument("it has no DAG text");
  KILN_ASSIGN_OR_RETURN(dag::DagText text, dag::ParseDagText(spec.dag()));
  KILN_RETURN_IF_ERROR(TagComputation(options, text));
  task.dag = text.dag;
  task.ranges = text.ranges;
  if (spec.target().empty()) {
    return InvalidArgument("it has no target, expected one like 'llvm' or 'null'");
  }
  KILN_ASSIGN_OR_RETURN(task.target, target::ParseTarget(spec.target()));
  KILN_RETURN_IF_ERROR(target::CheckWarpSize(task.target));
  if (!std::isfinite(spec.weight()) || spec.weight() < 0) {
    return InvalidArgument("its weight is {}, expected a finite number above 0", spec.weight());
  }
  if (spec.weight() == 0) spec.set_weight(1);
  KILN_RETURN_IF_ERROR(CheckSize(*task.dag));
  KILN_RETURN_IF_ERROR(CheckLowers(task, stop));
  spec.set_dag(dag::PrintDag(*task.dag, text.ranges));
  spec.set_target(target::PrintTarget(task.target));
  task.workload_id = dag::WorkloadId(*task.dag);
  task.workload_key = dag::WorkloadKey(*task.dag);
  task.flop_count = task.dag->flop_count();
  return task;
}

std::string Interface(const dag::Dag& dag) {
  std::string outputs;
  int inputs = 0;
  for (const dag::Tensor argument : dag.arguments()) {
    if (dag.op(argument.op).is_placeholder()) {
      ++inputs;
    } else {
      outputs += fmt::format("{}{}[{}]", outputs.empty() ? "" : ", ", TypeName(dag.type(argument)),
                             fmt::join(dag.shape(argument), ", "));
    }
  }
  return fmt::format("{} of {} inputs", outputs, inputs);
}

// Checks that an alternative makes the same outputs as the task whose work it does. The alternative
// takes its weight and its network from that task.
Status CheckAlternative(const v1::JobSpec& job, std::span<const CheckedTask> before,
                        const CheckedTask& task, v1::TaskSpec& spec) {
  if (!spec.has_alternative_of()) return OkStatus();
  const uint32_t of = spec.alternative_of();
  if (of >= before.size() || job.tasks(static_cast<int>(of)).has_alternative_of()) {
    return InvalidArgument(
        "it is an alternative of task {}, expected a task before it that is none itself", of);
  }
  const std::string is = Interface(*task.dag), expected = Interface(*before[of].dag);
  if (is != expected) {
    return InvalidArgument("it is an alternative of task {} and makes {}, expected {}", of, is,
                           expected);
  }
  spec.set_weight(job.tasks(static_cast<int>(of)).weight());
  spec.set_network(job.tasks(static_cast<int>(of)).network());
  return OkStatus();
}

// Gives all errors of bad input one code, whatever part of the compiler found them.
Status Refuse(int index, const v1::TaskSpec& spec, const Status& status) {
  if (status.code() == StatusCode::kCancelled) return status;
  const std::string name =
      spec.description().empty() ? std::string() : fmt::format(" ({})", spec.description());
  return InvalidArgument("task {}{}: {}", index, name, Message(status));
}

}  // namespace

StatusOr<search::TemplatePtr> GivenTemplate(const v1::TuneOptions& options) {
  if (!options.kernel().empty()) return search::KernelTemplate::Parse(options.kernel());
  return search::TemplateOfText(options.schedule_template());
}

StatusOr<CheckedJob> CheckJobSpec(v1::JobSpec spec, const std::stop_token& stop) {
  CheckedJob job;
  if (spec.tasks().empty()) return InvalidArgument("the job has no task, expected at least one");
  if (spec.tasks_size() > kMaxTasks) {
    return InvalidArgument("the job has {} tasks, expected at most {}", spec.tasks_size(),
                           kMaxTasks);
  }
  KILN_RETURN_IF_ERROR(CheckOptions(*spec.mutable_options(), spec.tasks_size()));
  KILN_RETURN_IF_ERROR(CheckServed(spec));
  KILN_ASSIGN_OR_RETURN(const search::PolicyKind* const kind,
                        search::FindPolicy(spec.options().policy()));
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr given, GivenTemplate(spec.options()));
  for (int i = 0; i < spec.tasks_size(); ++i) {
    v1::TaskSpec& task_spec = *spec.mutable_tasks(i);
    StatusOr<CheckedTask> task = CheckTask(spec.options(), task_spec, stop);
    if (!task.ok()) return Refuse(i, task_spec, task.status());
    if (kind->uses_template) {
      const auto fits = search::TemplateFor(given, task->dag, task->target.is_gpu());
      if (!fits.ok()) return Refuse(i, task_spec, fits.status());
    }
    const Status alternative = CheckAlternative(spec, job.tasks, *task, task_spec);
    if (!alternative.ok()) return Refuse(i, task_spec, alternative);
    if (i > 0 && task_spec.target() != spec.tasks(0).target()) {
      return InvalidArgument(
          "task {} has the target '{}' and task 0 has '{}', expected one target for all tasks of a "
          "job; submit one job for each",
          i, task_spec.target(), spec.tasks(0).target());
    }
    job.tasks.push_back(*std::move(task));
  }
  FillByTarget(job.tasks[0].target, *spec.mutable_options());
  if (spec.name().empty()) spec.set_name(spec.tasks(0).description());
  job.spec = std::move(spec);
  return job;
}

int GroupOf(const CheckedJob& job, size_t task) {
  const v1::TaskSpec& spec = job.spec.tasks(static_cast<int>(task));
  return static_cast<int>(spec.has_alternative_of() ? spec.alternative_of() : task);
}

double PlainSecondsOf(const CheckedTask& task) {
  return dag::PlainSeconds(*task.dag, task.target.kind->unscheduled_flops_per_s);
}

}  // namespace kiln::scheduler
