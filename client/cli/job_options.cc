#include "client/cli/job_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/cli/flag_table.h"
#include "client/cli/kernel_source.h"
#include "client/view/format.h"
#include "compiler/target/target.h"
#include "search/policies/policy.h"
#include "search/tuning/objective.h"

namespace kiln::client {
namespace {

constexpr char kGroup[] = "Measuring";

// In messages 0 means "not given" and leaves the number to the scheduler.
int FinalistsOnTheWire(int finalists) {
  if (finalists == 0) return -1;
  return finalists == kDefaultFinalists ? 0 : finalists;
}

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

// ---- measuring ------------------------------------------------------------------------------

CLI::Option* MeasuringOptions::AddNumber(CLI::App& command, const char* name, uint32_t& value,
                                         uint32_t least, uint32_t most, const char* what) {
  return command.add_option(name, value, what)
      ->check(CLI::Range(least, most))
      ->capture_default_str()
      ->group(kGroup);
}

void MeasuringOptions::AddFinalists(CLI::App& command) {
  command
      .add_option("--finalists", finalists_,
                  "so many of each task's best are measured again at the end, at length; 0 = none")
      ->check(CLI::Range(0, kMostFinalists))
      ->capture_default_str()
      ->group(kGroup);
}

void MeasuringOptions::AddIdle(CLI::App& command) {
  command
      .add_option("--idle-ms", idle_ms_,
                  fmt::format("where no other trial waits for the device, more timings for up to "
                              "so long; {} on GPUs, 0 (none) elsewhere and with --number, "
                              "--repeat or --lock-step",
                              kDefaultIdleMs))
      ->check(CLI::Range(0, static_cast<int>(kLongestIdleMs)))
      ->group(kGroup);
}

void MeasuringOptions::AddFault(CLI::App& command) {
  command
      .add_option("--fault", faults_,
                  "TRIAL:FAULT builds a broken program into a trial, to see what becomes of it "
                  "(null-store, infinite-loop, wrong-answer, trap, out-of-bounds, compiler-crash, "
                  "compiler-hang)")
      ->type_name("TRIAL:FAULT")
      ->group(kGroup);
}

void MeasuringOptions::AddTo(CLI::App& command) {
  exact_.push_back(AddNumber(command, "--number", number_, 1, kMostCalls,
                             "calls of the program that are timed at once"));
  exact_.push_back(AddNumber(command, "--repeat", repeat_, 1, kMostCalls,
                             "timings of each candidate; their mean counts"));
  AddNumber(command, "--min-repeat-ms", min_repeat_ms_, 0, kLongestMs,
            "least time of one timing: more calls if it is shorter");
  AddFinalists(command);
  AddIdle(command);
  AddTolerance(command, tolerance_)->group(kGroup);
  AddNumber(command, "--cooldown-ms", cooldown_ms_, 0, kLongestMs, "pause after each trial");
  AddNumber(command, "--timeout-ms", timeout_ms_, 1, kLongestMs, "limit of one trial's run");
  AddNumber(command, "--build-timeout-ms", build_timeout_ms_, 1, kLongestMs, "limit of one build");
  command.add_flag("--flush-cache", flush_cache_, "empty the caches before each timing")
      ->group(kGroup);
  AddFault(command);
}

// Returns the time of idle timings. If the user gave exact numbers of timings, there are no more.
uint32_t MeasuringOptions::IdleMs(bool may_idle) const {
  if (idle_ms_.has_value()) return *idle_ms_;
  const bool exact =
      std::ranges::any_of(exact_, [](const CLI::Option* option) { return option->count() > 0; });
  return exact || !may_idle ? 0 : kDefaultIdleMs;
}

void MeasuringOptions::Set(bool may_idle, v1::TuneOptions& options) const {
  options.set_finalists(FinalistsOnTheWire(finalists_));
  options.set_build_timeout_ms(build_timeout_ms_);
  if (!tolerance_.empty()) *options.mutable_tolerance() = ToleranceOf(tolerance_);
  v1::MeasureOptions& measure = *options.mutable_measure();
  measure.set_number(number_);
  measure.set_repeat(repeat_);
  measure.set_min_repeat_ms(min_repeat_ms_);
  measure.set_cooldown_ms(cooldown_ms_);
  measure.set_timeout_ms(timeout_ms_);
  measure.set_flush_cache(flush_cache_);
  measure.set_idle_ms(IdleMs(may_idle));
}

// ---- a job ----------------------------------------------------------------------------------

void JobOptions::AddTasks(CLI::App& command) {
  command.add_option(
      "op", ops_,
      "an operator (kiln ops), a network (network:resnet-18, model.onnx), text files "
      "(*.te), each a task of the job, or a kernel (*.cu, *.c) with --space");
  AddWorkloadArguments(command, job_.arguments);
  command
      .add_option("--tasks", job_.tasks_path,
                  "instead: a file with a task a line: WEIGHT OPERATOR ARGS EPILOGUE, or WEIGHT "
                  "*.te")
      ->type_name("FILE");
  command
      .add_option(
          "--variants", job_.variants,
          "which variants of a convolution; others than direct take weights that are prepared "
          "before [direct; of networks all]")
      ->check(CLI::IsMember({kDirectVariants, kWinogradVariants, kAllVariants}));
  AddNetworkArguments(command, job_.network);
  AddLayoutRewrite(command, job_.layout_rewrite);
  command
      .add_flag("--include-simple-tasks", job_.include_simple,
                "of a network also what has no sums: elementwise functions and moves")
      ->group("Networks");
  command
      .add_option("--input-range", job_.input_ranges,
                  "values that an input gets when programs are checked, for instance x=0.5:2 for "
                  "log(x); [-1 to 1, integers -8 to 7]; any number of them")
      ->type_name("NAME=LOW:HIGH")
      ->allow_extra_args(false);
  command.add_option("--weights", job_.weights, "uses of each task in the network [1,1,...]")
      ->delimiter(',')
      ->type_name("N,N,...");
  job_.target.clear();
  target_given_.push_back(command.add_option(
      "--target", job_.target,
      "llvm, llvm -mcpu=..., cuda, or null (measures nothing) [what the scheduler's devices are; "
      "without one the GPU of this machine, or its CPU; of a kernel *.cu cuda, *.c llvm]"));
  AddMath(command, job_.target);
  command.add_option("--device", job_.device,
                     "which of several devices: a name (H200), a UUID (GPU-1f0c...), any other key "
                     "that kiln workers lists; without a scheduler also an index (0) [any]");
}

void JobOptions::AddTrials(CLI::App& command, const std::string& what, uint32_t least) {
  trials_given_.push_back(command.add_option("--trials", trials_, what)
                              ->check(CLI::Range(least, kMostTrials))
                              ->capture_default_str());
}

void JobOptions::AddSeed(CLI::App& command) {
  command.add_option("--seed", seed_, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
}

void JobOptions::AddStops(CLI::App& command) {
  command
      .add_option("--early-stopping", early_stopping_,
                  "stop a task after so many trials without improvement; 0 = never")
      ->capture_default_str();
  command
      .add_option("--total-early-stopping", total_early_stopping_,
                  "stop after so many trials that improved no task; 0 = never")
      ->capture_default_str();
  command.add_option("--objective", objective_, "of the tasks' latencies, what is to be small")
      ->check(CLI::IsMember(search::ObjectiveNames()))
      ->capture_default_str();
  command
      .add_option("--latency-target-ms", latency_target_ms_,
                  "stop when the objective is so small; 0 = never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void JobOptions::AddReferenceLimit(CLI::App& command) {
  command
      .add_option("--reference-limit", reference_limit_s_,
                  "seconds that the unscheduled loops may take; of those that take longer answers "
                  "are compared at a sample of the outputs")
      ->check(CLI::Range(0.001, kLongestReference_s))
      ->capture_default_str()
      ->group(kGroup);
}

void JobOptions::AddRounds(CLI::App& command) {
  command
      .add_option("--trials-per-round", trials_per_round_,
                  fmt::format("candidates that are proposed at once; 0 = {}, fewer for many tasks",
                              kDefaultTrialsPerRound))
      ->capture_default_str();
  command.add_option("--task-strategy", task_strategy_, "which task is next")
      ->check(CLI::IsMember({"gradient", "round-robin"}))
      ->capture_default_str();
  command.add_flag(
      "--lock-step", lock_step_,
      "search and measure in turns: the same seed proposes the same for the same costs");
}

void JobOptions::AddSearch(CLI::App& command) {
  AddTrials(command, "candidates to measure; 0: only show what would be tuned", 0);
  command
      .add_option("--minutes", minutes_,
                  "end after so long, the last readings of the best included; without --trials as "
                  "many candidates as that allows; 0 = no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddSeed(command);
  policy_given_.push_back(command.add_option("--policy", policy_, PolicyHelp())
                              ->check(CheckPolicy)
                              ->capture_default_str());
  command
      .add_option("--template", job_.schedule_template,
                  "the template that policies template.* search: one of kiln templates, or a file "
                  "(*.tmpl) [that of the operator]; without --policy, template.xgb searches it")
      ->type_name("NAME|FILE");
  command
      .add_option(
          "--space", job_.kernel_space,
          "of a kernel of yours (*.cu or *.c, as the operator): its parameters, restrictions, "
          "launch and what it computes (docs/howto/tune-a-kernel.md); searched as a template "
          "is")
      ->type_name("FILE.toml");
  command
      .add_option("--parameter", job_.parameters, "of the policy: NAME=NUMBER, any number of them")
      ->type_name("NAME=NUMBER");
  command
      .add_option("--model", model_,
                  "the cost model that the search begins with: a file of kiln model train, or the "
                  "name of one that is kept")
      ->type_name("FILE|NAME");
  command
      .add_option("--model-parameter", job_.model_parameters,
                  "of the cost model: NAME=NUMBER, any number of them (docs/cost-models.md)")
      ->type_name("NAME=NUMBER");
  AddStops(command);
  AddRounds(command);
  command.add_flag("--no-warm-start", no_warm_start_,
                   "use nothing that earlier jobs measured: for comparisons of searches");
}

void JobOptions::AddTo(CLI::App& command) {
  AddTasks(command);
  AddSearch(command);
  command.add_option("--name", job_.name, "of the job [the operator]");
  command.add_option("--priority", job_.priority, "over other jobs, higher first")
      ->capture_default_str();
  AddMeasuring(command);
  AddReferenceLimit(command);
}

void JobOptions::SetLimits(v1::TuneOptions& options) const {
  const bool given =
      std::ranges::any_of(trials_given_, [](const CLI::Option* o) { return o->count() > 0; });
  options.set_time_budget_s(60 * minutes_);
  options.set_reference_limit_s(reference_limit_s_);
  options.set_trials(minutes_ > 0 && !given ? kMostTrials : trials_);
}

std::string JobOptions::Policy() const {
  const bool given = std::ranges::any_of(
      policy_given_, [](const CLI::Option* option) { return option->count() > 0; });
  if (given || (job_.schedule_template.empty() && job_.kernel_space.empty())) return policy_;
  for (const search::PolicyKind* kind : search::Policies()) {
    if (kind->uses_template) return std::string(kind->name);
  }
  return policy_;
}

std::string JobOptions::Target() const {
  const bool default_target = std::ranges::all_of(
      target_given_, [](const CLI::Option* option) { return option->count() == 0; });
  return TargetOfKernel(ops_.empty() ? "" : ops_[0], job_.target, default_target);
}

JobFlags JobOptions::Job(const std::string& target_text) const {
  JobFlags job = job_;
  if (!ops_.empty()) job.arguments.op = ops_[0];
  for (size_t i = 1; i < ops_.size(); ++i) job.more.push_back(ops_[i]);
  job.target = target_text;
  job.faults = measuring_.faults();
  v1::TuneOptions& options = job.options;
  SetLimits(options);
  options.set_seed(seed_);
  options.set_policy(Policy());
  options.set_cost_model(model_);
  options.set_early_stopping(early_stopping_);
  options.set_total_early_stopping(total_early_stopping_);
  options.set_objective(objective_);
  options.set_latency_target_s(1e-3 * latency_target_ms_);
  options.set_trials_per_round(trials_per_round_);
  options.set_task_strategy(task_strategy_);
  options.set_lock_step(lock_step_);
  options.set_no_warm_start(no_warm_start_);
  // Lock step must give the same result each time. If programs use the host's cores, the builders
  // have the cores that seem idle.
  const auto target = target::ParseTarget(job.target);
  const bool host_rests =
      target.ok() && target->kind->runs_programs && !target->kind->uses_host_cores;
  measuring_.Set(!lock_step_ && host_rests, options);
  return job;
}

}  // namespace kiln::client
