// Prints a configuration space, and a point of it, for people and scripts.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "search/templates/template.h"

namespace kiln::client {

// Returns the text that autotvm prints, or one JSON value.
std::string SpaceText(const search::ConfigSpace& space, bool json);

// Returns the values of the knobs at an index, and the schedule or the launch of a kernel that they
// make. InvalidArgument: there is no such index, or the values make nothing.
StatusOr<std::string> ConfigText(const search::Template& of, const dag::DagPtr& dag,
                                 const search::ConfigSpace& space, int64_t index, bool json);

}  // namespace kiln::client
