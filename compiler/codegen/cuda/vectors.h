// Which accesses of a vectorized loop are vectors, and their text. Internal to this folder.
//
// An access is a vector where its lanes are proven to be consecutive and the first one to be
// aligned. A value is one where it is such a load, or a choice between such values by a condition
// that is the same for all lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// One vector of the iterations of a loop.
struct Vector {
  int32_t var;  // of the loop
  int lanes;
  arith::Linear base;  // value of the variable in lane 0, of the scope
};

// Does the condition, of the program, hold for all lanes where it does for the last?
bool IsLimit(ir::Expr condition, const Vector& vector);

// The value of the vector's variable changes during a call, and is what it was after it.
// References are kept. One thread. Cost: each access is simplified once for each lane.
class CudaVectors {
 public:
  CudaVectors(CudaScope& scope, CudaExprs& exprs, CudaPreamble& preamble)
      : scope_(scope), exprs_(exprs), preamble_(preamble) {}

  // The widest vectors by which the loop can be emitted: its stores are vectors, or, where none
  // can be, what is loaded for them is. Nothing: it must be a loop.
  std::optional<Vector> ChooseLanes(ir::Stmt loop);

  // The place of lane 0, if the access is a vector.
  std::optional<Place> PlaceOf(int32_t slot, std::span<const ir::Expr> indices,
                               const Vector& vector);
  bool IsValue(ir::Expr e, const Vector& vector);
  // Has the condition one value for all lanes?
  bool IsUniform(ir::Expr condition, const Vector& vector);
  // Appends the largest parts of e that are vector values and that are read whatever the lanes
  // hold.
  void FindValues(ir::Expr e, const Vector& vector, std::vector<ir::Expr>& found,
                  bool loads_only = false);

  // A number that divides every value of e, an expression of the scope; 0 when e is 0.
  int64_t MultipleOf(const arith::Linear& e);

  // ---- text
  std::string Element(int32_t slot, const Place& place, int lanes, bool is_load);
  // Of a vector value, or of what is the same in all lanes.
  std::string Value(ir::Expr e, const Vector& vector);

 private:
  bool CanVectorize(ir::Stmt body, const Vector& vector, bool must_store);
  bool CombinesInRegisters(ir::Stmt seq) const;

  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaPreamble& preamble_;
};

}  // namespace kiln::codegen
