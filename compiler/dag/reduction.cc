#include "compiler/dag/reduction.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/substitution.h"

namespace kiln::dag {

using ir::Expr;

std::string_view CombinerName(Combiner combiner) {
  switch (combiner) {
    case Combiner::kNone:
      return "";
    case Combiner::kSum:
      return "sum";
    case Combiner::kProd:
      return "prod";
    case Combiner::kMax:
      return "max";
    case Combiner::kMin:
      return "min";
    case Combiner::kArgMax:
      return "argmax";
    case Combiner::kArgMin:
      return "argmin";
    case Combiner::kAny:
      return "any";
    case Combiner::kAll:
      return "all";
    case Combiner::kCustom:
      return "";
  }
  return "";
}

bool ParseCombiner(std::string_view name, Combiner* combiner) {
  for (int i = 1; i <= static_cast<int>(Combiner::kAll); ++i) {
    if (CombinerName(static_cast<Combiner>(i)) != name) continue;
    *combiner = static_cast<Combiner>(i);
    return true;
  }
  return false;
}

bool Equal(const CustomCombiner& a, const CustomCombiner& b) {
  const auto same = [](Expr x, Expr y) { return ir::Equal(x, y); };
  return a.name == b.name && a.parts == b.parts &&
         std::ranges::equal(a.identity, b.identity, same) &&
         std::ranges::equal(a.results, b.results, same);
}

bool Reduction::operator==(const Reduction& other) const {
  if (kind != other.kind) return false;
  return custom == other.custom ||
         (custom != nullptr && other.custom != nullptr && Equal(*custom, *other.custom));
}

namespace {

Expr Lowest(ir::Type type, ir::ExprPool& pool) {
  if (type.is_float()) return pool.Float(-std::numeric_limits<double>::infinity(), type);
  if (type.is_unsigned()) return pool.Int(0, type);
  return pool.Int(std::numeric_limits<int64_t>::min() >> (64 - type.bits), type);
}

Expr Highest(ir::Type type, ir::ExprPool& pool) {
  if (type.is_float()) return pool.Float(std::numeric_limits<double>::infinity(), type);
  // All bits are set.
  if (type.is_unsigned()) return pool.Int(-1, type);
  return pool.Int(std::numeric_limits<int64_t>::max() >> (64 - type.bits), type);
}

}  // namespace

Expr ReduceIdentity(const Reduction& reduction, int output, ir::Type type, ir::ExprPool& pool) {
  switch (reduction.kind) {
    case Combiner::kSum:
      return type.is_float() ? pool.Float(0, type) : pool.Int(0, type);
    case Combiner::kProd:
      return type.is_float() ? pool.Float(1, type) : pool.Int(1, type);
    case Combiner::kMax:
      return Lowest(type, pool);
    case Combiner::kMin:
      return Highest(type, pool);
    case Combiner::kArgMax:
      return output == 0 ? Highest(type, pool) : Lowest(type, pool);
    case Combiner::kArgMin:
      return Highest(type, pool);
    case Combiner::kAny:
      return pool.Bool(false);
    case Combiner::kAll:
      return pool.Bool(true);
    case Combiner::kCustom:
      return pool.Import(reduction.custom->identity[static_cast<size_t>(output)]);
    case Combiner::kNone:
      break;
  }
  KILN_CHECK(false, "not a reduction");
  return nullptr;
}

namespace {

Expr CombineOne(Combiner combiner, Expr accumulator, Expr source, ir::ExprPool& pool) {
  switch (combiner) {
    case Combiner::kSum:
      return pool.Add(accumulator, source);
    case Combiner::kProd:
      return pool.Mul(accumulator, source);
    case Combiner::kMax:
      return pool.Max(accumulator, source);
    case Combiner::kMin:
      return pool.Min(accumulator, source);
    // Both sides are evaluated: there is no branch, and a vector takes one step.
    case Combiner::kAny:
      return pool.BitOr(accumulator, source);
    case Combiner::kAll:
      return pool.BitAnd(accumulator, source);
    case Combiner::kArgMax:
    case Combiner::kArgMin:
    case Combiner::kCustom:
    case Combiner::kNone:
      break;
  }
  KILN_CHECK(false, "no reduction of single values");
  return nullptr;
}

// Takes the source if its value is better, or if the values tie and its index is smaller. A NaN is
// better than all numbers and ties with a NaN; -0 ties with 0, and the value is one of the two.
// Most elements of a long reduction are worse than the best so far. The conditions of both results
// therefore ask that first, and evaluate the rest only if the element is no worse: a CPU takes one
// branch for such an element.
std::vector<Expr> CombineArg(Combiner combiner, std::span<const Expr> accumulators,
                             std::span<const Expr> sources, ir::ExprPool& pool) {
  KILN_CHECK(sources.size() == 2);
  const bool is_max = combiner == Combiner::kArgMax;
  const Expr source = sources[1], accumulator = accumulators[1];
  const Expr is_better = pool.Binary(is_max ? ir::Op::kGt : ir::Op::kLt, source, accumulator);
  const Expr is_first = pool.Lt(sources[0], accumulators[0]);
  const Expr is_equal = pool.Eq(source, accumulator);
  if (!source->type.is_float()) {
    const Expr takes = pool.Or(is_better, pool.And(is_equal, is_first));
    return {pool.Select(takes, sources[0], accumulators[0]),
            pool.Select(is_better, source, accumulator)};
  }
  const Expr is_worse = pool.Binary(is_max ? ir::Op::kLt : ir::Op::kGt, source, accumulator);
  const Expr is_nan = pool.Binary(ir::Op::kNe, source, source);
  const Expr takes_tie =
      pool.And(pool.Or(is_equal, is_nan),
               pool.Or(is_first, pool.And(is_nan, pool.Eq(accumulator, accumulator))));
  const Expr takes = pool.And(pool.Not(is_worse), pool.Or(is_better, takes_tie));
  const Expr takes_value = pool.And(pool.Not(is_worse), pool.Or(is_better, is_nan));
  return {pool.Select(takes, sources[0], accumulators[0]),
          pool.Select(takes_value, source, accumulator)};
}

std::vector<Expr> CombineCustom(const CustomCombiner& custom, std::span<const Expr> accumulators,
                                std::span<const Expr> sources, ir::ExprPool& pool) {
  const size_t n = custom.parts.size();
  KILN_CHECK(sources.size() == n);
  ir::Substitution values;
  for (size_t k = 0; k < n; ++k) {
    values.SetVar(static_cast<int32_t>(k), accumulators[k]);
    values.SetVar(static_cast<int32_t>(n + k), sources[k]);
  }
  std::vector<Expr> combined;
  for (Expr result : custom.results) combined.push_back(pool.Substitute(result, values));
  return combined;
}

}  // namespace

std::vector<Expr> Combine(const Reduction& reduction, std::span<const Expr> accumulators,
                          std::span<const Expr> sources, ir::ExprPool& pool) {
  KILN_CHECK(accumulators.size() == sources.size() && !sources.empty());
  if (reduction.custom != nullptr)
    return CombineCustom(*reduction.custom, accumulators, sources, pool);
  const Combiner combiner = reduction.kind;
  if (IsArg(combiner)) return CombineArg(combiner, accumulators, sources, pool);
  std::vector<Expr> combined;
  for (size_t k = 0; k < sources.size(); ++k)
    combined.push_back(CombineOne(combiner, accumulators[k], sources[k], pool));
  return combined;
}

}  // namespace kiln::dag
