// How large a computation and its schedules may be. Far above anything that is tuned, and low
// enough that whatever walks them, by recursion too, ends soon. Text beyond them is refused with
// what was found and what is allowed, by clients and services alike: all go through the same
// parsers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::dag {

// ---- computations
inline constexpr size_t kMaxTextBytes = size_t{8} << 20;  // of a DAG or a list of steps
inline constexpr int kMaxOperators = 1 << 16;
inline constexpr int kMaxAxes = 32;           // of an operator, spatial and reduce axes together
inline constexpr size_t kMaxNameBytes = 256;  // of an operator or an axis
// Of the bodies of an operator, written out as trees.
inline constexpr double kMaxBodyNodes = 1 << 16;
inline constexpr int kMaxBodyHeight = 4000;
// Operators that steps make of others may have more axes: an rfactor adds one.
inline constexpr int kMaxAxesOfSteps = 2 * kMaxAxes;

// ---- schedules
inline constexpr int kMaxSteps = 1 << 20;
inline constexpr int kMaxStageLoops = 512;
// Loops around one statement, those of the stages it is attached to included.
inline constexpr int kMaxNestLoops = 1024;
// Iterations of a stage, rounded up by its splits; a sum of two fits 64 bits.
inline constexpr int64_t kMaxIterations = int64_t{1} << 60;
// What one inlined operator may add to the bodies it is put into, in nodes of their trees for each
// of those and for all, and how high they may become.
inline constexpr double kMaxInlinedNodes = 4096;
inline constexpr double kMaxInlinedNodesOfAll = 1 << 20;
inline constexpr int kMaxInlinedHeight = 256;

}  // namespace kiln::dag
