#include "graph/passes/reshapes_down.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

using Shape = std::vector<int64_t>;

bool IsElementwise(const Node& node) {
  return node.op->pattern <= OpPattern::kBroadcast && node.outputs.size() == 1 && !node.op->is_view;
}

// Returns how many of the last axes two shapes share.
size_t SharedLastAxes(const Shape& a, const Shape& b) {
  size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) &&
         a[a.size() - 1 - shared] == b[b.size() - 1 - shared])
    ++shared;
  return shared;
}

Shape WithoutLeadingOnes(const Shape& shape) {
  const auto first = std::ranges::find_if(shape, [](int64_t extent) { return extent != 1; });
  return Shape(first, shape.end());
}

class Mover {
 public:
  explicit Mover(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      const Node& node = graph_.node(i);
      const std::optional<ValueId> from =
          IsElementwise(node) ? ReshapedProduct(node) : std::nullopt;
      KILN_RETURN_IF_ERROR(from ? MoveBefore(node, *from) : rewriter_.Copy(i));
    }
    return rewriter_.Finish();
  }

 private:
  GraphBuilder& builder() { return rewriter_.builder(); }
  const Shape& shape(ValueId now) { return builder().type(now).shape; }

  // Returns what the new value is a reshape of.
  std::optional<ValueId> ReshapeOf(ValueId now) {
    const int32_t producer = builder().value(now).producer;
    if (producer < 0 || builder().node(producer).op->name != "reshape") return std::nullopt;
    return builder().node(producer).inputs[0];
  }

  // Returns whether elementwise functions alone stand between a product and the new value.
  bool IsOfProduct(ValueId now) {
    const auto known = of_product_.find(now);
    if (known != of_product_.end()) return known->second;
    return of_product_[now] = FindProduct(now);
  }
  bool FindProduct(ValueId now) {
    const int32_t producer = builder().value(now).producer;
    if (producer < 0) return false;
    const Node node = builder().node(producer);
    if (node.op->pattern == OpPattern::kProduct) return true;
    if (!IsElementwise(node)) return false;
    return std::ranges::any_of(node.inputs, [&](ValueId input) {
      return input != kAbsent && shape(input) == shape(now) && IsOfProduct(input);
    });
  }

  // Returns whether all that is done with the value are elementwise functions of its shape.
  bool OnlyElementwiseReads(ValueId value) const {
    if (graph_.is_output(value)) return false;
    return std::ranges::all_of(graph_.readers(value), [&](int reader) {
      const Node& node = graph_.node(reader);
      return IsElementwise(node) &&
             graph_.value(node.outputs[0]).type.shape == graph_.value(value).type.shape;
    });
  }

  // Returns the new value, a product's, whose reshape the node and others like it alone read, if
  // the node may read that value and make a result of its shape.
  std::optional<ValueId> ReshapedProduct(const Node& node) {
    const Shape& result = graph_.value(node.outputs[0]).type.shape;
    for (const ValueId input : node.inputs) {
      if (input == kAbsent || !OnlyElementwiseReads(input)) continue;
      const std::optional<ValueId> from = ReshapeOf(rewriter_.at(input));
      if (!from || graph_.value(input).type.shape != result || !IsOfProduct(*from)) continue;
      const bool fit = std::ranges::all_of(node.inputs, [&](ValueId other) {
        return other == kAbsent || ShapeBefore(other, result, shape(*from)).has_value();
      });
      if (fit) return from;
    }
    return std::nullopt;
  }

  // Returns the shape in which the input of a function with that result is an input of the function
  // before the reshape. None: it can be none.
  std::optional<Shape> ShapeBefore(ValueId input, const Shape& result, const Shape& before) const {
    const TensorType& type = graph_.value(input).type;
    if (type.shape == result) return before;
    Shape least = WithoutLeadingOnes(type.shape);
    if (least.size() > SharedLastAxes(result, before)) return std::nullopt;
    return least;
  }

  Status MoveBefore(const Node& node, ValueId from) {
    const Value& result = graph_.value(node.outputs[0]);
    const Shape before = shape(from);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kAbsent ? kAbsent : rewriter_.at(input));
      if (input == kAbsent) continue;
      const Shape wanted = *ShapeBefore(input, result.type.shape, before);
      ValueId& now = inputs.back();
      if (shape(now) == wanted) continue;
      const std::optional<ValueId> source = ReshapeOf(now);
      if (source && shape(*source) == wanted) {
        now = *source;
        continue;
      }
      KILN_ASSIGN_OR_RETURN(now, builder().AddOne("reshape", {now}, {{"shape", wanted}}));
    }
    KILN_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        builder().Add(node.op->name, std::move(inputs), node.attributes, {.origin = node.origin}));
    KILN_ASSIGN_OR_RETURN(
        const ValueId reshaped,
        builder().AddOne("reshape", {made[0]}, {{"shape", result.type.shape}}, result.name));
    rewriter_.Map(node.outputs[0], reshaped);
    return OkStatus();
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::unordered_map<ValueId, bool> of_product_;  // of new values
};

}  // namespace

StatusOr<Graph> ReshapesDown(const Graph& graph) { return Mover(graph).Run(); }

}  // namespace kiln::graph
