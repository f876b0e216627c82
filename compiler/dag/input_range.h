// Ranges for the random values that inputs get when programs are checked. They stand in the text
// form of a computation (text.h) and are no part of the computation itself: a Dag holds none.
//
// Without a range, floats are uniform in [-1, 1), and integers are in [-8, 8) or below the extent
// that they index. Such values tell little about log(x).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

struct InputRange {
  // Name in the text form.
  std::string input;
  // Values are uniform in [low, high). Both ends are whole numbers for an integer input.
  double low = 0;
  double high = 0;
  bool operator==(const InputRange&) const = default;
};

// Checks the range of values of type `type`; `index_limit` is that of IndexLimits. Refuses a range
// that is empty, not finite or beyond the type, fractions for integers, and indices out of their
// bounds.
Status CheckInputRange(const InputRange& range, ir::Type type, int64_t index_limit);

// Checks that each range names an input of the DAG and fits it, and that no input is named twice.
Status CheckInputRanges(const Dag& dag, std::span<const InputRange> ranges);

// Parses "x=0.5:2", the form of a command line.
StatusOr<InputRange> ParseInputRange(std::string_view text);

}  // namespace kiln::dag
