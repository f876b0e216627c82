// Evaluation of expressions on scalars, exactly as expr.h defines them. The program interpreter and
// the evaluation of DAGs share it.
//
// Arithmetic on float32 is rounded to float32 at each operation, and arithmetic on float64 is not
// rounded. Shorter floats are carried in float32 and rounded at casts; whoever stores them rounds
// them at stores. Ints wrap to their width. Math calls are computed in double.
//
// A CompiledExpr holds its own stack, so only one thread may use it at a time. It keeps no pointer
// to the expression or its pool. Compiling costs about 40 ns a node. Running costs about 4 ns a
// node plus the loads; a shared node is computed once a run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/scalar.h"

namespace kiln::ir {

// Supplies the values of loads. It must detect an index out of bounds itself; an error that it
// returns ends the evaluation.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // Reads the element of buffer `slot`. Its type must be the type of the load.
  virtual Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) = 0;
};

class CompiledExpr {
 public:
  explicit CompiledExpr(Expr e);

  Type type() const { return type_; }

  // Variable i has the value vars[i]. `loads` may be null if the expression has no loads. Errors: a
  // variable without a value, a division of ints by zero, an error of `loads`.
  Status Run(std::span<const Value> vars, LoadSource* loads, Value* result);

 private:
  enum class Code : uint8_t;
  struct Instruction {
    Code code;
    // kLoad: unused. kCast: type of the result. Other codes: type of the operands.
    Type type;
    // Number of a variable, a slot, an intrinsic, a jump target or a shared node.
    int32_t number;
    // kLoad, kCall: number of arguments. kShared: entry of the subroutine.
    int32_t extra;
  };
  struct Shared {
    uint64_t computed_in_run = 0;
    Value value;
  };
  class Compiler;

  Status Execute(const Value* vars, LoadSource* loads, Value* result);

  Type type_;
  // The largest number of a variable, plus 1.
  int32_t num_vars_ = 0;
  bool has_load_ = false;
  uint64_t run_ = 0;
  std::vector<Instruction> code_;
  std::vector<Value> constants_;
  std::vector<Shared> shared_;
  std::vector<int32_t> returns_;
  std::vector<Value> stack_;
};

// Evaluates once. To evaluate an expression often, compile it.
StatusOr<Value> EvaluateExpr(Expr e, std::span<const Value> vars, LoadSource* loads = nullptr);

}  // namespace kiln::ir
