// By task of a job: the program that answers are compared with (its reference), who waits for it,
// and what requests to runners say of the task.
//
// A reference is built once. One that takes longer than the job allows is given up for one that
// computes a sample of the outputs (task_sample.h), and where there is no such sample it may take
// as long as runners allow. So may a hand-written kernel that is one.
//
// Thread-safe: one mutex, under which nothing else is called.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "proto/runner.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/dispatch.h"
#include "scheduler/dispatch_items.h"

namespace kiln::scheduler {

// How answers of a task are checked now, and what is known of its costs.
struct AnswerCheck {
  std::shared_ptr<const v1::Artifact> reference;
  v1::Tolerance tolerance;
  std::vector<v1::OutputSample> samples;  // none: all elements
  bool unlimited = false;                 // the reference may take what runners allow
  bool other_inputs_fail = false;         // of the reference
  std::optional<double> best_cost_s;
  std::optional<double> reference_cost_s;
};

class TaskReferences {
 public:
  TaskReferences(const v1::TuneOptions& options, const std::vector<DispatchTask>& tasks);

  // ---- building
  // True: nobody has asked for it before, so it is to be built.
  bool Request(int task);
  // Of the program to build.
  std::string DagOf(int task) const;
  // From now on it is there; returns the items that have waited for it.
  std::vector<RunItemPtr> SetBuilt(int task, v1::Artifact artifact);
  // Keeps the item until the reference is there; gives it back when it is.
  RunItemPtr Await(RunItemPtr item);

  // ---- measuring
  // None: the reference is not there (any more).
  std::optional<AnswerCheck> CheckOf(int task) const;
  // The reference took longer than the job allows. What the caller is to do:
  enum class Instead {
    kBuildSample,  // build the reference anew, which is that of a sample now
    kUseSample,    // another has done so
    kWait,         // measure again: no sample can be made
  };
  Instead GiveUp(int task);
  // The reference fails on a device. True: it never ran, and fails so often that nothing can be
  // checked.
  bool NoteFailure(int task);
  // It fails with inputs that are not those of the trials.
  void AvoidOtherInputs(int task);
  // A result of the task: the reference ran.
  void NoteResult(int task, const store::Record& record, std::optional<double> reference_cost_s);

  // What the user should know of how answers are checked, a sentence each.
  std::vector<std::string> notices() const;

 private:
  struct Task {
    std::string dag;
    v1::Tolerance tolerance;
    std::string description;
    double plain_s = 0;
    std::optional<TaskSample> sample;
    bool requested = false;
    bool unlimited = false;
    std::string notice;  // "": nothing to say
    std::shared_ptr<const v1::Artifact> reference;
    std::vector<RunItemPtr> waiting;  // for it
    bool ran = false;
    int failures = 0;
    bool other_inputs_fail = false;
    std::optional<double> best_cost_s;
    std::optional<double> reference_cost_s;
  };

  std::string NoticeOf(const Task& task, bool took_too_long) const;

  const double limit_s_;
  const uint64_t seed_;
  const bool is_kernel_;  // is the reference a kernel, and not loops?
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace kiln::scheduler
