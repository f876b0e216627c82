// Refuses what is beyond limits.h, before anything is made of it.
#pragma once

#include <span>
#include <string_view>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// `what`: "the DAG", "the list of steps".
Status CheckTextBytes(std::string_view what, std::string_view text);
Status CheckOperatorCount(size_t operators);
// Of one operator or, without bodies, of an input.
Status CheckOperatorLimits(std::string_view name, std::span<const Axis> axes,
                           std::span<const Axis> reduce_axes, const std::vector<ir::Expr>& bodies);

}  // namespace kiln::dag
