// By task of a job: the program that answers are compared with (its reference), who waits for it,
// and what requests to runners say of the task.
//
// The reference is the unscheduled program of the computation with its large sums in float64
// (compiler/dag/wide_sums.h). It is built once, and where there is a second builder once more by
// that: a candidate is compared with what another builder than its own has made. What builders make
// must have the arguments of the computation (program_interface.h), and give what the interpreter
// does for a few elements (known_outputs.h). A reference that takes longer than the job allows is given up for one that
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
  // Elements of the reference's outputs by the interpreter.
  std::shared_ptr<const std::vector<v1::KnownElements>> known;
};

class TaskReferences {
 public:
  TaskReferences(const v1::TuneOptions& options, const std::vector<DispatchTask>& tasks);

  // ---- building
  // True: nobody has asked for it before, so it is to be built.
  bool Request(int task);
  // Of the program to build.
  std::string DagOf(int task) const;
  // Of a candidate or, if so, of the reference. InvalidArgument: the builder made another program.
  Status CheckProgram(int task, bool is_reference, const v1::Artifact& artifact) const;
  // From now on it is there, by that builder; returns the items that have waited for it. Some tenths
  // of a second for the first one.
  std::vector<RunItemPtr> SetBuilt(int task, v1::Artifact artifact, const std::string& builder);
  // A candidate of this builder has come. True, once: only it has made a reference, and another
  // should make one.
  bool NeedsOther(int task, const std::string& builder);
  // Keeps the item until the reference is there; gives it back when it is.
  RunItemPtr Await(RunItemPtr item);

  // ---- measuring
  // Of a candidate of this builder. None: the reference is not there (any more).
  std::optional<AnswerCheck> CheckOf(int task, const std::string& builder) const;
  // The reference took longer than the job allows. What the caller is to do:
  enum class Instead {
    kBuildSample,  // build the reference anew, which is that of a sample now
    kUseSample,    // another has done so
    kWait,         // measure again: no sample can be made
  };
  Instead GiveUp(int task);
  // This reference fails on a device. True: it never ran, there is none of another builder, and it
  // fails so often that nothing can be checked.
  bool NoteFailure(int task, const v1::Artifact& reference);
  // It fails with inputs that are not those of the trials.
  void AvoidOtherInputs(int task);
  // A result of the task: the reference ran.
  void NoteResult(int task, const store::Record& record, std::optional<double> reference_cost_s);

  // What the user should know of how answers are checked, a sentence each.
  std::vector<std::string> notices() const;

 private:
  struct Reference {
    std::shared_ptr<const v1::Artifact> artifact;
    std::string builder;
  };
  struct Task {
    std::string dag;
    bool runs = false;                   // programs of its target are run
    std::vector<v1::ArgSpec> arguments;  // of its programs; none: they are not checked
    v1::Tolerance tolerance;
    std::string description;
    double plain_s = 0;
    std::optional<TaskSample> sample;
    bool requested = false;
    bool unlimited = false;
    std::string notice;                 // "": nothing to say
    std::vector<Reference> references;  // of different builders; the first is the one to use
    bool other_requested = false;
    std::shared_ptr<const std::vector<v1::KnownElements>> known;  // null: not computed yet
    std::vector<RunItemPtr> waiting;                              // for the reference
    bool ran = false;
    int failures = 0;
    bool other_inputs_fail = false;
    std::optional<double> best_cost_s;
    std::optional<double> reference_cost_s;
  };

  std::string TextOf(const Task& task) const;
  std::string NoticeOf(const Task& task, bool took_too_long) const;

  const double limit_s_;
  const uint64_t seed_;
  const bool is_kernel_;  // is the reference a kernel, and not loops?
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace kiln::scheduler
