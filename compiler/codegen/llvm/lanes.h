// Vectorized loops: may their lanes run side by side, and how do indices differ between the lanes?
// Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/Value.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/arith/interval.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// May the body run statement by statement for all lanes, instead of lane by lane? False where it
// cannot be proved that no lane touches what another one stores. `known`, `ranges`: of the
// program's variables.
bool LanesAreIndependent(const ir::Program& program, ir::Stmt loop, arith::KnownVars known,
                         std::span<const arith::Interval> ranges);

// The linear form of an index, with quotients joined.
arith::Linear IndexForm(ir::Expr index, arith::KnownVars known);

// index of lane l = shared + offsets[l]; offsets[0] == 0.
struct LaneIndex {
  arith::Linear shared;
  std::vector<int64_t> offsets;
  bool IsUniform() const;
  bool IsContiguous() const;
};

// The lanes [base, base + count) of the vectorized loop that is being emitted.
struct Lanes {
  int32_t var;
  int count;
  llvm::Value* base;                           // i64
  std::optional<int64_t> known_base;           // when constant
  llvm::Value* mask = nullptr;                 // <count x i1>; null: all lanes are active
  std::unordered_map<ir::Expr, bool> depends;  // answers of Depends

  // Does the value of e differ between lanes?
  bool Depends(ir::Expr e);

  // Nothing: the index of a lane is not the shared part plus a constant. In `shared` the lane
  // variable stands for its base. known_vars is as before afterwards.
  std::optional<LaneIndex> Split(const arith::Linear& form,
                                 std::vector<std::optional<int64_t>>& known_vars);
};

}  // namespace kiln::codegen
