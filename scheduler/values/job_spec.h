// Checks a JobSpec that a user submits, fills in the defaults and puts the texts into their
// canonical form. Pure functions.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/target/target.h"
#include "proto/scheduler.pb.h"
#include "search/templates/template.h"

namespace kiln::scheduler {

inline constexpr std::string_view kGradientStrategy = "gradient";
inline constexpr std::string_view kRoundRobinStrategy = "round-robin";

// Returns the template or hand-written kernel that the policies template.* search, from the options
// of a checked job. Null means that each task gets the template that Kiln ships for it.
StatusOr<search::TemplatePtr> GivenTemplate(const v1::TuneOptions& options);

struct CheckedTask {
  dag::DagPtr dag;
  std::vector<dag::InputRange> ranges;  // ranges of the inputs
  target::Target target;                // the user's part of it; the leased device completes it
  std::string workload_id, workload_key;
  double flop_count = 0;

  dag::DagText text() const { return {dag, ranges}; }
};

struct CheckedJob {
  // Canonical: checking the spec again gives the same spec.
  v1::JobSpec spec;
  // One for each of spec.tasks(), at least one. All have one target.
  std::vector<CheckedTask> tasks;
};

// InvalidArgument says in one sentence which task or option is wrong, what was found, and what was
// expected.
//
// Numbers at 0, and task_alpha if it is unset, get the defaults of proto/job_defaults.h;
// trials_per_round is at most trials per task, and target null gets no finalists and has lock_step
// set. The other defaults: policy "sketch.xgb", weight 1, task_strategy "gradient", objective
// "weighted-sum", name: the first task's description.
//
// Cost: parses and lowers each task, which takes a millisecond for each, and seconds for tens of
// thousands of operators. Cancelled soon after `stop` is requested.
StatusOr<CheckedJob> CheckJobSpec(v1::JobSpec spec, const std::stop_token& stop = {});

// Returns a number that is the same for all tasks that are alternatives of each other.
int GroupOf(const CheckedJob& job, size_t task);

// Estimates the time of the task's unscheduled loops.
double PlainSecondsOf(const CheckedTask& task);

}  // namespace kiln::scheduler
