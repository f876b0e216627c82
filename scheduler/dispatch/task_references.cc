#include "scheduler/dispatch/task_references.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "compiler/dag/text.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/handwritten/kernel_text.h"
#include "compiler/target/target.h"
#include "scheduler/dispatch/known_outputs.h"
#include "scheduler/dispatch/program_interface.h"
#include "scheduler/values/answer_tolerance.h"

namespace kiln::scheduler {
namespace {

// A reference that has failed so often, and has never succeeded, ends the job.
constexpr int kMaxFailures = 3;

bool RunsPrograms(const std::string& target) {
  const auto parsed = target::ParseTarget(target);
  return parsed.ok() && parsed->kind->runs_programs;
}

// Tells whether the argument is an index whose values are drawn.
bool IsRandomIndex(const v1::ArgSpec& argument) {
  return argument.role() == v1::ArgSpec::INPUT && argument.index_limit() > 0 &&
         argument.range().run() == 0;
}

}  // namespace

TaskReferences::TaskReferences(const v1::TuneOptions& options,
                               const std::vector<DispatchTask>& tasks)
    : limit_s_(options.reference_limit_s()),
      seed_(options.seed()),
      is_kernel_(handwritten::HasReferenceKernel(options.kernel())),
      tasks_(tasks.size()) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    Task& task = tasks_[i];
    task.dag = tasks[i].dag;
    task.runs = RunsPrograms(tasks[i].target);
    const auto text = dag::ParseDagText(task.dag);
    if (task.runs && text.ok()) task.arguments = ArgumentsOf(*text);
    task.same_inputs = std::ranges::any_of(task.arguments, IsRandomIndex);
    task.tolerance = AnswerTolerance(options.tolerance(), tasks[i].dag, tasks[i].target);
    task.description = tasks[i].description;
    task.plain_s = tasks[i].plain_s;
    task.sample = tasks[i].sample;
    task.best_cost_s = tasks[i].best_cost_s;
    task.reference_cost_s = tasks[i].reference_cost_s;
    if (task.sample.has_value()) task.notice = NoticeOf(task, false);
  }
}

// ---- building -------------------------------------------------------------------------------

bool TaskReferences::Request(int task) {
  std::lock_guard lock(mutex_);
  return !std::exchange(tasks_[task].requested, true);
}

// Releases the lock for the transformation, which may take a while. A task's texts do not change
// meanwhile, but a sample may be set.
std::string TaskReferences::DagOf(int task) const {
  std::unique_lock lock(mutex_);
  const std::string text = TextOf(tasks_[task]);
  const bool is_loops = tasks_[task].runs && !is_kernel_;
  lock.unlock();
  return is_loops ? dag::ReferenceText(text) : text;
}

std::string TaskReferences::TextOf(const Task& task) const {
  return task.sample.has_value() ? task.sample->dag : task.dag;
}

Status TaskReferences::CheckProgram(int task, bool is_reference,
                                    const v1::Artifact& artifact) const {
  std::unique_lock lock(mutex_);
  if (tasks_[task].arguments.empty()) return OkStatus();
  const bool is_sample = is_reference && tasks_[task].sample.has_value();
  if (!is_sample) return CheckPlan(tasks_[task].arguments, artifact.plan());
  const std::string text = TextOf(tasks_[task]);
  lock.unlock();
  KILN_ASSIGN_OR_RETURN(const dag::DagText sample, dag::ParseDagText(text));
  return CheckPlan(ArgumentsOf(sample), artifact.plan());
}

std::vector<RunItemPtr> TaskReferences::SetBuilt(int task, v1::Artifact artifact,
                                                 const std::string& builder) {
  auto built = std::make_shared<const v1::Artifact>(std::move(artifact));
  std::unique_lock lock(mutex_);
  Task& of = tasks_[task];
  if (of.known == nullptr) {
    const bool is_loops = of.runs && !is_kernel_;
    const std::string description = of.description;
    lock.unlock();
    auto known = std::make_shared<std::vector<v1::KnownElements>>();
    const auto text = dag::ParseDagText(DagOf(task));
    if (is_loops && text.ok()) {
      auto computed = KnownOutputs(*text, seed_);
      // Without known outputs, programs are compared only with each other.
      if (!computed.ok()) LogInfo("{}: {}", description, Message(computed.status()));
      if (computed.ok()) *known = *std::move(computed);
    }
    lock.lock();
    of.known = std::move(known);
  }
  const auto is_same = [&](const Reference& known) {
    return known.artifact->digest() == built->digest();
  };
  // Two builders that agree have made the same program, so it counts as neither builder's own.
  const auto same = std::ranges::find_if(of.references, is_same);
  if (same != of.references.end()) {
    if (same->builder != builder) same->builder.clear();
  } else {
    of.references.push_back({std::move(built), builder});
  }
  return std::exchange(of.waiting, {});
}

