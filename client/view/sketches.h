// kiln show --sketches: the schedules of a task before their blanks are filled; and the blanks of a
// schedule that was made of one, with their values.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "search/space/task.h"

namespace kiln::client {

// For each sketch how many points it has (ways to fill its blanks), its loops, blanks as "?", its
// primitives, and which values each blank may have. On a target that says nothing of its device the
// target's defaults count. json: one object a line.
StatusOr<std::string> PrintSketches(const dag::DagPtr& dag, const std::string& target, bool json);

// Of a schedule, `steps` as JSON, that was made of the sketch that its `origin` names ("sketch 1,
// by rule"): a line for each blank with its values, and of how many points this is one. "": the
// origin names no sketch, or one without blanks.
StatusOr<std::string> FilledBlanks(const search::Task& task, const std::string& steps,
                                   std::string_view origin);

StatusOr<int> CountSketches(const dag::DagPtr& dag, const std::string& target);

}  // namespace kiln::client
