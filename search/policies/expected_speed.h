// The speed of a schedule that was chosen without measuring, as a share of the tuned speed. The
// figures were measured, by kind of operator (docs/heuristic-schedules.md has the table).
//
// Pure function.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/target/target.h"
#include "search/space/operator_class.h"

namespace kiln::search {

// Shares of the tuned speed: a share that nine in ten workloads reach, and the median.
struct ExpectedSpeed {
  double low, middle;
  int workloads;            // number of workloads that were measured
  int trials;               // in the tuning of each workload
  std::string_view device;  // the device that measured them
};

// Returns nothing for targets of a kind that was never measured. Location-tunable operators count
// as direct ones.
std::optional<ExpectedSpeed> ExpectedSpeedOf(const target::Target& target, OperatorClass kind);

}  // namespace kiln::search
