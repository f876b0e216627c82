#include "compiler/dag/check_combiner.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/text.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

using ir::Expr;
using ir::Op;
using ir::Value;
// One for each part.
using Values = std::vector<Value>;

constexpr int kSamples = 100;
constexpr int kTriesForDistinct = 100;

// Expressions of a combiner run for any values, so nothing in them may be out of bounds.
Status CheckExpression(std::string_view name, Expr e, size_t num_vars) {
  Status status;
  ir::Visit(e, [&](Expr node) {
    if (!status.ok()) return;
    if (node->op == Op::kLoad) {
      status = InvalidArgument("combine {}: it reads a tensor, expected its parameters only", name);
    }
    if (node->op == Op::kVar && (node->id < 0 || static_cast<size_t>(node->id) >= num_vars)) {
      status = InvalidArgument("combine {}: variable {} is no parameter", name, node->id);
    }
    const bool divides = node->op == Op::kFloorDiv || node->op == Op::kFloorMod;
    if (divides &&
        (node->type.is_float() || !node->arg(1)->is_const_int() || node->arg(1)->int_value == 0)) {
      status = InvalidArgument("combine {}: // and % need an integer constant behind them", name);
    }
    const bool shifts = node->op == Op::kShl || node->op == Op::kShr;
    if (shifts && (!node->arg(1)->is_const_int() || node->arg(1)->int_value < 0 ||
                   node->arg(1)->int_value >= node->type.bits)) {
      status = InvalidArgument("combine {}: shifts need a constant from 0 to {} behind them", name,
                               node->type.bits - 1);
    }
  });
  return status;
}

Status CheckStructure(const CustomCombiner& c) {
  const size_t n = c.parts.size();
  if (c.name.empty()) return InvalidArgument("a combiner has no name");
  if (n == 0 || n > static_cast<size_t>(kMaxOutputs)) {
    return InvalidArgument("combine {}: it has {} parts, expected 1 to {}", c.name, n, kMaxOutputs);
  }
  if (c.identity.size() != n || c.results.size() != n) {
    return InvalidArgument("combine {}: {} values to start from and {} results, expected {} each",
                           c.name, c.identity.size(), c.results.size(), n);
  }
  for (size_t k = 0; k < n; ++k) {
    const CustomCombiner::Part& part = c.parts[k];
    for (Expr e : {c.identity[k], c.results[k]}) {
      if (e->type == part.type) continue;
      return InvalidArgument("combine {}: part {} is {}, found {} for it", c.name, k,
                             TypeName(part.type), TypeName(e->type));
    }
    if (c.identity[k]->op != Op::kInt && c.identity[k]->op != Op::kFloat) {
      return InvalidArgument("combine {}: it starts from an expression, expected constants",
                             c.name);
    }
    if (!std::isfinite(part.low) || !std::isfinite(part.high) || part.low > part.high) {
      return InvalidArgument("combine {}: range [{}, {}) of {}, expected its low end below", c.name,
                             part.low, part.high, part.left);
    }
    KILN_RETURN_IF_ERROR(CheckExpression(c.name, c.results[k], 2 * n));
  }
  return OkStatus();
}

// Runs a combiner on values and compares the results.
class Trial {
 public:
  Trial(const CustomCombiner& combiner, uint64_t seed) : c_(combiner), rng_(seed) {
    for (Expr e : c_.results) results_.emplace_back(e);
    for (size_t k = 0; k < c_.parts.size(); ++k) {
      const Expr e = c_.identity[k];
      identity_.push_back(TypeOf(k).is_float() ? Value::Float(e->float_value)
                                               : Value::Int(e->int_value));
    }
  }

  Status Run() {
    KILN_RETURN_IF_ERROR(Expect(identity_, identity_, identity_, "combine(identity, identity)"));
    for (int i = 0; i < kSamples; ++i) {
      taken_.clear();
      const Values x = Sample(), y = Sample(), z = Sample();
      KILN_RETURN_IF_ERROR(Expect(identity_, x, x, "combine(identity, x)", x));
      KILN_RETURN_IF_ERROR(Expect(x, identity_, x, "combine(x, identity)", x));
      KILN_ASSIGN_OR_RETURN(const Values xy, Combined(x, y));
      KILN_RETURN_IF_ERROR(Expect(y, x, xy, "combine(y, x), as combine(x, y) is,", x, y));
      KILN_ASSIGN_OR_RETURN(const Values yz, Combined(y, z));
      KILN_ASSIGN_OR_RETURN(const Values x_yz, Combined(x, yz));
      KILN_RETURN_IF_ERROR(Expect(
          xy, z, x_yz, "combine(combine(x, y), z), as combine(x, combine(y, z)) is,", x, y, z));
    }
    return OkStatus();
  }

