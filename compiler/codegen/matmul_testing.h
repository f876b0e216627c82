// The register-tiled matrix product on packed data that tests look into and the benchmark times.
#pragma once

#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {

struct MatmulTiles {
  int64_t m, n, k;
  // Divisors of m and n.
  int64_t tile_m, tile_n;
  // Accumulators are in a local buffer, else in the output.
  bool local;
  ir::LoopKind outer = ir::LoopKind::kSerial;
};

struct MatmulProgram {
  ProgramBuilder builder;
};

// A [m / tile_m, k, tile_m], B [n / tile_n, k, tile_n], C [m, n]. The loop over k is around
// unrolled rows, which are around vectors.
inline MatmulProgram MakeTiledMatmul(const MatmulTiles& t) {
  MatmulProgram result;
  ProgramBuilder& b = result.builder;
  const int A = b.Buffer("A", ir::Scope::kInput, {t.m / t.tile_m, t.k, t.tile_m});
  const int B = b.Buffer("B", ir::Scope::kInput, {t.n / t.tile_n, t.k, t.tile_n});
  const int C = b.Buffer("C", ir::Scope::kOutput, {t.m, t.n});
  const int acc = t.local ? b.Buffer("acc", ir::Scope::kLocal, {t.tile_m, t.tile_n}) : C;
  const ir::Expr io = b.Var("i.0", t.m / t.tile_m), jo = b.Var("j.0", t.n / t.tile_n),
                 k = b.Var("k", t.k);
  const auto tile = [&](const std::string& name, auto body) {
    const ir::Expr i = b.Var("i." + name, t.tile_m), v = b.Var("j." + name, t.tile_n);
    return b.For(i, ir::LoopKind::kUnrolled, b.For(v, ir::LoopKind::kVectorized, body(i, v)));
  };
  const auto place = [&](ir::Expr i, ir::Expr v) -> std::vector<ir::Expr> {
    if (t.local) return {i, v};
    return {b.Add(b.Mul(io, t.tile_m), i), b.Add(b.Mul(jo, t.tile_n), v)};
  };
  const ir::Stmt init = tile(
      "init", [&](ir::Expr i, ir::Expr v) { return b.Store(acc, place(i, v), b.pool().Float(0)); });
  const ir::Stmt update = b.For(
      k, ir::LoopKind::kSerial, tile("1", [&](ir::Expr i, ir::Expr v) {
        return b.Accumulate(acc, place(i, v), b.Mul(b.Load(A, {io, k, i}), b.Load(B, {jo, k, v})));
      }));
  ir::Stmt body = b.Seq({init, update});
  if (t.local) {
    const ir::Stmt write = tile("out", [&](ir::Expr i, ir::Expr v) {
      return b.Store(C, {b.Add(b.Mul(io, t.tile_m), i), b.Add(b.Mul(jo, t.tile_n), v)},
                     b.Load(acc, {i, v}));
    });
    body = b.Alloc(acc, b.Seq({body, write}));
  }
  b.Kernel("matmul", b.For(jo, t.outer, b.For(io, ir::LoopKind::kSerial, body)));
  return result;
}

}  // namespace kiln::codegen
