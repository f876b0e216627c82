// A job's tasks on the device that was leased for it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/target/target.h"
#include "proto/tracker.pb.h"
#include "scheduler/job_spec.h"
#include "search/space/task.h"

namespace kiln::scheduler {

// The user's target with what he leaves open filled in from the runner's. Refused when the runner's
// target does not parse or is of another kind.
StatusOr<target::Target> CompleteTarget(const target::Target& asked, const v1::WorkerState& runner);

// The device's own parameters; what it does not say (0) is the target's default.
target::HardwareParams HardwareOf(const target::Target& completed, const v1::WorkerState& runner);

// The tasks as the search sees them, in the job's order. Refused like a target when the runner
// announces no device model, or one that no device has.
StatusOr<std::vector<search::Task>> TasksOnDevice(const CheckedJob& job,
                                                  const v1::WorkerState& runner);

}  // namespace kiln::scheduler
