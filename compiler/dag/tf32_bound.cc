#include "compiler/dag/tf32_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/ir/matrix_unit.h"

namespace kiln::dag {
namespace {

// By which the transform of F(4,3) makes errors larger, at most: 5 times were seen.
constexpr double kMixing = 16;

bool IsSumOfProducts(const Operator& op) {
  return op.combiner() == Combiner::kSum && op.bodies().size() == 1 &&
         op.body()->op == ir::Op::kMul;
}

bool IsRounded(const Operator& op) {
  if (!IsSumOfProducts(op)) return false;
  const auto factors = ir::MatrixFactorsOf(op.body());
  return factors && factors->unit->rounds;
}

}  // namespace

ErrorBound Tf32Bound(int64_t terms) {
  return {.relative = std::ldexp(1, -9),
          .absolute = std::ldexp(1, -9) + static_cast<double>(terms) / 8 * std::ldexp(1, -24)};
}

std::optional<ErrorBound> Tf32Bound(const Dag& dag) {
  std::vector<ErrorBound> bounds(static_cast<size_t>(dag.size()));
  ErrorBound most;
  for (int i = 0; i < dag.size(); ++i) {
    ErrorBound& bound = bounds[static_cast<size_t>(i)];
    for (const int producer : dag.producers(i)) {
      const ErrorBound& read = bounds[static_cast<size_t>(producer)];
      bound.relative = std::max(bound.relative, read.relative);
      bound.absolute = std::max(bound.absolute, read.absolute);
    }
    if (IsRounded(dag.op(i))) {
      const ErrorBound own = Tf32Bound(dag.op(i).reduce_size());
      bound.relative += own.relative;
      bound.absolute += own.absolute;
    } else if (IsSumOfProducts(dag.op(i))) {
      bound.absolute *= kMixing;
    }
    most.relative = std::max(most.relative, bound.relative);
    most.absolute = std::max(most.absolute, bound.absolute);
  }
  if (most.absolute == 0) return std::nullopt;
  for (const Tensor argument : dag.arguments()) {
    const ir::Type type = dag.type(argument);
    if (dag.is_output(argument.op) && type.is_float() && type.bits < 32) return std::nullopt;
  }
  return most;
}

}  // namespace kiln::dag
