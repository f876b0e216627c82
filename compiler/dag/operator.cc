// Making operators: dag.h's class Operator.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/integers.h"
#include "compiler/dag/body_properties.h"
#include "compiler/dag/check_body.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/limits.h"

namespace kiln::dag {
namespace {

using ir::Expr;

// Product of extents, or why it is refused.
StatusOr<int64_t> Product(std::string_view what, std::string_view name,
                          std::span<const int64_t> extents) {
  int64_t product = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] <= 0) {
      return InvalidArgument("{}: axis {} of its {} has extent {}, expected at least 1", name, i,
                             what, extents[i]);
    }
    product = MultiplyCounts(product, extents[i]);
    if (product > kMaxElements) {
      return InvalidArgument(
          "{}: its {} [{}] has more than 2^40 elements, which is the most a tensor may have", name,
          what, fmt::join(extents, ", "));
    }
  }
  return product;
}

std::vector<int64_t> Extents(std::span<const Axis> axes) {
  std::vector<int64_t> extents;
  extents.reserve(axes.size());
  for (const Axis& axis : axes) extents.push_back(axis.extent);
  return extents;
}

Status CheckAxisNames(std::string_view op, std::span<const Axis> axes,
                      std::span<const Axis> reduce_axes) {
  if (axes.size() + reduce_axes.size() > static_cast<size_t>(kMaxAxesOfSteps)) {
    return InvalidArgument("{}: it would have {} axes, expected at most {}", op,
                           axes.size() + reduce_axes.size(), kMaxAxesOfSteps);
  }
  auto at = [&](size_t i) -> const std::string& {
    return i < axes.size() ? axes[i].name : reduce_axes[i - axes.size()].name;
  };
  for (size_t i = 0; i < axes.size() + reduce_axes.size(); ++i) {
    if (at(i).empty()) return InvalidArgument("{}: axis {} has no name", op, i);
    for (size_t j = 0; j < i; ++j) {
      if (at(i) == at(j)) return InvalidArgument("{}: two axes are called {}", op, at(i));
    }
  }
  return OkStatus();
}

Status CheckCombiner(std::string_view op, Combiner combiner, size_t num_reduce_axes,
                     std::span<const Expr> bodies) {
  const bool pair = IsArg(combiner);
  if (pair ? bodies.size() != 2 : bodies.empty() || bodies.size() > kMaxOutputs) {
    return InvalidArgument("{}: got {} bodies, expected {}", op, bodies.size(),
                           pair ? "2 (index, value)" : fmt::format("1 to {}", kMaxOutputs));
  }
  if (combiner != Combiner::kNone && num_reduce_axes == 0) {
    return InvalidArgument("{}: a {} needs at least one reduce axis", op, CombinerName(combiner));
  }
  if (combiner == Combiner::kNone && num_reduce_axes > 0) {
    return InvalidArgument(
        "{}: reduce axes without a combiner (sum, prod, max, min, argmax, argmin)", op);
  }
  if (pair && !bodies[0]->type.is_int()) {
    return InvalidArgument("{}: the index of {} has type {}, expected an integer", op,
                           CombinerName(combiner), TypeName(bodies[0]->type));
  }
  const bool of_bool =
      std::any_of(bodies.begin(), bodies.end(), [](Expr body) { return body->type.is_bool(); });
  if (combiner != Combiner::kNone && of_bool) {
    return InvalidArgument("{}: {} of bool, expected a number", op, CombinerName(combiner));
  }
  return OkStatus();
}

}  // namespace

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
  }
  return "";
}

bool ParseCombiner(std::string_view name, Combiner* combiner) {
  for (int i = 1; i <= static_cast<int>(Combiner::kArgMin); ++i) {
    if (CombinerName(static_cast<Combiner>(i)) != name) continue;
    *combiner = static_cast<Combiner>(i);
    return true;
  }
  return false;
}

StatusOr<OperatorPtr> Operator::Placeholder(std::string name, ir::Type type,
                                            std::vector<int64_t> shape) {
  if (name.empty()) return InvalidArgument("an input has no name");
  KILN_ASSIGN_OR_RETURN(const int64_t elements, Product("shape", name, shape));
  auto op = std::shared_ptr<Operator>(new Operator);
  op->kind_ = OpKind::kPlaceholder;
  op->name_ = std::move(name);
  op->axes_.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) op->axes_.push_back({fmt::format("i{}", i), shape[i]});
  op->types_ = {type};
  op->shape_ = std::move(shape);
  op->num_elements_ = elements;
  return OperatorPtr(std::move(op));
}

