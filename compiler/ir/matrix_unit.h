// Matrix units of GPUs: instructions by which the threads of a warp multiply tiles together, and
// which products are theirs. One row for each type of factors.
//
// An instruction adds to 16 x 8 sums the products of `depth` terms each. Its name and which thread
// has what of it: PTX ISA, "Warp-level matrix instructions".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/program.h"

namespace kiln::ir {

struct MatrixUnit {
  std::string_view name;  // of the factors' type in that of the instruction
  Type factor;            // as it is in memory
  Type sum;               // products are of factors that are converted to it
  int speed;              // products in the time of one multiply-add in float32 (H100)
  int first_arch = 80;    // of sm_80
  bool rounds = false;    // factors to fewer bits: not where a target does not allow it
  int sum_bits = 24;      // of its mantissa that a float sum keeps from one instruction to the next

  // Terms that are read at once: 16 bytes.
  int64_t row_elements() const { return 16 / factor.bytes(); }
  int64_t depth() const { return 2 * row_elements(); }
};

std::span<const MatrixUnit> MatrixUnits();

// Does the statement compute a stage by units of this scope, or a wider one?
bool UsesMatrixUnits(const Program& program, Stmt stmt,
                     MatrixUnitScope least = MatrixUnitScope::kWarp);

struct MatrixFactors {
  const MatrixUnit* unit;
  Expr a, b;  // loads
};
// Of a product of two elements, each converted to the type of the sum where it has another. None:
// no unit multiplies such factors.
std::optional<MatrixFactors> MatrixFactorsOf(Expr product);

// x of  c[i] = c[i] + x  and c[i] = x + c[i]. Null: the store is no such sum.
Expr AddedBy(Stmt store);

}  // namespace kiln::ir
