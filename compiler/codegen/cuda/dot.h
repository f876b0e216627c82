// Sums of products of 8-bit integers, four at a time (dp4a). Internal to this folder.
#pragma once

#include <optional>
#include <string>

#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/vectors.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// A loop around  x[i] = x[i] + int32(a)*int32(b)  whose bytes are consecutive and aligned for both
// factors. Between it and the store may be loops and conditions that do not depend on its variable.
struct Dot {
  ir::Stmt store;
  ir::Expr a, b;  // loads
  Vector vector;  // four iterations of the loop
  int32_t chunk;  // the variable that counts the vectors
};

// Nothing: it is no such loop.
std::optional<Dot> MatchDot(ir::Stmt loop, CudaScope& scope, CudaVectors& vectors);

// The statement for the store, where the loop's variable has the value of lane 0.
std::string DotText(const Dot& dot, CudaExprs& exprs, CudaVectors& vectors);

}  // namespace kiln::codegen
