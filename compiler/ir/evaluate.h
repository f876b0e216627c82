// Evaluation of expressions on scalars, exactly as expr.h defines them. The program interpreter and
// the evaluation of DAGs share it.
//
// float32 arithmetic is rounded to float32 at each operation, float64 is not rounded, shorter
// floats are carried in float32 and rounded at casts (and by the owner at stores). Ints wrap to their
// width. Math calls are done in double.
//
// CompiledExpr holds its own stack: one thread at a time. It keeps no pointer to the expression or
// its pool. Cost: compiling ~ 40 ns a node, running ~ 4 ns a node plus the loads; a shared node is
// computed once a run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/scalar.h"

namespace kiln::ir {

// Where loads get their values. An index out of bounds is for the source to find; its error ends
// the evaluation.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // The element of buffer `slot`; its type must be the type of the load.
  virtual Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) = 0;
};

class CompiledExpr {
 public:
  explicit CompiledExpr(Expr e);

  Type type() const { return type_; }

  // Variable i has the value vars[i]. `loads` may be null when the expression has none.
  // Errors: a variable without a value, division of ints by zero, what `loads` reports.
  Status Run(std::span<const Value> vars, LoadSource* loads, Value* result);

 private:
  enum class Code : uint8_t;
  struct Instruction {
    Code code;
    Type type;       // kLoad nothing; kCast: of the result; else of the operands
    int32_t number;  // variable, slot, intrinsic, jump target, shared node
    int32_t extra;   // number of indices; kShared: entry of the subroutine
  };
  struct Shared {
    uint64_t computed_in_run = 0;
    Value value;
  };
  class Compiler;

  Status Execute(const Value* vars, LoadSource* loads, Value* result);

  Type type_;
  int32_t num_vars_ = 0;  // largest variable + 1
  bool has_load_ = false;
  uint64_t run_ = 0;
  std::vector<Instruction> code_;
  std::vector<Value> constants_;
  std::vector<Shared> shared_;
  std::vector<int32_t> returns_;
  std::vector<Value> stack_;
};

// Once; compile it to run it often.
StatusOr<Value> EvaluateExpr(Expr e, std::span<const Value> vars, LoadSource* loads = nullptr);

}  // namespace kiln::ir
