#include "compiler/instructions/matrix_unit.h"

#include <algorithm>

namespace kiln::instructions {
namespace {
using ir::Expr;
using ir::MatrixUnitScope;
using ir::Op;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

// Hopper's units keep about 14 bits of sums of 8-bit floats (DeepSeek-V3 Technical Report, arXiv
// 2412.19437, section 3.3.2).
constexpr int kFloat8SumBits = 14;

constexpr MatrixUnit kUnits[] = {
    {.name = "f16", .factor = ir::kFloat16, .sum = ir::kFloat32, .speed = 16},
    {.name = "bf16", .factor = ir::kBFloat16, .sum = ir::kFloat32, .speed = 16},
    {.name = "tf32", .factor = ir::kFloat32, .sum = ir::kFloat32, .speed = 8, .rounds = true},
    {.name = "s8", .factor = ir::kInt8, .sum = ir::kInt32, .speed = 32},
    {.name = "u8", .factor = ir::kUInt8, .sum = ir::kInt32, .speed = 32},
    {.name = "e4m3",
     .factor = ir::kFloat8E4M3,
     .sum = ir::kFloat32,
     .speed = 32,
     .first_arch = 89,
     .sum_bits = kFloat8SumBits},
    {.name = "e5m2",
     .factor = ir::kFloat8E5M2,
     .sum = ir::kFloat32,
     .speed = 32,
     .first_arch = 89,
     .sum_bits = kFloat8SumBits},
};

// Returns the load of the factor, below its conversion if the unit's sum has another type. Null:
// there is no such load.
Expr LoadOf(const MatrixUnit& unit, Expr e) {
  if (e->type != unit.sum) return nullptr;
  if (unit.factor != unit.sum) {
    if (e->op != Op::kCast) return nullptr;
    e = e->arg(0);
  }
  return e->op == Op::kLoad && e->type == unit.factor ? e : nullptr;
}

}  // namespace

std::span<const MatrixUnit> MatrixUnits() { return kUnits; }

std::optional<MatrixFactors> MatrixFactorsOf(Expr product) {
  if (product->op != Op::kMul) return std::nullopt;
  for (const MatrixUnit& unit : kUnits) {
    const Expr a = LoadOf(unit, product->arg(0)), b = LoadOf(unit, product->arg(1));
    if (a != nullptr && b != nullptr) return MatrixFactors{&unit, a, b};
  }
  return std::nullopt;
}

bool UsesMatrixUnits(const Program& program, Stmt stmt, MatrixUnitScope least) {
  if (stmt->kind == StmtKind::kStore)
    return ir::MatrixUnitScopeOf(program.stages[static_cast<size_t>(stmt->stage)].hints) >= least;
  return std::ranges::any_of(stmt->children(),
                             [&](Stmt child) { return UsesMatrixUnits(program, child, least); });
}

Expr AddedBy(Stmt store) {
  const Expr value = store->value();
  if (value->op != Op::kAdd) return nullptr;
  for (const int own : {0, 1}) {
    const Expr sum = value->arg(own);
    if (sum->op == Op::kLoad && sum->id == store->slot &&
        std::ranges::equal(sum->args(), store->indices()))
      return value->arg(1 - own);
  }
  return nullptr;
}

}  // namespace kiln::instructions
