// Reads a hand-written schedule from a file.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::client {

// Reads primitives (docs/schedules.md) for the computation; "-": stdin. InvalidArgument has the
// place of the first error or open choice.
StatusOr<schedule::State> ReadSchedule(const std::string& path, const dag::DagPtr& dag);

}  // namespace kiln::client
