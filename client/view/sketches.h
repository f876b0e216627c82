// kiln show --sketches: the schedules of a task before their blanks are filled.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

// For each sketch its loops, blanks as "?", its primitives, and how many tile sizes it has. On a
// target that says nothing of its device the target's defaults count. json: one object a line.
StatusOr<std::string> PrintSketches(const dag::DagPtr& dag, const std::string& target, bool json);

StatusOr<int> CountSketches(const dag::DagPtr& dag, const std::string& target);

}  // namespace kiln::client