 private:
  ir::Type TypeOf(size_t part) const { return c_.parts[part].type; }

  // Draws a value for each part. All values of a part are different, because combiners need not
  // agree on ties.
  Values Sample() {
    Values values;
    for (size_t k = 0; k < c_.parts.size(); ++k) {
      double drawn = Draw(c_.parts[k]);
      for (int i = 0; i < kTriesForDistinct && IsTaken(k, drawn); ++i) drawn = Draw(c_.parts[k]);
      taken_.emplace_back(k, drawn);
      values.push_back(TypeOf(k).is_float() ? Value::Float(drawn)
                                            : Value::Int(static_cast<int64_t>(drawn)));
    }
    return values;
  }
  bool IsTaken(size_t part, double value) const {
    return std::ranges::find(taken_, std::pair(part, value)) != taken_.end();
  }
  double Draw(const CustomCombiner::Part& part) {
    const ir::Type type = part.type;
    double low = part.low, high = part.high;
    if (low == high) {
      low = type.is_float() ? -2 : type.is_unsigned() || type.is_bool() ? 0 : -100;
      high = type.is_float() ? 2 : type.is_bool() ? 2 : 100;
    }
    const double drawn = low + (high - low) * UniformReal(rng_);
    if (type.is_float()) return ir::RoundToType(drawn, type);
    return static_cast<double>(ir::WrapToType(static_cast<int64_t>(std::floor(drawn)), type));
  }

  StatusOr<Values> Combined(const Values& left, const Values& right) {
    Values vars = left;
    vars.insert(vars.end(), right.begin(), right.end());
    Values result(results_.size());
    for (size_t k = 0; k < results_.size(); ++k) {
      KILN_RETURN_IF_ERROR(
          Annotate(results_[k].Run(vars, nullptr, &result[k]), fmt::format("combine {}", c_.name)));
      if (TypeOf(k).is_float()) result[k] = Value::Float(ir::RoundToType(result[k].f, TypeOf(k)));
    }
    return result;
  }

  static bool IsNear(Value a, Value b, ir::Type type) {
    if (!type.is_float()) return a.i == b.i;
    if (a.f == b.f) return true;
    const double tolerance = type.bits == 8 ? 0.3 : type.bits == 16 ? 3e-2 : 1e-3;
    return std::abs(a.f - b.f) <= tolerance * std::max({1.0, std::abs(a.f), std::abs(b.f)});
  }

  std::string Text(const Values& values) const {
    std::vector<std::string> parts;
    for (size_t k = 0; k < values.size(); ++k) {
      parts.push_back(TypeOf(k).is_float()  ? ir::FloatText(values[k].f, TypeOf(k))
                      : TypeOf(k).is_bool() ? values[k].i != 0 ? "true" : "false"
                                            : fmt::format("{}", values[k].i));
    }
    return parts.size() == 1 ? parts[0] : fmt::format("({})", fmt::join(parts, ", "));
  }

  template <typename... Samples>
  Status Expect(const Values& left, const Values& right, const Values& expected,
                std::string_view what, const Samples&... samples) {
    KILN_ASSIGN_OR_RETURN(const Values found, Combined(left, right));
    bool same = true;
    for (size_t k = 0; k < found.size(); ++k) same &= IsNear(found[k], expected[k], TypeOf(k));
    if (same) return OkStatus();
    std::string with;
    size_t i = 0;
    ((with += fmt::format("{}{} = {}", i == 0 ? " for " : ", ", "xyz"[i], Text(samples)), ++i),
     ...);
    return InvalidArgument(
        "combine {}: expected {} to be {}, found {}{}; reductions run in pieces and in any order, "
        "so it must be associative and commutative and start from a value that changes nothing "
        "(@range(LOW, HIGH) before a parameter says which values it is for)",
        c_.name, what, Text(expected), Text(found), with);
  }

  const CustomCombiner& c_;
  Rng rng_;
  std::vector<ir::CompiledExpr> results_;
  Values identity_;
  std::vector<std::pair<size_t, double>> taken_;
};

}  // namespace

Status CheckCustomCombiner(const CustomCombiner& combiner, uint64_t seed) {
  KILN_RETURN_IF_ERROR(CheckStructure(combiner));
  return Trial(combiner, seed).Run();
}

}  // namespace kiln::dag
