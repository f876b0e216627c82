// Programs by hand, for tests and benchmarks: names for variables and buffers, and short functions
// that make nodes.
//
//   ProgramBuilder b;
//   int A = b.Buffer("A", ir::Scope::kInput, {8, 16});
//   Expr i = b.Var("i", 8), v = b.Var("v", 16);
//   b.Kernel("copy", b.For(i, LoopKind::kSerial, b.For(v, LoopKind::kVectorized,
//                                                      b.Store(C, {i, v}, b.Load(A, {i, v})))));
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

class ProgramBuilder {
 public:
  ProgramBuilder() {
    program_.pool = std::make_shared<ir::ExprPool>();
    program_.stages.push_back({"stage"});
  }

  // Arguments must be made before locals.
  int Buffer(const std::string& name, ir::Scope scope, std::vector<int64_t> shape,
             ir::Type type = ir::kFloat32) {
    program_.buffers.push_back(
        {.name = name, .type = type, .shape = std::move(shape), .scope = scope, .index_limit = 0});
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  ir::Expr Var(const std::string& name, int64_t extent) {
    program_.vars.push_back({name, extent});
    return pool().Var(static_cast<int32_t>(program_.vars.size()) - 1);
  }
  ir::Expr Load(int slot, std::vector<ir::Expr> indices) {
    return pool().Load(slot, indices, program_.buffers[static_cast<size_t>(slot)].type);
  }
  ir::Stmt Store(int slot, std::vector<ir::Expr> indices, ir::Expr value) {
    return MakeStore(pool(), slot, 0, indices, value);
  }
  // Makes buffer[indices] = buffer[indices] + value.
  ir::Stmt Accumulate(int slot, std::vector<ir::Expr> indices, ir::Expr value) {
    return Store(slot, indices, pool().Add(Load(slot, indices), value));
  }
  ir::Stmt For(ir::Expr var, ir::LoopKind kind, ir::Stmt body) {
    return MakeFor(pool(), var->id, program_.vars[static_cast<size_t>(var->id)].extent, kind, body);
  }
  ir::Stmt Seq(std::vector<ir::Stmt> children) { return MakeSeq(pool(), children); }
  ir::Stmt If(ir::Expr condition, ir::Stmt then) { return MakeIf(pool(), condition, then); }
  ir::Stmt Alloc(int slot, ir::Stmt body) { return MakeAlloc(pool(), slot, body); }
  ir::Expr Call(ir::Intrinsic intrinsic, std::vector<ir::Expr> args) {
    return pool().Call(intrinsic, args);
  }
  ir::Expr Int(int64_t v) { return pool().Int(v); }
  ir::Expr Add(ir::Expr a, ir::Expr b) { return pool().Add(a, b); }
  ir::Expr Mul(ir::Expr a, ir::Expr b) { return pool().Mul(a, b); }
  ir::Expr Mul(ir::Expr a, int64_t b) { return pool().Mul(a, Int(b)); }

  void Kernel(const std::string& name, ir::Stmt body) {
    program_.kernels.push_back({.name = name, .body = body, .grid = {1, 1, 1}, .block = {1, 1, 1}});
  }
  ir::ExprPool& pool() { return *program_.pool; }
  const ir::Program& program() const { return program_; }

 private:
  ir::Program program_;
};

}  // namespace kiln::codegen
