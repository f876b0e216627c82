// Costs that no device can have: what a log may claim, or a runner that lies or whose clock is
// broken. One such record would be the best of its workload for ever.
//
// The bounds are generous, so that what they refuse is wrong for certain: beyond 1e16 operations a
// second, outputs written at more than 1e15 bytes a second, less than a nanosecond.
#pragma once

#include "base/status.h"
#include "store/record.h"

namespace kiln::store {

inline constexpr double kShortestCost_s = 1e-9;
inline constexpr double kMostFlops = 1e16;        // a second
inline constexpr double kMostOutputBytes = 1e15;  // a second

// InvalidArgument: a cost below kShortestCost_s. All that can be said of costs that are made up.
Status CheckNotTooShort(const Record& record);

// InvalidArgument: "cost 1e-15 s is not plausible: ...". `flop_count`: of the computation, 0: not
// known. Of the outputs the last one counts, by the shape in the key, with one byte for each
// element. A record with an error has no cost: OK.
Status CheckPlausible(const Record& record, double flop_count);

}  // namespace kiln::store
