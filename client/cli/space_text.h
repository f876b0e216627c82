// A configuration space, and a point of one, for people and scripts.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "search/templates/template.h"

namespace kiln::client {

// As autotvm prints it, or as one JSON value.
std::string SpaceText(const search::ConfigSpace& space, bool json);

// The values of the knobs at an index, and what they make: a schedule, or the launch of a kernel.
// InvalidArgument: there is no such index, or nothing can be made.
StatusOr<std::string> ConfigText(const search::Template& of, const dag::DagPtr& dag,
                                 const search::ConfigSpace& space, int64_t index, bool json);

}  // namespace kiln::client
