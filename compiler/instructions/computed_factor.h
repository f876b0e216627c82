// Products by matrix units one factor of which is computed from elements of other types, as weights
// of 8 or 4 bits with their scales are. Each thread computes the elements of that factor that its
// registers hold, from what lies in shared memory.
#pragma once

#include <optional>
#include <vector>

#include "compiler/instructions/matrix_unit.h"

namespace kiln::instructions {

struct ComputedFactor {
  const MatrixUnit* unit;
  // The factor that is read as it is, a load.
  ir::Expr load;
  // The other one, an expression of the same type that is no load.
  ir::Expr computed;
};

// Returns the factors of a product of an element of 16 bits and of a value of the same type that is
// computed from elements, each converted to the type of the sum. None: it is no such product. The
// cost is linear in the product.
std::optional<ComputedFactor> ComputedFactorOf(ir::Expr product);

// Returns the loads of a value, without those in their indices. The cost is linear in its nodes.
std::vector<ir::Expr> LoadsOf(ir::Expr value);

// Returns the unit that multiplies the factors of a product, be they elements or computed ones.
// Null: there is none.
const MatrixUnit* UnitOf(ir::Expr product);

}  // namespace kiln::instructions
