// Matrix units of GPUs: the instructions by which the threads of a warp, or of four, multiply tiles
// together, and the products that they can compute. One row for each type of factors.
//
// An instruction of a warp (mma.sync) adds the products of `depth` terms to each of 16 x 8 sums.
// PTX ISA, "Warp-level matrix instructions", gives its name and says which thread holds which
// elements: thread t has rows t/4 and t/4 + 8 and columns 2 (t%4) and 2 (t%4) + 1. An instruction
// of four warps (wgmma) has 64 rows, 16 for each warp, and 16 to 256 columns.
//
// The search asks these rows which tiles fit, lowering which threads hold what, features how fast
// an instruction is. matrix_unit_text.h and warpgroup_unit.h have the texts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/program.h"

namespace kiln::instructions {

// Threads of a warp, and those that hold different rows and different columns of its tile.
inline constexpr int64_t kWarpThreads = 32, kThreadRows = 8, kThreadColumns = 4;
// Neighbouring columns of a thread, and the columns of a warp's tile.
inline constexpr int64_t kThreadNeighbours = 2, kTileColumns = kThreadColumns * kThreadNeighbours;
// Warps and threads of an instruction of four warps, its rows, and the most of its columns.
inline constexpr int64_t kWarpgroupWarps = 4, kWarpgroupThreads = kWarpgroupWarps * kWarpThreads,
                         kWarpgroupRows = 64, kMostWarpgroupColumns = 256;

struct MatrixUnit {
  // Name of the factors' type in the name of the instruction.
  std::string_view name;
  // Type of a factor in memory.
  ir::Type factor;
  // Type of the sum. Factors are converted to it before they are multiplied.
  ir::Type sum;
  // Number of products in the time of one multiply-add in float32 (H100).
  int speed;
  // The first architecture with the unit: 80 is sm_80.
  int first_arch = 80;
  // The unit rounds factors to fewer bits. It is not used if a target forbids that.
  bool rounds = false;
  // Bits of a float sum's mantissa that are kept from one instruction to the next.
  int sum_bits = 24;

  // Number of terms that are read at once: 16 bytes.
  int64_t row_elements() const { return 16 / factor.bytes(); }
  int64_t depth() const { return 2 * row_elements(); }
};

std::span<const MatrixUnit> MatrixUnits();

// Returns true if the statement computes a stage by units of this scope or a wider one.
bool UsesMatrixUnits(const ir::Program& program, ir::Stmt stmt,
                     ir::MatrixUnitScope least = ir::MatrixUnitScope::kWarp);

struct MatrixFactors {
  const MatrixUnit* unit;
  // Both are loads.
  ir::Expr a, b;
};
// Returns the factors of a product of two elements, each converted to the type of the sum if its
// own type differs. None: no unit multiplies such factors.
std::optional<MatrixFactors> MatrixFactorsOf(ir::Expr product);

// Returns x of `c[i] = c[i] + x` or `c[i] = x + c[i]`. Null: the store is no such sum.
ir::Expr AddedBy(ir::Stmt store);

}  // namespace kiln::instructions
