// How far a schedule that was chosen without measuring is from the tuned one: what was measured, by
// kind of operator (docs/heuristic-schedules.md has the table).
//
// Pure function.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/target/target.h"
#include "search/space/operator_class.h"

namespace kiln::search {

// Shares of the speed after tuning: what nine in ten workloads reach, and the median.
struct ExpectedSpeed {
  double low, middle;
  int workloads;            // that were measured
  int trials;               // of each workload's tuning
  std::string_view device;  // on which
};

// None: nobody measured targets of this kind. Location-tunable operators count as direct ones.
std::optional<ExpectedSpeed> ExpectedSpeedOf(const target::Target& target, OperatorClass kind);

}  // namespace kiln::search
