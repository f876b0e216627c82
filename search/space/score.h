// The score of a candidate: higher is expected to be faster.
#pragma once

#include <limits>

namespace kiln::search {

// Of a candidate that no cost model has scored: below every score.
inline constexpr double kNoScore = -std::numeric_limits<double>::infinity();

}  // namespace kiln::search
