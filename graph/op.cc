#include "graph/op.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/closest_names.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::graph {
namespace {

std::vector<OpDef> CollectOps() {
  std::vector<OpDef> all;
  for (auto* family : {ElementwiseOps, ProductOps, ConvolutionOps, WinogradOps, PoolingOps,
                       ReductionOps, NormalizationOps, RearrangementOps, IndexingOps}) {
    for (OpDef& op : family()) all.push_back(std::move(op));
  }
  return all;
}

// Converts a whole number if a number is wanted, and an empty list to the wanted kind.
Attribute Fitted(Attribute value, AttributeKind wanted) {
  if (wanted == AttributeKind::kFloat && KindOf(value) == AttributeKind::kInt)
    return static_cast<double>(std::get<int64_t>(value));
  if (wanted == AttributeKind::kFloats && KindOf(value) == AttributeKind::kInts) {
    const auto& ints = std::get<std::vector<int64_t>>(value);
    return std::vector<double>(ints.begin(), ints.end());
  }
  return value;
}

Status UnknownAttribute(const OpDef& op, std::string_view name) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : op.attributes) names.push_back(spec.name);
  if (names.empty()) return InvalidArgument("{} has no attributes, got '{}'", op.name, name);
  return InvalidArgument("{} has no attribute '{}'{}; it has {}", op.name, name,
                         DidYouMean(name, names), fmt::join(names, ", "));
}

}  // namespace

const std::vector<OpDef>& AllOps() {
  static const std::vector<OpDef> ops = CollectOps();
  return ops;
}

StatusOr<const OpDef*> FindOp(std::string_view name) {
  std::vector<std::string> names;
  for (const OpDef& op : AllOps()) {
    if (op.name == name) return &op;
    names.push_back(op.name);
  }
  return NotFound("unknown network operator '{}'{}", name, DidYouMean(name, names));
}

StatusOr<Attributes> CompleteAttributes(const OpDef& op, Attributes attributes) {
  for (const auto& [name, value] : attributes) {
    const bool known = std::ranges::any_of(
        op.attributes, [&](const AttributeSpec& spec) { return spec.name == name; });
    if (!known) return UnknownAttribute(op, name);
  }
  for (const AttributeSpec& spec : op.attributes) {
    const auto it = attributes.find(spec.name);
    if (it == attributes.end()) {
      if (spec.default_value) {
        attributes[spec.name] = *spec.default_value;
      } else if (!spec.is_optional) {
        return InvalidArgument("{} needs its attribute {}: {}", op.name, spec.name, spec.doc);
      }
      continue;
    }
    it->second = Fitted(std::move(it->second), spec.kind);
    if (KindOf(it->second) != spec.kind) {
      return InvalidArgument("attribute {} of {} is {}, got {}", spec.name, op.name,
                             KindText(spec.kind), AttributeText(it->second));
    }
  }
  return attributes;
}

size_t NodeWriter::Axis(std::string_view attribute, int64_t value, int rank) {
  const int64_t at = value < 0 ? value + rank : value;
  if (at >= 0 && at < rank) return static_cast<size_t>(at);
  Fail("{} = {} of a tensor with {} dimension{}, expected {} to {}", attribute, value, rank,
       rank == 1 ? "" : "s", -rank, rank - 1);
  return 0;
}

std::vector<size_t> NodeWriter::Axes(std::string_view attribute, std::span<const int64_t> values,
                                     int rank) {
  std::vector<size_t> axes;
  for (int64_t value : values) {
    const size_t axis = Axis(attribute, value, rank);
    if (std::ranges::find(axes, axis) != axes.end()) {
      Fail("{} names axis {} twice", attribute, axis);
      continue;
    }
    axes.push_back(axis);
  }
  return axes;
}

dag::OpContext NodeWriter::Context(const dag::OpArgs& args, ir::Type type,
                                   std::vector<dag::TensorRef> inputs) {
  return dag::OpContext(b, args, type, dag::AccumulatorType(type), dag::ResultType(type),
                        std::move(inputs));
}

dag::TensorRef NodeWriter::Library(std::string_view op, dag::OpArgs args,
                                   std::vector<dag::TensorRef> inputs) {
  const StatusOr<const dag::OpInfo*> info = dag::FindOp(op);
  KILN_CHECK(info.ok(), "{}", op);
  for (const dag::Parameter& parameter : (*info)->parameters) {
    if (parameter.default_value && !args.has(parameter.name))
      args.Set(parameter.name, *parameter.default_value);
  }
  const ir::Type type = inputs[0].type();
  dag::OpContext context = Context(args, type, std::move(inputs));
  return Converted((*info)->build(context), context.result_type);
}

dag::TensorRef NodeWriter::Converted(const dag::TensorRef& x, ir::Type type) {
  if (x.type() == type) return x;
  return b.Compute("T_cast", dag::NumberedAxes("ax", x.shape()),
                   [&](dag::Vars v) { return dag::Cast(type, x.At(v)); });
}

}  // namespace kiln::graph
