// Vectorized loops: whether their lanes may run side by side, and the differences of indices
// between the lanes. Internal: this header includes LLVM.
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

// Returns true if the body may run statement by statement for all lanes, instead of lane by lane.
// Returns false if it cannot be proved that no lane touches elements that another one stores.
// `known` and `ranges` are those of the program's variables.
bool LanesAreIndependent(const ir::Program& program, ir::Stmt loop, arith::KnownVars known,
                         std::span<const arith::Interval> ranges);

// Returns the linear form of an index, with quotients joined.
arith::Linear IndexForm(ir::Expr index, arith::KnownVars known);

// The index of lane l is shared + offsets[l]; offsets[0] == 0.
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
  // An i64.
  llvm::Value* base;
  // Set if the base is constant.
  std::optional<int64_t> known_base;
  // A <count x i1>. Null: all lanes are active.
  llvm::Value* mask = nullptr;
  // Answers of Depends.
  std::unordered_map<ir::Expr, bool> depends;

  // Returns true if the value of e differs between lanes.
  bool Depends(ir::Expr e);

  // Splits an index into a shared part and a constant for each lane. None: the index has no such
  // form. In `shared` the lane variable stands for its base. known_vars is unchanged afterwards.
  std::optional<LaneIndex> Split(const arith::Linear& form,
                                 std::vector<std::optional<int64_t>>& known_vars);
};

}  // namespace kiln::codegen
