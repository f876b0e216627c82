// Refuses costs that no device can have. A log may claim such a cost, or a runner that lies or
// whose clock is broken. One such record would be the best of its workload for ever.
//
// The bounds are generous, so that a refused cost is certainly wrong: more than 1e16 operations a
// second, outputs written at more than 1e15 bytes a second, less than a nanosecond.
#pragma once

#include "base/status.h"
#include "store/record.h"

namespace kiln::store {

inline constexpr double kShortestCost_s = 1e-9;
// Floating-point operations a second.
inline constexpr double kMaxFlops = 1e16;
// Bytes a second.
inline constexpr double kMaxOutputBytes = 1e15;

// InvalidArgument: a cost is below kShortestCost_s. This is the only check for made-up costs.
Status CheckNotTooShort(const Record& record);

// InvalidArgument: "cost 1e-15 s is not plausible: ...". `flop_count` is that of the computation, 0
// if it is not known. Only the last output counts, by the shape in the key, with one byte for each
// element. A record with an error has no cost and passes.
Status CheckPlausible(const Record& record, double flop_count);

}  // namespace kiln::store
