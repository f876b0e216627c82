// A computation whose large sums are carried in float64 and rounded once: what programs are
// compared with. A reference that adds in float32 in the order of a candidate has the candidate's
// errors too, so the difference of the two says nothing of them.
//
// A sum of float32 over 64 terms or more becomes two operators: one that adds in float64, products
// and all, and one that has its name and rounds. Fewer terms are exact enough in any order. Sums of
// 16-bit floats are rounded at each step by their definition (evaluate.h) and stay; so do those of
// float64, whose errors are far below what is allowed of them, and sums with so many results that
// their float64 would not fit beside them.
//
// Pure functions; linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/text.h"

namespace kiln::dag {

inline constexpr int64_t kFewestWideTerms = 64;
inline constexpr int64_t kMostWideResults = int64_t{1} << 28;  // 2 GiB of float64

// How many sums of it WithWideSums makes wide.
int CountWideSums(const Dag& dag);

// Same inputs, and outputs of the same names, types and shapes, in the same order.
StatusOr<DagText> WithWideSums(const DagText& whole);

// The text of what an unscheduled program is built of for the outputs that candidates of `text` are
// compared with. A text that is no computation stays as it is.
std::string ReferenceText(std::string_view text);

}  // namespace kiln::dag
