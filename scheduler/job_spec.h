// What a user may submit: checks a JobSpec, fills in the defaults and puts the texts into their
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

// What policies template.* search, as the options of a checked job say: a template, a hand-written
// kernel, or null, which is for each task what Kiln ships.
StatusOr<search::TemplatePtr> GivenTemplate(const v1::TuneOptions& options);

struct CheckedTask {
  dag::DagPtr dag;
  std::vector<dag::InputRange> ranges;  // of its inputs
  target::Target target;  // as far as the user says it; the leased device completes it
  std::string workload_id, workload_key;
  double flop_count = 0;

  dag::DagText text() const { return {dag, ranges}; }
};

struct CheckedJob {
  // Canonical: checking it again gives the same.
  v1::JobSpec spec;
  std::vector<CheckedTask> tasks;  // as many as spec.tasks(), at least one; all of one target
};

// InvalidArgument in one sentence: which task or option, what was found, what was expected.
//
// Defaults that are the scheduler's: trials 64, reference_limit_s 10, policy "sketch.xgb",
// trials_per_round 64 (at most trials per task), weight 1, early_stop_ratio 10 (a negative one
// means never), task_strategy "gradient", objective "weighted-sum", finalists 8 (none for target
// null, which has lock_step set), name: the first task's description.
//
// Cost: parses and lowers each task, a millisecond each, seconds for tens of thousands of
// operators. Cancelled soon after `stop` is requested.
StatusOr<CheckedJob> CheckJobSpec(v1::JobSpec spec, const std::stop_token& stop = {});

// The work of a task: alternatives of each other have one.
int GroupOf(const CheckedJob& job, size_t task);

// What the unscheduled loops of the task take, about.
double PlainSecondsOf(const CheckedTask& task);

}  // namespace kiln::scheduler
