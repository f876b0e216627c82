// Limits of the size of computations and of schedules. They are far above anything that is tuned,
// and low enough that every walk over a computation, a recursive one too, ends soon. The parsers
// refuse text beyond them and say what was found and what is allowed. Clients and services use the
// same parsers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::dag {

// ---- computations
// Bytes of the text of a DAG or of a list of steps.
inline constexpr size_t kMaxTextBytes = size_t{8} << 20;
inline constexpr int kMaxOperators = 1 << 16;
// Axes of an operator, spatial and reduce axes together.
inline constexpr int kMaxAxes = 32;
// Bytes of the name of an operator or an axis.
inline constexpr size_t kMaxNameBytes = 256;
// Nodes and height of the bodies of one operator as trees, without sharing.
inline constexpr double kMaxBodyNodes = 1 << 16;
inline constexpr int kMaxBodyHeight = 4000;
// Operators that schedule steps make may have more axes: an rfactor adds one.
inline constexpr int kMaxAxesOfSteps = 2 * kMaxAxes;

// ---- schedules
inline constexpr int kMaxSteps = 1 << 20;
inline constexpr int kMaxStageLoops = 512;
// Loops around one statement, including the loops of the stages that its stage is attached to.
inline constexpr int kMaxNestLoops = 1024;
// Iterations of a stage, rounded up by its splits. A sum of two fits 64 bits.
inline constexpr int64_t kMaxIterations = int64_t{1} << 60;
// Nodes of trees that inlining one operator may add to each body that the operator is inlined into,
// and to all of them together; and the greatest height of those bodies.
inline constexpr double kMaxInlinedNodes = 4096;
inline constexpr double kMaxInlinedNodesOfAll = 1 << 20;
inline constexpr int kMaxInlinedHeight = 256;

}  // namespace kiln::dag
