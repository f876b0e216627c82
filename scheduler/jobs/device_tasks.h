// The tasks of a job on the device that was leased for it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/target/target.h"
#include "proto/tracker.pb.h"
#include "scheduler/values/job_spec.h"
#include "search/space/task.h"

namespace kiln::scheduler {

// Returns the user's target, completed with the options of the runner's target that the user leaves
// open. Refused if the runner's target does not parse or is of another kind.
StatusOr<target::Target> CompleteTarget(const target::Target& asked, const v1::WorkerState& runner);

// Returns the device's own parameters. A parameter that the device does not state (0) gets the
// target's default.
target::HardwareParams HardwareOf(const target::Target& completed, const v1::WorkerState& runner);

// Returns the tasks for the search, in the job's order. Refused like CompleteTarget, and if the
// runner announces no device model or one that no device can have.
StatusOr<std::vector<search::Task>> TasksOnDevice(const CheckedJob& job,
                                                  const v1::WorkerState& runner);

}  // namespace kiln::scheduler
