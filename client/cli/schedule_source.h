// A schedule that a person wrote, from a file.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::client {

// As primitives (docs/schedules.md), of the computation; "-": stdin. InvalidArgument with the place
// where it is wrong, or leaves something open.
StatusOr<schedule::State> ReadSchedule(const std::string& path, const dag::DagPtr& dag);

}  // namespace kiln::client
