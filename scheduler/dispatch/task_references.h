// For each task of a job: the program that answers are compared with (its reference), the items
// that wait for it, and the facts of the task in requests to runners.
//
// The reference is the unscheduled program of the computation with its large sums in float64
// (compiler/dag/wide_sums.h). The reference is built once, and a second time by another builder if
// there is one: a candidate is compared with a reference that another builder has made. Programs
// from builders must have the arguments of the computation (program_interface.h) and agree with the
// interpreter in a few elements (known_outputs.h). If a reference takes longer than the job allows,
// a reference that computes a sample of the outputs replaces it (sampled_reference.h). If no such
// sample exists, the reference may take as long as runners allow; so may a hand-written kernel that
// serves as the reference.
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
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_items.h"

namespace kiln::scheduler {

// How answers of a task are checked now, and its known costs.
struct AnswerCheck {
  std::shared_ptr<const v1::Artifact> reference;
  v1::Tolerance tolerance;
  std::vector<v1::OutputSample> samples;  // empty: all elements are compared
  bool unlimited = false;                 // the reference may take as long as runners allow
  // Whether candidates are measured again with the inputs of their trials: the reference fails with
  // others, or the time depends on the values of an index, which others would draw anew.
  bool same_inputs = false;
  std::optional<double> best_cost_s;
  std::optional<double> reference_cost_s;
  // Elements of the reference's outputs, computed by the interpreter.
  std::shared_ptr<const std::vector<v1::KnownElements>> known;
};

class TaskReferences {
 public:
  TaskReferences(const v1::TuneOptions& options, const std::vector<DispatchTask>& tasks);

  // ---- building
  // Returns true on the first call for a task: the caller then has the reference built.
  bool Request(int task);
  // Returns the text of the program to build as the reference.
  std::string DagOf(int task) const;
  // Checks the program of a candidate, or of the reference if `is_reference`. InvalidArgument if
  // the builder made another program.
  Status CheckProgram(int task, bool is_reference, const v1::Artifact& artifact) const;
  // Adds the reference by that builder. Returns the items that have waited for it. The first call
  // takes some tenths of a second.
  std::vector<RunItemPtr> SetBuilt(int task, v1::Artifact artifact, const std::string& builder);
  // Asks on behalf of a candidate that this builder has made. Returns true, once, if only the same
  // builder has made a reference: another builder should make one.
  bool NeedsOther(int task, const std::string& builder);
  // Keeps the item until the reference is built. Returns the item if it is built already.
  RunItemPtr Await(RunItemPtr item);

  // ---- measuring
  // Returns the check for a candidate of this builder, or nothing while there is no reference.
  std::optional<AnswerCheck> CheckOf(int task, const std::string& builder) const;
  // The caller's next step after a reference took longer than the job allows:
  enum class SlowReferenceAction {
    kBuildSample,  // build the reference anew, which now computes a sample
    kUseSample,    // use the sample that another call has asked for
    kWait,         // measure again: no sample can be made
  };
  SlowReferenceAction GiveUp(int task);
  // Notes that this reference fails on a device. Returns true if nothing can be checked: there is
  // no reference of another builder, none ever ran, and this one has failed too often.
  bool NoteFailure(int task, const v1::Artifact& reference);
  // Notes that the reference fails with inputs that are not those of the trials.
  void AvoidOtherInputs(int task);
  // Notes a result of the task, which shows that the reference runs.
  void NoteResult(int task, const store::Record& record, std::optional<double> reference_cost_s);

  // Returns sentences for the user about how answers are checked.
  std::vector<std::string> notices() const;

 private:
  struct Reference {
    std::shared_ptr<const v1::Artifact> artifact;
    std::string builder;
  };
  struct Task {
    std::string dag;
    bool runs = false;  // whether programs of the task's target are run
    // Arguments of the task's programs; empty: they are not checked.
    std::vector<v1::ArgSpec> arguments;
    v1::Tolerance tolerance;
    std::string description;
    double plain_s = 0;
    std::optional<SampledReference> sample;
    bool requested = false;
    bool unlimited = false;
    std::string notice;                 // "" if there is nothing to tell
    std::vector<Reference> references;  // from different builders; the first is used by default
    bool other_requested = false;
    std::shared_ptr<const std::vector<v1::KnownElements>> known;  // null until it is computed
    // Items that wait for the reference.
    std::vector<RunItemPtr> waiting;
    bool ran = false;
    int failures = 0;
    bool same_inputs = false;
    std::optional<double> best_cost_s;
    std::optional<double> reference_cost_s;
  };

  std::string TextOf(const Task& task) const;
  std::string NoticeOf(const Task& task, bool took_too_long) const;

  const double limit_s_;
  const uint64_t seed_;
  const bool is_kernel_;  // whether the reference is a hand-written kernel and not loops
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace kiln::scheduler
