#include "compiler/instructions/computed_factor.h"

#include <set>

#include "compiler/ir/traverse.h"

namespace kiln::instructions {
namespace {
using ir::Expr;
using ir::Op;

// Only these have registers of two neighbouring terms that threads fill themselves.
constexpr int64_t kFactorBytes = 2;

void AddLoads(Expr e, std::set<Expr>& known, std::vector<Expr>& loads) {
  if (!known.insert(e).second) return;
  if (e->op == Op::kLoad) return loads.push_back(e);
  for (const Expr arg : e->args()) AddLoads(arg, known, loads);
}

}  // namespace

std::optional<ComputedFactor> ComputedFactorOf(Expr product) {
  if (product->op != Op::kMul) return std::nullopt;
  for (const int own : {0, 1}) {
    const Expr converted = product->arg(own), other = product->arg(1 - own);
    if (converted->op != Op::kCast || other->op != Op::kCast) continue;
    const Expr load = converted->arg(0), computed = other->arg(0);
    if (load->op != Op::kLoad || computed->op == Op::kLoad || computed->type != load->type ||
        !ir::HasLoad(computed))
      continue;
    for (const MatrixUnit& unit : MatrixUnits()) {
      if (unit.factor == load->type && unit.factor.bytes() == kFactorBytes &&
          unit.sum == converted->type && unit.sum == other->type)
        return ComputedFactor{&unit, load, computed};
    }
  }
  return std::nullopt;
}

std::vector<Expr> LoadsOf(Expr value) {
  std::set<Expr> known;
  std::vector<Expr> loads;
  AddLoads(value, known, loads);
  return loads;
}

const MatrixUnit* UnitOf(Expr product) {
  if (const std::optional<MatrixFactors> factors = MatrixFactorsOf(product)) return factors->unit;
  const std::optional<ComputedFactor> factors = ComputedFactorOf(product);
  return factors ? factors->unit : nullptr;
}

}  // namespace kiln::instructions
