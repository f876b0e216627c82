// Writes loop nests statement by statement, for kernels that are not the nest of one stage.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/ir/program.h"

namespace kiln::lower {

// Nodes live in the program's pool. The program is kept by reference. Expressions are of kIndex
// unless they are loaded.
class LoopWriter {
 public:
  explicit LoopWriter(ir::Program& program) : program_(program), pool_(*program.pool) {}

  // ---- expressions
  ir::Expr Int(int64_t value) { return pool_.Int(value); }
  ir::Expr Add(ir::Expr a, ir::Expr b) { return pool_.Add(a, b); }
  ir::Expr Add(ir::Expr a, int64_t b) { return pool_.Add(a, Int(b)); }
  ir::Expr Mul(ir::Expr a, int64_t b) { return pool_.Mul(a, Int(b)); }
  ir::Expr Div(ir::Expr a, int64_t b) { return pool_.FloorDiv(a, Int(b)); }
  ir::Expr Mod(ir::Expr a, int64_t b) { return pool_.FloorMod(a, Int(b)); }
  ir::Expr Less(ir::Expr a, ir::Expr b) { return pool_.Lt(a, b); }
  ir::Expr Less(ir::Expr a, int64_t b) { return pool_.Lt(a, Int(b)); }
  ir::Expr Load(int32_t slot, std::span<const ir::Expr> at) {
    return pool_.Load(slot, at, program_.buffers[static_cast<size_t>(slot)].type);
  }
  // Returns the conjunction. A null operand is a condition that always holds.
  ir::Expr And(ir::Expr a, ir::Expr b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return pool_.And(a, b);
  }

  // ---- statements
  ir::Stmt Store(int32_t slot, int32_t stage, std::span<const ir::Expr> at, ir::Expr value,
                 bool is_async = false) {
    return ir::MakeStore(pool_, slot, stage, at, value, is_async);
  }
  ir::Stmt Seq(const std::vector<ir::Stmt>& statements) { return ir::MakeSeq(pool_, statements); }
  // Returns only the body if the condition is null.
  ir::Stmt If(ir::Expr condition, ir::Stmt body) {
    return condition == nullptr ? body : ir::MakeIf(pool_, condition, body);
  }
  ir::Stmt Alloc(std::span<const int32_t> slots, ir::Stmt body) {
    for (size_t i = slots.size(); i-- > 0;) body = ir::MakeAlloc(pool_, slots[i], body);
    return body;
  }
  // Makes a loop around body(variable), with a new variable. A single iteration needs no loop.
  ir::Stmt Loop(std::string_view name, int64_t extent, ir::LoopKind kind,
                absl::FunctionRef<ir::Stmt(ir::Expr)> body) {
    if (extent == 1) return body(Int(0));
    const int32_t var = ir::AddVar(program_, std::string(name), extent);
    return ir::MakeFor(pool_, var, extent, kind, body(pool_.Var(var)));
  }
  ir::Stmt Loop(std::string_view name, int64_t extent, absl::FunctionRef<ir::Stmt(ir::Expr)> body) {
    return Loop(name, extent, ir::LoopKind::kSerial, body);
  }

 private:
  ir::Program& program_;
  ir::ExprPool& pool_;
};

}  // namespace kiln::lower
