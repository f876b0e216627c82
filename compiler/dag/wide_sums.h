// Computations whose large sums are carried in float64 and rounded once. Programs are compared with
// them. A reference that added in float32 in the order of a candidate would have the candidate's
// errors too, so that the difference of the two would say nothing about them.
//
// A sum of float32 over 64 terms or more becomes two operators: one that adds in float64, including
// the products, and one that rounds and has the sum's name. Fewer terms are exact enough in any
// order. Sums of 16-bit floats are rounded at each step by their definition (evaluate.h) and stay.
// Sums of float64 stay, because their errors are far below the tolerance. Sums with so many results
// that their float64 would not fit beside them stay as well.
//
// Pure functions; linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/text.h"

namespace kiln::dag {

inline constexpr int64_t kMinWideTerms = 64;
// 2 GiB of float64.
inline constexpr int64_t kMaxWideResults = int64_t{1} << 28;

// Returns the number of sums that WithWideSums would make wide.
int CountWideSums(const Dag& dag);

// The new computation has the same inputs, and outputs of the same names, types and shapes in the
// same order.
StatusOr<DagText> WithWideSums(const DagText& whole);

// Returns the text from which an unscheduled program is built, with whose outputs those of
// candidates of `text` are compared. A text that is no computation stays as it is.
std::string ReferenceText(std::string_view text);

}  // namespace kiln::dag
