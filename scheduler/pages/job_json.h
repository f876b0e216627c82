// Jobs as the pages show them. Pure functions.
#pragma once

#include <cstddef>

#include "proto/scheduler.pb.h"
#include "scheduler/pages/json.h"
#include "scheduler/pages/round_curve.h"
#include "scheduler/pages/trial_digest.h"
#include "scheduler/words/why.h"
#include "store/record.h"

namespace kiln::scheduler {

// Most tasks of a job that are described.
inline constexpr size_t kMostTasks = 500;

// Returns the job for a list: {"id", "name", "state", "trials_done", "total_s", ...}. Seconds end
// in _s; 0 = not known. `curve` becomes at most 40 points [trials, total].
Json JobRowJson(const v1::JobStatus& job, const RoundCurve& curve);
// Returns the first kMostTasks tasks. "share" is a task's part of the total latency, 0 to 1; 0 for
// a task that is no part of it, such as a variant that another one outruns.
Json TasksJson(const v1::JobStatus& job);
// Returns {"estimate": .., "reasons": [{"kind", "text", "details", "remedy"}]}.
Json WhyJsonOf(const v1::JobStatus& job, const FarmAnswers& farm);
// Returns the options that decide about the search, as texts.
Json OptionsJson(const v1::TuneOptions& options);

// Returns {"complete": .., "read", "trials", "last_record", "rounds", "tasks", "causes"} of a job
// with `trials` trials, all of which the digest has if `complete`.
Json CurveJson(const std::string& job_id, uint64_t trials, bool complete, const RoundCurve& curve,
               const TrialDigest& digest);

// Returns a row of the table of trials.
Json TrialJson(const store::Record& record);

// Returns "kiln trial JOB/7", the command that repeats a trial alone.
std::string TrialCommand(const std::string& job_id, uint32_t trial);

}  // namespace kiln::scheduler
