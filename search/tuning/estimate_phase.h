// The text of a job's phase while its objective is not known yet: the expected objective. The
// writer and the readers of the text share this file.
//
//   about 12.34 ms (15 of 24 tasks are estimates)
//
// Pure functions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/text/units.h"

namespace kiln {

inline constexpr std::string_view kEstimatePhase = "about ";

inline std::string PrintEstimatePhase(double objective_s, int estimated, int tasks) {
  return fmt::format("{}{} ({} of {} tasks {})", kEstimatePhase, FormatSeconds(objective_s),
                     estimated, tasks, estimated == 1 ? "is an estimate" : "are estimates");
}

inline bool IsEstimatePhase(std::string_view phase) { return phase.starts_with(kEstimatePhase); }

}  // namespace kiln