StatusOr<OperatorPtr> Operator::Compute(std::string name, std::vector<Axis> axes,
                                        std::vector<Axis> reduce_axes, Combiner combiner,
                                        std::vector<Expr> bodies,
                                        std::shared_ptr<const ir::ExprPool> pool,
                                        std::span<const ir::Type> input_types,
                                        std::span<const std::vector<int64_t>> input_shapes,
                                        Attrs attrs) {
  KILN_CHECK(pool != nullptr && input_types.size() == input_shapes.size());
  if (name.empty()) return InvalidArgument("an operator has no name");
  KILN_RETURN_IF_ERROR(CheckAxisNames(name, axes, reduce_axes));
  KILN_RETURN_IF_ERROR(CheckCombiner(name, combiner, reduce_axes.size(), bodies));

  auto op = std::shared_ptr<Operator>(new Operator);
  op->shape_ = Extents(axes);
  KILN_ASSIGN_OR_RETURN(op->num_elements_, Product("shape", name, op->shape_));
  std::vector<int64_t> extents = Extents(reduce_axes);
  KILN_ASSIGN_OR_RETURN(op->reduce_size_, Product("reduction", name, extents));
  extents.insert(extents.begin(), op->shape_.begin(), op->shape_.end());
  for (Expr body : bodies) {
    if (auto error = CheckBody(body, extents, input_types, input_shapes)) {
      return InvalidArgument("{}: {}", name, error->message);
    }
    op->types_.push_back(body->type);
  }
  op->kind_ = OpKind::kCompute;
  op->properties_ = ComputeProperties(bodies, combiner, op->reduce_size_);
  op->name_ = std::move(name);
  op->axes_ = std::move(axes);
  op->reduce_axes_ = std::move(reduce_axes);
  op->combiner_ = combiner;
  op->bodies_ = std::move(bodies);
  op->pool_ = std::move(pool);
  op->input_types_.assign(input_types.begin(), input_types.end());
  op->input_shapes_.assign(input_shapes.begin(), input_shapes.end());
  op->attrs_ = std::move(attrs);
  return OperatorPtr(std::move(op));
}

OperatorPtr Operator::Renamed(std::string name) const {
  auto op = std::shared_ptr<Operator>(new Operator(*this));
  op->name_ = std::move(name);
  return op;
}

OperatorPtr Operator::WithAttrs(Attrs attrs) const {
  auto op = std::shared_ptr<Operator>(new Operator(*this));
  op->attrs_ = std::move(attrs);
  return op;
}

namespace {

Expr Lowest(ir::Type type, ir::ExprPool& pool) {
  if (type.is_float()) return pool.Float(-std::numeric_limits<double>::infinity(), type);
  return pool.Int(std::numeric_limits<int64_t>::min() >> (64 - type.bits), type);
}

Expr Highest(ir::Type type, ir::ExprPool& pool) {
  if (type.is_float()) return pool.Float(std::numeric_limits<double>::infinity(), type);
  return pool.Int(std::numeric_limits<int64_t>::max() >> (64 - type.bits), type);
}

}  // namespace

Expr ReduceIdentity(Combiner combiner, int output, ir::Type type, ir::ExprPool& pool) {
  switch (combiner) {
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
    case Combiner::kArgMax:
    case Combiner::kArgMin:
    case Combiner::kNone:
      break;
  }
  KILN_CHECK(false, "no reduction of single values");
  return nullptr;
}

std::vector<Expr> CombineArg(Combiner combiner, std::span<const Expr> accumulators,
                             std::span<const Expr> sources, ir::ExprPool& pool) {
  KILN_CHECK(sources.size() == 2);
  const auto better = combiner == Combiner::kArgMax ? ir::Op::kGt : ir::Op::kLt;
  Expr wins = pool.Binary(better, sources[1], accumulators[1]);
  Expr tie = pool.And(pool.Eq(sources[1], accumulators[1]), pool.Lt(sources[0], accumulators[0]));
  return {pool.Select(pool.Or(wins, tie), sources[0], accumulators[0]),
          pool.Select(wins, sources[1], accumulators[1])};
}

}  // namespace

std::vector<Expr> Combine(Combiner combiner, std::span<const Expr> accumulators,
                          std::span<const Expr> sources, ir::ExprPool& pool) {
  KILN_CHECK(accumulators.size() == sources.size() && !sources.empty());
  if (IsArg(combiner)) return CombineArg(combiner, accumulators, sources, pool);
  std::vector<Expr> combined;
  for (size_t k = 0; k < sources.size(); ++k)
    combined.push_back(CombineOne(combiner, accumulators[k], sources[k], pool));
  return combined;
}

}  // namespace kiln::dag
