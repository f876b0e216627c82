// The functions of dag.h's class Operator that make operators.
#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/dag/body_properties.h"
#include "compiler/dag/check_body.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/limits.h"

namespace kiln::dag {
namespace {

using ir::Expr;

// Returns the product of the extents, or the reason to refuse them.
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

// Checks the bodies of a written combiner, which are its parts.
Status CheckParts(std::string_view op, const CustomCombiner& custom, std::span<const Expr> bodies) {
  if (bodies.size() != custom.parts.size()) {
    return InvalidArgument("{}: got {} bodies, {} combines {}", op, bodies.size(), custom.name,
                           custom.parts.size());
  }
  for (size_t k = 0; k < bodies.size(); ++k) {
    if (bodies[k]->type == custom.parts[k].type) continue;
    return InvalidArgument("{}: part {} of {} is {}, expected {}", op, k, custom.name,
                           TypeName(bodies[k]->type), TypeName(custom.parts[k].type));
  }
  return OkStatus();
}

Status CheckCombiner(std::string_view op, const Reduction& reduction, size_t num_reduce_axes,
                     std::span<const Expr> bodies) {
  const Combiner combiner = reduction.kind;
  const std::string_view name =
      reduction.custom != nullptr ? reduction.custom->name : CombinerName(combiner);
  const bool pair = IsArg(combiner);
  if (pair ? bodies.size() != 2 : bodies.empty() || bodies.size() > kMaxOutputs) {
    return InvalidArgument("{}: got {} bodies, expected {}", op, bodies.size(),
                           pair ? "2 (index, value)" : fmt::format("1 to {}", kMaxOutputs));
  }
  if (combiner != Combiner::kNone && num_reduce_axes == 0) {
    return InvalidArgument("{}: a {} needs at least one reduce axis", op, name);
  }
  if (combiner == Combiner::kNone && num_reduce_axes > 0) {
    return InvalidArgument(
        "{}: reduce axes without a combiner (sum, prod, max, min, argmax, argmin, any, all)", op);
  }
  if (pair && !bodies[0]->type.is_int()) {
    return InvalidArgument("{}: the index of {} has type {}, expected an integer", op,
                           CombinerName(combiner), TypeName(bodies[0]->type));
  }
  if (reduction.custom != nullptr) return CheckParts(op, *reduction.custom, bodies);
  if (combiner == Combiner::kAny || combiner == Combiner::kAll) {
    for (Expr body : bodies) {
      if (body->type.is_bool()) continue;
      return InvalidArgument("{}: {} of {}, expected a bool", op, name, TypeName(body->type));
    }
    return OkStatus();
  }
  const bool of_bool =
      std::any_of(bodies.begin(), bodies.end(), [](Expr body) { return body->type.is_bool(); });
  if (combiner != Combiner::kNone && of_bool) {
    return InvalidArgument("{}: {} of bool, expected a number (any and all are of bools)", op,
                           name);
  }
  return OkStatus();
}

}  // namespace

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
                                        std::vector<Axis> reduce_axes, Reduction reduction,
                                        std::vector<Expr> bodies,
                                        std::shared_ptr<const ir::ExprPool> pool,
                                        std::span<const ir::Type> input_types,
                                        std::span<const std::vector<int64_t>> input_shapes,
                                        Attrs attrs) {
  KILN_CHECK(pool != nullptr && input_types.size() == input_shapes.size());
  if (name.empty()) return InvalidArgument("an operator has no name");
  KILN_RETURN_IF_ERROR(CheckAxisNames(name, axes, reduce_axes));
  KILN_RETURN_IF_ERROR(CheckCombiner(name, reduction, reduce_axes.size(), bodies));

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
  op->properties_ = ComputeProperties(bodies, reduction, op->reduce_size_);
  op->name_ = std::move(name);
  op->axes_ = std::move(axes);
  op->reduce_axes_ = std::move(reduce_axes);
  op->reduction_ = std::move(reduction);
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

}  // namespace kiln::dag
