#include "client/cli/jobs/job_flags.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "base/console/usage.h"
#include "client/cli/command.h"
#include "client/cli/measuring_flags.h"
#include "client/cli/network_flags.h"
#include "client/cli/workload_flags.h"
#include "client/jobs/kernel_source.h"
#include "compiler/target/target.h"
#include "proto/job_defaults.h"
#include "search/policies/policy.h"
#include "search/tuning/objective.h"

namespace kiln::client {
namespace {

// Returns "how candidates are found: sketch.xgb: ...; ...".
std::string PolicyHelp() {
  std::string help = "how candidates are found";
  for (const search::PolicyKind* kind : search::Policies())
    help += fmt::format("; {}: {}", kind->name, kind->what);
  return help;
}

std::string CheckPolicy(const std::string& name) {
  return std::string(Message(search::FindPolicy(name).status()));
}

}  // namespace

struct JobFlags::Values {
  JobDescription job;
  std::vector<std::string> ops;
  const CLI::Option* trials_option = nullptr;
  const CLI::Option* policy_option = nullptr;
  const CLI::Option* target_option = nullptr;
  double minutes = 0, reference_limit_s = kDefaultReferenceLimit_s;
  uint32_t trials = kDefaultTrials, trials_per_round = 0;
  uint32_t early_stopping = 0, total_early_stopping = 0;
  uint64_t seed = kDefaultSeed;
  std::string policy = std::string(search::Policies().front()->name);
  std::string model;
  std::string task_strategy = "gradient";
  double task_alpha = kDefaultTaskAlpha, task_beta = kDefaultTaskBeta;
  uint32_t task_window = kDefaultTaskWindow;
  std::string objective = "weighted-sum";
  double latency_target_ms = 0;
  bool lock_step = false, no_warm_start = false;
  MeasuringFlags measuring;
};

JobFlags::JobFlags() : values_(std::make_unique<Values>()) {}
JobFlags::~JobFlags() = default;

void JobFlags::AddMeasuring(CLI::App& command) { values_->measuring.AddTo(command); }

void JobFlags::AddTasks(CLI::App& command) {
  command.add_option(
      "op", values_->ops,
      "an operator (kiln ops), a network (network:resnet-18, model.onnx), text files "
      "(*.te), each a task of the job, or a kernel (*.cu, *.c) with --space");
  AddWorkloadArguments(command, values_->job.arguments);
  command
      .add_option("--tasks", values_->job.tasks_path,
                  "instead: a file with a task a line: WEIGHT OPERATOR ARGS EPILOGUE, or WEIGHT "
                  "*.te")
      ->type_name("FILE");
  command
      .add_option(
          "--variants", values_->job.variants,
          "which variants of a convolution; others than direct take weights that are prepared "
          "before [direct; of networks all]")
      ->check(CLI::IsMember({kDirectVariants, kWinogradVariants, kAllVariants}));
  AddNetworkArguments(command, values_->job.network);
  AddLayoutRewrite(command, values_->job.layout_rewrite);
  command
      .add_flag("--include-simple-tasks", values_->job.include_simple,
                "of a network also what has no sums: elementwise functions and moves")
      ->group("Networks");
  command
      .add_option(
          "--input-range", values_->job.input_ranges,
          "values that an input gets when programs are timed and checked, for instance x=0.5:2 "
          "for log(x), or expert=0:8:2 for runs of two equal values, 0 0 1 1 up to 7 7; "
          "[-1 to 1, integers -8 to 7]; any number of them")
      ->type_name("NAME=LOW:HIGH[:RUN]")
      ->allow_extra_args(false);
  command
      .add_option("--weights", values_->job.weights, "uses of each task in the network [1,1,...]")
      ->delimiter(',')
      ->type_name("N,N,...");
  values_->target_option = command.add_option(
      "--target", values_->job.target,
      "llvm, llvm -mcpu=..., cuda, or null (measures nothing) [what the scheduler's devices are; "
      "without one the GPU of this machine, or its CPU; of a kernel *.cu cuda, *.c llvm]");
  AddMath(command, values_->job.target);
  command.add_option("--device", values_->job.device,
                     "which of several devices: a name (H200), a UUID (GPU-1f0c...), any other key "
                     "that kiln workers lists; without a scheduler also an index (0) [any]");
}

void JobFlags::AddTrials(CLI::App& command, const std::string& what, uint32_t least) {
  values_->trials_option = command.add_option("--trials", values_->trials, what)
                               ->check(CLI::Range(least, kMaxTrials))
                               ->capture_default_str();
}

void JobFlags::AddSeed(CLI::App& command) {
  command.add_option("--seed", values_->seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
}

void JobFlags::AddStops(CLI::App& command) {
  command
      .add_option("--early-stopping", values_->early_stopping,
                  "stop a task after so many trials without improvement; 0 = never")
      ->capture_default_str();
  command
      .add_option("--total-early-stopping", values_->total_early_stopping,
                  "stop after so many trials that improved no task; 0 = never")
      ->capture_default_str();
  command
      .add_option("--objective", values_->objective,
                  "the figure of the tasks' latencies that the job makes small")
      ->check(CLI::IsMember(search::ObjectiveNames()))
      ->capture_default_str();
  command
      .add_option("--latency-target-ms", values_->latency_target_ms,
                  "stop when the objective is so small; 0 = never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void JobFlags::AddReferenceLimit(CLI::App& command) {
  command
      .add_option("--reference-limit", values_->reference_limit_s,
                  "seconds that the unscheduled loops may take; of those that take longer answers "
                  "are compared at a sample of the outputs")
      ->check(CLI::Range(0.001, kLongestReference_s))
      ->capture_default_str()
      ->group(kMeasuringGroup);
}

void JobFlags::AddRounds(CLI::App& command) {
  command
      .add_option("--trials-per-round", values_->trials_per_round,
                  fmt::format("candidates that are proposed at once; 0 = {}, fewer for many tasks",
                              kDefaultTrialsPerRound))
      ->capture_default_str();
  command.add_option("--task-strategy", values_->task_strategy, "how the next task is chosen")
      ->check(CLI::IsMember({"gradient", "round-robin"}))
      ->capture_default_str();
  command
      .add_option("--task-alpha", values_->task_alpha,
                  "of the gradient: the weight of what a task has gained; what it may gain has the "
                  "rest")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--task-beta", values_->task_beta,
                  "of the gradient: how many times slower than tasks like it a task is expected to "
                  "become at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--task-window", values_->task_window,
                  "of the gradient: what a task has gained is taken over so many rounds")
      ->check(CLI::Range(1u, kMaxTaskWindow))
      ->capture_default_str();
  command.add_flag(
      "--lock-step", values_->lock_step,
      "search and measure in turns: the same seed proposes the same for the same costs");
}

void JobFlags::AddSearch(CLI::App& command) {
  AddTrials(command, "candidates to measure; 0: only show what would be tuned", 0);
  command
      .add_option("--minutes", values_->minutes,
                  "end after so long, the last readings of the best included; without --trials as "
                  "many candidates as that allows; 0 = no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddSeed(command);
  values_->policy_option = command.add_option("--policy", values_->policy, PolicyHelp())
                               ->check(CheckPolicy)
                               ->capture_default_str();
  command
      .add_option("--template", values_->job.schedule_template,
                  "the template that policies template.* search: one of kiln templates, or a file "
                  "(*.tmpl) [that of the operator]; without --policy, template.xgb searches it")
      ->type_name("NAME|FILE");
  command
      .add_option(
          "--space", values_->job.kernel_space,
          "of a kernel of yours (*.cu or *.c, as the operator): its parameters, restrictions, "
          "launch and what it computes (docs/howto/tune-a-kernel.md); searched as a template "
          "is")
      ->type_name("FILE.toml");
  command
      .add_option("--parameter", values_->job.parameters,
                  "of the policy: NAME=NUMBER, any number of them")
      ->type_name("NAME=NUMBER");
  command
      .add_option("--model", values_->model,
                  "the cost model that the search begins with: a file of kiln model train, or the "
                  "name of one that is kept")
      ->type_name("FILE|NAME");
  command
      .add_option("--model-parameter", values_->job.model_parameters,
                  "of the cost model: NAME=NUMBER, any number of them (docs/cost-models.md)")
      ->type_name("NAME=NUMBER");
  AddStops(command);
  AddRounds(command);
  command.add_flag("--no-warm-start", values_->no_warm_start,
                   "use nothing that other jobs measured, and tune what they have tuned: for "
                   "comparisons of searches");
}

void JobFlags::AddTo(CLI::App& command) {
  AddTasks(command);
  AddSearch(command);
  command.add_option("--name", values_->job.name, "of the job [the operator]");
  command.add_option("--priority", values_->job.priority, "over other jobs, higher first")
      ->capture_default_str();
  AddMeasuring(command);
  AddReferenceLimit(command);
}

void JobFlags::SetLimits(v1::TuneOptions& options) const {
  const bool given = IsGiven(values_->trials_option);
  options.set_time_budget_s(60 * values_->minutes);
  options.set_reference_limit_s(values_->reference_limit_s);
  options.set_trials(values_->minutes > 0 && !given ? kMaxTrials : values_->trials);
}

std::string JobFlags::Target() const {
  return TargetOfKernel(values_->ops.empty() ? "" : values_->ops[0], values_->job.target,
                        !IsGiven(values_->target_option));
}

JobDescription JobFlags::Job(const std::string& target_text) const {
  JobDescription job = values_->job;
  if (!values_->ops.empty()) job.arguments.op = values_->ops[0];
  for (size_t i = 1; i < values_->ops.size(); ++i) job.more.push_back(values_->ops[i]);
  job.target = target_text;
  job.faults = values_->measuring.faults();
  v1::TuneOptions& options = job.options;
  SetLimits(options);
  options.set_seed(values_->seed);
  if (IsGiven(values_->policy_option)) options.set_policy(values_->policy);
  options.set_cost_model(values_->model);
  options.set_early_stopping(values_->early_stopping);
  options.set_total_early_stopping(values_->total_early_stopping);
  options.set_objective(values_->objective);
  options.set_latency_target_s(1e-3 * values_->latency_target_ms);
  options.set_trials_per_round(values_->trials_per_round);
  options.set_task_strategy(values_->task_strategy);
  options.set_task_alpha(values_->task_alpha);
  options.set_task_beta(values_->task_beta);
  options.set_task_window(values_->task_window);
  options.set_lock_step(values_->lock_step);
  options.set_no_warm_start(values_->no_warm_start);
  // Lock step must give the same result each time. If programs use the host's cores, the builders
  // have the cores that seem idle.
  const auto target = target::ParseTarget(job.target);
  const bool host_rests =
      target.ok() && target->kind->runs_programs && !target->kind->uses_host_cores;
  values_->measuring.Set(!values_->lock_step && host_rests, options);
  return job;
}

void MarkMostUsed(CLI::App& command, const char* place) {
  for (const char* name : {"--args", "--target", "--trials", "--minutes", place})
    command.get_option(name)->group(kMostUsed);
}

}  // namespace kiln::client
