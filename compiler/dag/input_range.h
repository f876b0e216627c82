// Ranges for the random values that inputs get when programs are checked. They stand in the text
// form of a computation (text.h) and are no part of the computation itself: a Dag holds none.
//
// Without one, floats are uniform in [-1, 1) and integers in [-8, 8), or below the extent that they
// index. That tells little about log(x).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

struct InputRange {
  std::string input;  // its name in the text form
  double low = 0;     // values are uniform in [low, high); of an integer input both are whole
  double high = 0;
  bool operator==(const InputRange&) const = default;
};

// Of values for type `type`; `index_limit` as IndexLimits says. Refuses what is empty, not finite
// or beyond the type, fractions for integers, and indices out of their bounds.
Status CheckInputRange(const InputRange& range, ir::Type type, int64_t index_limit);

// Each names an input of the DAG, none twice, and fits it.
Status CheckInputRanges(const Dag& dag, std::span<const InputRange> ranges);

// "x=0.5:2", as people write it on a command line.
StatusOr<InputRange> ParseInputRange(std::string_view text);

}  // namespace kiln::dag
