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
  // 0: values are random. Otherwise, for integers only, they ascend in runs of so many equal ones:
  // low, low + 1, and so on to the last one below high, then from low again. Programs that read
  // weights by an index take a time that depends on its order: blocks of tokens are ordered by
  // their experts.
  int64_t run = 0;
  bool operator==(const InputRange&) const = default;
};

// Returns InputRange::run as it was written. Refuses fractions, less than one value, and more than
// a double counts (2^53).
StatusOr<int64_t> RunOf(double number);

// Checks the range of values of type `type`; `index_limit` is that of IndexLimits. Refuses a range
// that is empty, not finite or beyond the type, fractions for integers, indices out of their
// bounds, and runs of floats.
Status CheckInputRange(const InputRange& range, ir::Type type, int64_t index_limit);

// Checks that each range names an input of the DAG and fits it, and that no input is named twice.
Status CheckInputRanges(const Dag& dag, std::span<const InputRange> ranges);

// Returns "values in [0, 8)", and the run if there is one.
std::string PrintValues(const InputRange& range);

// Parses "x=0.5:2" or "expert=0:8:2", the form of a command line.
StatusOr<InputRange> ParseInputRange(std::string_view text);

}  // namespace kiln::dag
