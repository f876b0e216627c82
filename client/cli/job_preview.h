// What a job would tune: kiln tune --trials 0.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// A row for each task: weight, floating-point operations, bytes of its arguments, how many sketches
// its search begins with, and the predicted time of a schedule that is chosen without measuring
// (search/choice/unmeasured.h); as JSON also its steps. On a target that says nothing of its device the target's defaults count.
// json: one object a line. Errors are those of the tasks' texts.
StatusOr<std::string> PreviewJob(const v1::JobSpec& spec, bool json);

}  // namespace kiln::client
