// kiln show --sketches prints the schedules of a task before their blanks are filled. Also lists
// the blanks of a schedule that was made from a sketch, with their values.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "search/space/task.h"

namespace kiln::client {

// Prints for each sketch the number of its points (ways to fill its blanks), its loops with "?" for
// blanks, its primitives, and the values that each blank may have. If the target says nothing of
// its device, the target's defaults are used. json: prints one object a line.
StatusOr<std::string> PrintSketches(const dag::DagPtr& dag, const std::string& target, bool json);

// Returns the blanks of a schedule, with `steps` as JSON. Its `origin` names the sketch ("sketch 1,
// by rule"). Each blank has a line with its values, and the text says how many points the sketch
// has. "": the origin names no sketch, or a sketch without blanks.
StatusOr<std::string> FilledBlanks(const search::Task& task, const std::string& steps,
                                   std::string_view origin);

StatusOr<int> CountSketches(const dag::DagPtr& dag, const std::string& target);

}  // namespace kiln::client
