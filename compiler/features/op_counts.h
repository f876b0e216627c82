// Operations of an expression by class, as the first columns of a feature row name them.
#pragma once

#include <array>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/expr.h"

namespace kiln::features {

// In the order of the columns float_mad .. select_op.
struct OpCounts {
  std::array<float, 16> of = {};

  void Add(const OpCounts& other) {
    for (size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
  }
  // Returns the floating-point operations. A multiply-add counts as two.
  double flops() const;
  // Returns the instructions of a floating-point unit. A division takes about eight of them.
  double float_instructions() const;
  double special() const;

  // Returns all counts multiplied by `factor`.
  OpCounts Times(float factor) const;
};

// Returns the share of a store's operations that costs a thread time if a matrix unit computes
// them: the unit's products are that much faster than multiply-adds in float32 (H100: 989 TFLOP/s
// of 16-bit floats, and 67), and there are no conversions. The reads of ldmatrix from shared memory
// are smaller by about the same share: for a warp's tile of 32 x 32 and 16 terms of 16 bits they
// take 16 wavefronts, and reads of threads take 192.
float ShareOf(const instructions::MatrixUnit& unit);
// Factors of that share for units of one warp and of four: mma.sync reaches three fifths of the
// rate of sm_90's units.
inline constexpr float kWarpShare = 1.6F, kWarpgroupShare = 0.84F;
// Factor of that share for the operands of units of four warps. The units read them from shared
// memory themselves: 80 wavefronts for 64 x 256 results and 16 terms of 16 bits.
inline constexpr float kWarpgroupReadShare = 1.0F / 16;
OpCounts InMatrixUnit(const instructions::MatrixUnit& unit, OpCounts counts, float share);

// Counts a tree: a node that occurs twice counts twice. An addition with a product for an operand
// is one multiply-add. Index expressions count as integer operations. Linear in the distinct nodes.
OpCounts CountOps(ir::Expr e);

}  // namespace kiln::features
