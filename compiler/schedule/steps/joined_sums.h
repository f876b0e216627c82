// Several sums become one reduction of several values: CHW with more stages than one.
//
//   g[i, j] = sum(k) x[i, k] * v[k, j]       g.u.local[i, j] = sum(k) (x[i, k] * v[k, j],
//   u[i, j] = sum(k) x[i, k] * w[k, j]                                 x[i, k] * w[k, j])
//                                            g[i, j] = g.u.local.v0[i, j]
//                                            u[i, j] = g.u.local.v1[i, j]
//
// Both sums then have the same loops, and one tile of x for both.
//
// A maximum and the sum of exponentials below it, as a softmax has them, join as well:
//
//   m[i] = max(k) x[i, k]                    m.s.local[i] = max_and_sum(k) (x[i, k], 1)
//   s[i] = sum(k) exp(x[i, k] - m[i])        m[i] = m.s.local.v0[i]
//                                            s[i] = m.s.local.v1[i]
//
// where max_and_sum takes the larger maximum of two pairs, and both sums as they are below it
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). What is summed is
// then read once, not twice. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Refuses stages that are not ascending, or not all computed at root; that are neither sums of one
// value and one type over the same axes nor such a maximum and its sum in float32, or have
// attributes; and those that read a stage which does not stand before the first one.
Status CheckJoinable(const State& state, std::span<const int> stages);

// Returns whether stage `sum` adds up exponentials of what stage `max` is the maximum of, less that
// maximum, over the same axes. The exponentials may be another stage's.
bool IsSumBelow(const dag::Dag& dag, int max, int sum);

// Returns the DAG with the joined sums at the place of the first stage. CheckJoinable accepts the
// stages.
StatusOr<dag::DagPtr> WithJoinedSums(const dag::Dag& dag, std::span<const int> stages,
                                     const std::string& scope);

}  // namespace kiln::schedule
