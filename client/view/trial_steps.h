// A trial from its choice to its commit as steps, one after another: the waits, the calls, and the
// phases within the calls. The scheduler's clock tells the steps, and the workers tell how long the
// phases took.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

enum class StepKind { kWait, kBuild, kRun, kPhase };

struct TrialStep {
  // "build"; of a phase "compile".
  std::string_view name = {};
  StepKind kind = StepKind::kWait;
  // Unix time. A phase stands behind the step that it is a part of, and lies within it.
  int64_t begin_us = 0, end_us = 0;

  double seconds() const { return static_cast<double>(end_us - begin_us) / 1e6; }
};

// Returns the steps that the trial came to, in order; none if no instants are known, as of a trial
// of an earlier Kiln or of a log. Instants and phases that cannot be, as others may have written
// them, are left out or cut.
//
// A phase's time is known, and not its begin: phases stand in their usual order from the begin of
// the call on. What is left of the call is its last phase, the way to the worker and back. A check
// after the last run counts with the first one.
std::vector<TrialStep> StepsOf(const v1::TrialResult& result);

// Returns a table of the steps with bars, `columns` wide (0: 80), under a line that names the trial
// and its workers.
std::string StepsText(const v1::Record& record, const std::vector<TrialStep>& steps, int columns);

// Returns {"trial":"3f2a/17","trace_id":"0af7..","builder":"b1","runner":"r1","seconds":4.1,
// "steps":[{"step":"build","within":"","at_s":0.01,"seconds":0.4},
// {"step":"compile","within":"build",..},..]}.
std::string StepsJson(const v1::Record& record, const std::vector<TrialStep>& steps);

}  // namespace kiln::client