bool TaskReferences::NeedsOther(int task, const std::string& builder) {
  std::lock_guard lock(mutex_);
  Task& of = tasks_[task];
  if (of.references.size() != 1 || of.references[0].builder != builder) return false;
  return of.runs && !std::exchange(of.other_requested, true);
}

RunItemPtr TaskReferences::Await(RunItemPtr item) {
  std::lock_guard lock(mutex_);
  Task& task = tasks_[item->task];
  if (!task.references.empty()) return item;
  task.waiting.push_back(std::move(item));
  return nullptr;
}

// ---- measuring ------------------------------------------------------------------------------

std::optional<AnswerCheck> TaskReferences::CheckOf(int task, const std::string& builder) const {
  std::lock_guard lock(mutex_);
  const Task& of = tasks_[task];
  if (of.references.empty()) return std::nullopt;
  const auto of_another = [&](const Reference& reference) { return reference.builder != builder; };
  const auto found = std::ranges::find_if(of.references, of_another);
  AnswerCheck check;
  check.reference = found == of.references.end() ? of.references[0].artifact : found->artifact;
  check.known = of.known;
  check.tolerance = of.tolerance;
  if (of.sample.has_value()) check.samples = of.sample->outputs;
  check.unlimited = of.unlimited;
  check.same_inputs = of.same_inputs;
  check.best_cost_s = of.best_cost_s;
  check.reference_cost_s = of.reference_cost_s;
  return check;
}

TaskReferences::SlowReferenceAction TaskReferences::GiveUp(int task) {
  Task& of = tasks_[task];
  const auto dag = dag::ParseDagText(of.dag);  // the text does not change, so no lock is needed
  StatusOr<SampledReference> sample =
      is_kernel_ ? StatusOr<SampledReference>(Unimplemented("a kernel computes all of its outputs"))
      : dag.ok() ? MakeSampledReference(*dag, seed_)
                 : StatusOr<SampledReference>(dag.status());
  std::lock_guard lock(mutex_);
  // Another item of the task may have given the reference up before.
  if (of.unlimited) return SlowReferenceAction::kWait;
  if (of.sample.has_value()) return SlowReferenceAction::kUseSample;
  if (sample.ok()) {
    of.sample = *std::move(sample);
    of.references.clear();
    of.known = nullptr;
    of.other_requested = false;
  } else {
    of.unlimited = true;
  }
  of.notice = NoticeOf(of, true);
  return of.unlimited ? SlowReferenceAction::kWait : SlowReferenceAction::kBuildSample;
}

bool TaskReferences::NoteFailure(int task, const v1::Artifact& reference) {
  std::lock_guard lock(mutex_);
  Task& of = tasks_[task];
  if (of.references.size() > 1) {
    std::erase_if(of.references, [&](const Reference& known) {
      return known.artifact->digest() == reference.digest();
    });
    return false;
  }
  return !of.ran && ++of.failures >= kMaxFailures;
}

void TaskReferences::AvoidOtherInputs(int task) {
  std::lock_guard lock(mutex_);
  tasks_[task].same_inputs = true;
}

void TaskReferences::NoteResult(int task, const store::Record& record,
                                std::optional<double> reference_cost_s) {
  std::lock_guard lock(mutex_);
  Task& of = tasks_[task];
  of.ran = true;
  if (!of.reference_cost_s.has_value()) of.reference_cost_s = reference_cost_s;
  if (record.error != store::kNoError || record.stopped_early) return;
  const double cost_s = store::MeanCost(record);
  if (!of.best_cost_s.has_value() || cost_s < *of.best_cost_s) of.best_cost_s = cost_s;
}

// ---- for people -----------------------------------------------------------------------------

std::string TaskReferences::NoticeOf(const Task& task, bool took_too_long) const {
  const std::string why = took_too_long ? fmt::format("take more than {:.4g} s", limit_s_)
                                        : fmt::format("would take about {:.0f} s, more than {:.4g}",
                                                      task.plain_s, limit_s_);
  if (!task.sample.has_value()) {
    if (is_kernel_) {
      return fmt::format("{}: the reference kernel takes more than {:.4g} s, and is waited for",
                         task.description, limit_s_);
    }
    return fmt::format(
        "{}: the unscheduled loops {}, and no sample of the outputs is cheaper, so "
        "they are waited for",
        task.description, why);
  }
  return fmt::format(
      "{}: answers are compared at {} of {} elements, drawn at random with all dimensions' ends: "
      "the unscheduled loops {} (--reference-limit)",
      task.description, task.sample->elements, task.sample->all, why);
}

std::vector<std::string> TaskReferences::notices() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> notices;
  for (const Task& task : tasks_) {
    if (!task.notice.empty()) notices.push_back(task.notice);
  }
  return notices;
}

}  // namespace kiln::scheduler
