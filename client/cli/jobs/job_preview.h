// Previews the tasks of a job: kiln tune --trials 0.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns a row for each task: weight, floating-point operations, bytes of its arguments, the
// number of its sketches, and the predicted time of a schedule that is chosen without measuring
// (search/choice/heuristic_choice.h). JSON has the steps of that schedule too, one object a line.
// If the target says nothing of its device, the target's defaults are used. Errors are those of the
// tasks' texts. A job of a hand-written kernel has the kernel's space instead
// (client/cli/space_text.h).
StatusOr<std::string> PreviewJob(const v1::JobSpec& spec, bool json);

}  // namespace kiln::client
