// Refuses computations and schedules beyond limits.h before they are made.
#pragma once

#include <span>
#include <string_view>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// `what` names the text: "the DAG", "the list of steps".
Status CheckTextBytes(std::string_view what, std::string_view text);
Status CheckOperatorCount(size_t operators);
// Checks one operator, or an input if there are no bodies.
Status CheckOperatorLimits(std::string_view name, std::span<const Axis> axes,
                           std::span<const Axis> reduce_axes, const std::vector<ir::Expr>& bodies);

}  // namespace kiln::dag
