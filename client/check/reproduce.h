// One recorded trial once more, alone: built and measured by child processes of this program, so
// that what crashed then may crash again.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct TrialRequest {
  v1::Record record;  // with its DAG
  v1::JobSpec spec;   // of its job: seed, tolerance, measure options, faults
};

struct TrialReplay {
  v1::BuildReply build;
  v1::MeasureReply measure;       // unset when the build failed
  std::string reference_problem;  // not empty: nothing to compare with, so nothing was measured
  // The commands that were run, to be run by hand on the files that are kept.
  std::string build_command, measure_command;
};

// The files go to `folder`, which must be there.
StatusOr<TrialReplay> ReplayTrial(const TrialRequest& request, const std::string& folder);

}  // namespace kiln::client
