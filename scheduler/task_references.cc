#include "scheduler/task_references.h"

#include <utility>

#include "compiler/dag/text.h"
#include "compiler/handwritten/kernel_text.h"
#include "scheduler/answer_tolerance.h"

namespace kiln::scheduler {
namespace {

// A reference that fails so often, without one success, ends the job.
constexpr int kMostFailures = 3;

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

std::string TaskReferences::DagOf(int task) const {
  std::lock_guard lock(mutex_);
  const Task& of = tasks_[task];
  return of.sample.has_value() ? of.sample->dag : of.dag;
}

std::vector<RunItemPtr> TaskReferences::SetBuilt(int task, v1::Artifact artifact) {
  auto built = std::make_shared<const v1::Artifact>(std::move(artifact));
  std::lock_guard lock(mutex_);
  tasks_[task].reference = std::move(built);
  return std::exchange(tasks_[task].waiting, {});
}

RunItemPtr TaskReferences::Await(RunItemPtr item) {
  std::lock_guard lock(mutex_);
  Task& task = tasks_[item->task];
  if (task.reference != nullptr) return item;
  task.waiting.push_back(std::move(item));
  return nullptr;
}

// ---- measuring ------------------------------------------------------------------------------

std::optional<AnswerCheck> TaskReferences::CheckOf(int task) const {
  std::lock_guard lock(mutex_);
  const Task& of = tasks_[task];
  if (of.reference == nullptr) return std::nullopt;
  AnswerCheck check;
  check.reference = of.reference;
  check.tolerance = of.tolerance;
  if (of.sample.has_value()) check.samples = of.sample->outputs;
  check.unlimited = of.unlimited;
  check.other_inputs_fail = of.other_inputs_fail;
  check.best_cost_s = of.best_cost_s;
  check.reference_cost_s = of.reference_cost_s;
  return check;
}

TaskReferences::Instead TaskReferences::GiveUp(int task) {
  Task& of = tasks_[task];
  const auto dag = dag::ParseDag(of.dag);  // which does not change
  StatusOr<TaskSample> sample =
      is_kernel_ ? StatusOr<TaskSample>(Unimplemented("a kernel computes all of its outputs"))
      : dag.ok() ? MakeTaskSample(**dag, seed_)
                 : StatusOr<TaskSample>(dag.status());
  std::lock_guard lock(mutex_);
  // Others of the task may have come here before.
  if (of.unlimited) return Instead::kWait;
  if (of.sample.has_value()) return Instead::kUseSample;
  if (sample.ok()) {
    of.sample = *std::move(sample);
    of.reference = nullptr;
  } else {
    of.unlimited = true;
  }
  of.notice = NoticeOf(of, true);
  return of.unlimited ? Instead::kWait : Instead::kBuildSample;
}

bool TaskReferences::NoteFailure(int task) {
  std::lock_guard lock(mutex_);
  Task& of = tasks_[task];
  return !of.ran && ++of.failures >= kMostFailures;
}

void TaskReferences::AvoidOtherInputs(int task) {
  std::lock_guard lock(mutex_);
  tasks_[task].other_inputs_fail = true;
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
