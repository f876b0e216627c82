// How large a computation and its schedules may be. The limits are far above anything that is
// tuned, and low enough that every walk over a computation, a recursive one too, ends soon. The
// parsers refuse text beyond them, saying what was found and what is allowed; clients and services
// use the same parsers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::dag {

// ---- computations
inline constexpr size_t kMaxTextBytes = size_t{8} << 20;  // of a DAG or a list of steps
inline constexpr int kMaxOperators = 1 << 16;
inline constexpr int kMaxAxes = 32;           // of an operator, spatial and reduce axes together
inline constexpr size_t kMaxNameBytes = 256;  // of an operator or an axis
// Of the bodies of one operator as trees, without sharing.
inline constexpr double kMaxBodyNodes = 1 << 16;
inline constexpr int kMaxBodyHeight = 4000;
// Operators that schedule steps make may have more axes: an rfactor adds one.
inline constexpr int kMaxAxesOfSteps = 2 * kMaxAxes;

// ---- schedules
inline constexpr int kMaxSteps = 1 << 20;
inline constexpr int kMaxStageLoops = 512;
// Loops around one statement, those of the stages it is attached to included.
inline constexpr int kMaxNestLoops = 1024;
// Iterations of a stage, rounded up by its splits; a sum of two fits 64 bits.
inline constexpr int64_t kMaxIterations = int64_t{1} << 60;
// What inlining one operator may add, in nodes of trees: to each body it is put into, and to all
// together; and how high those bodies may become.
inline constexpr double kMaxInlinedNodes = 4096;
inline constexpr double kMaxInlinedNodesOfAll = 1 << 20;
inline constexpr int kMaxInlinedHeight = 256;

}  // namespace kiln::dag
