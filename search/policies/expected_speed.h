// How far a schedule that was chosen without measuring is from the tuned one: what was measured, by
// kind of operator, over the operators of tests/bench/heuristic_schedules.py.
//
// Pure function.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/target/target.h"
#include "search/space/operator_class.h"

namespace kiln::search {

// Shares of the tuned speed: the median, and what nine in ten are above and below of.
struct ExpectedSpeed {
  double low, middle, high;
  int workloads;            // that were measured
  std::string_view device;  // on which
};

// None: nobody measured targets of this kind. Location-tunable operators count as direct ones.
std::optional<ExpectedSpeed> ExpectedSpeedOf(const target::Target& target, OperatorClass kind);

}  // namespace kiln::search
