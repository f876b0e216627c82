// Operations of an expression by class, as the first columns of a feature row name them.
#pragma once

#include <array>

#include "compiler/ir/expr.h"
#include "compiler/ir/matrix_unit.h"

namespace kiln::features {

// In the order of the columns float_mad .. select_op.
struct OpCounts {
  std::array<float, 16> of = {};

  void Add(const OpCounts& other) {
    for (size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
  }
  // Floating-point operations: a multiply-add is two.
  double flops() const;
  // Instructions of a floating-point unit; a division is about eight of them.
  double float_instructions() const;
  double special() const;

  // As much of everything.
  OpCounts Times(float factor) const;
};

// What of the operations of a store a thread pays for that a matrix unit computes: as much less as
// its products are faster than multiply-adds in float32 (H100: 989 TFLOP/s of 16-bit floats, and
// 67), and no conversions. What ldmatrix reads of shared memory is about as much less: of a warp's
// tile of 32 x 32 and 16 terms of 16 bits 16 wavefronts, where threads read 192.
float ShareOf(const ir::MatrixUnit& unit);
// What one warp, and what four together, pay of that: mma.sync reaches three fifths of the rate of
// sm_90's units.
inline constexpr float kWarpShare = 1.6F, kWarpgroupShare = 0.84F;
// What four warps together pay of that for their operands: the units read them from shared memory
// themselves, of 64 x 256 results and 16 terms of 16 bits 80 wavefronts.
inline constexpr float kWarpgroupReadShare = 1.0F / 16;
OpCounts InMatrixUnit(const ir::MatrixUnit& unit, OpCounts counts, float share);

// Counts a tree: what occurs twice counts twice. An addition with a product for an operand is one
// multiply-add. Index expressions count as integer operations. Linear in the distinct nodes.
OpCounts CountOps(ir::Expr e);

}  // namespace kiln::features
