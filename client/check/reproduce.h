// Repeats one recorded trial alone. Child processes of this program build and measure it, so that a
// crash can happen again without ending this process.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct TrialRequest {
  // The record with its DAG.
  v1::Record record;
  // The specification of its job: seed, tolerance, measure options, faults.
  v1::JobSpec spec;
};

struct TrialReplay {
  v1::BuildReply build;
  // Unset if the build failed.
  v1::MeasureReply measure;
  // Not empty: there is nothing to compare with, so nothing was measured.
  std::string reference_problem;
  // The commands that were run. They can be run by hand on the kept files.
  std::string build_command, measure_command;
};

// Writes the files into `folder`, which must exist.
StatusOr<TrialReplay> ReplayTrial(const TrialRequest& request, const std::string& folder);

}  // namespace kiln::client
