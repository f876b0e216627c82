// Several sums become one reduction of several values: CHW with more stages than one.
//
//   g[i, j] = sum(k) x[i, k] * v[k, j]       g.u.local[i, j] = sum(k) (x[i, k] * v[k, j],
//   u[i, j] = sum(k) x[i, k] * w[k, j]                                 x[i, k] * w[k, j])
//                                            g[i, j] = g.u.local.v0[i, j]
//                                            u[i, j] = g.u.local.v1[i, j]
//
// Both sums then have the same loops, and one tile of x for both. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Refuses stages that are not ascending, or not all computed at root; that are no sums of one value
// and one type over the same axes, or have attributes; and those that read a stage which does not
// stand before the first one.
Status CheckJoinable(const State& state, std::span<const int> stages);

// Returns the DAG with the joined sums at the place of the first stage. CheckJoinable accepts the
// stages.
StatusOr<dag::DagPtr> WithJoinedSums(const dag::Dag& dag, std::span<const int> stages,
                                     const std::string& scope);

}  // namespace kiln::schedule
