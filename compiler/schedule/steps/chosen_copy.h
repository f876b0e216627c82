// A copy of the elements that an integer input chooses, as the rows of x[rows[i], k]. The CHR step
// with the scope "chosen" and an order makes it.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::schedule {

inline constexpr std::string_view kChosenScope = "chosen";

// Inserts a copy behind `stage`, for a reader of x[rows[i], k]: copy[i, k] = x[rows[i], k]. The
// reader reads copy[i, k] then. `stage` is the later one of x and rows. Refuses a reader that reads
// no such elements, or several.
StatusOr<dag::DagPtr> WithChosenCopy(const dag::Dag& dag, int stage, int reader);

}  // namespace kiln::schedule
