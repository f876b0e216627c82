#include "compiler/dag/matrix_unit_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::dag {
namespace {

// Factor by which the transform of F(4,3) makes errors larger, at most. A factor of 5 was seen.
constexpr double kMixing = 16;

// Bits of the mantissa of float32.
constexpr int kFloatBits = 24;

bool IsSumOfProducts(const Operator& op) {
  return op.combiner() == Combiner::kSum && op.bodies().size() == 1 &&
         op.body()->op == ir::Op::kMul;
}

// Bound for factors that are rounded to TF32.
ErrorBound RoundedBound(double steps) {
  return {.relative = std::ldexp(1, -9),
          .absolute = std::ldexp(1, -9) + steps * std::ldexp(1, -kFloatBits)};
}

// Bound for sums that are cut to so many bits.
ErrorBound CutBound(double steps, int bits) {
  const double cut = steps * std::ldexp(1, 1 - bits);
  return {.relative = std::ldexp(1, -9) + 5 * cut, .absolute = std::ldexp(1, -8) + cut / 8};
}

}  // namespace

ErrorBound MatrixUnitBound(const instructions::MatrixUnit& unit, int64_t terms) {
  const double steps = static_cast<double>(terms) / static_cast<double>(unit.depth());
  if (unit.rounds) return RoundedBound(steps);
  return unit.sum_bits < kFloatBits && unit.sum.is_float() ? CutBound(steps, unit.sum_bits)
                                                           : ErrorBound();
}

namespace {

// Returns the bound of a sum of products that a unit computes, and zeros for all other operators.
ErrorBound BoundOf(const Operator& op,
                   const std::function<bool(const instructions::MatrixUnit&)>& is_used) {
  if (!IsSumOfProducts(op)) return {};
  const auto factors = instructions::MatrixFactorsOf(op.body());
  return factors && is_used(*factors->unit) ? MatrixUnitBound(*factors->unit, op.reduce_size())
                                            : ErrorBound();
}

}  // namespace

std::optional<ErrorBound> MatrixUnitBound(
    const Dag& dag, const std::function<bool(const instructions::MatrixUnit&)>& is_used) {
  std::vector<ErrorBound> bounds(static_cast<size_t>(dag.size()));
  ErrorBound most;
  for (int i = 0; i < dag.size(); ++i) {
    ErrorBound& bound = bounds[static_cast<size_t>(i)];
    for (const int producer : dag.producers(i)) {
      const ErrorBound& read = bounds[static_cast<size_t>(producer)];
      bound.relative = std::max(bound.relative, read.relative);
      bound.absolute = std::max(bound.absolute, read.absolute);
    }
    const ErrorBound own = BoundOf(dag.op(i), is_used);
    if (own != ErrorBound()) {
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
