#include "graph/passes/simplify.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// Returns the complete order of a transpose.
std::vector<int64_t> OrderOf(const Node& node, int rank) {
  std::vector<int64_t> order = IntsOf(node, "axes");
  if (order.empty()) {
    for (int d = rank; d-- > 0;) order.push_back(d);
  }
  for (int64_t& axis : order) axis += axis < 0 ? rank : 0;
  return order;
}

class Simplification {
 public:
  explicit Simplification(const Graph& graph) : graph_(graph), r_(graph) {}

  StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.num_nodes(); ++i) KILN_RETURN_IF_ERROR(Visit(i));
    return r_.Finish();
  }

 private:
  Status Visit(int i) {
    const Node& node = graph_.node(i);
    if (DoesNothing(node)) {
      r_.Map(node.outputs[0], r_.at(node.inputs[0]));
      return OkStatus();
    }
    if (node.op->name == "split") return Split(node);
    if (node.op->name == "reshape") return Reshape(node);
    if (node.op->name == "transpose") return Transpose(node);
    if (node.op->name == "conv" || node.op->name == "depthwise_conv") return Convolution(i);
    return r_.Copy(i);
  }

  const TensorType& InputType(const Node& node) const { return graph_.value(node.inputs[0]).type; }

  bool DoesNothing(const Node& node) const {
    static constexpr std::array kMovers = {"identity", "cast",      "reshape", "broadcast_to",
                                           "slice",    "transpose", "pad",     "tile"};
    if (std::ranges::find(kMovers, node.op->name) == kMovers.end()) return false;
    // An input that is also an output has to be copied by a node.
    const bool is_copy =
        graph_.is_output(node.outputs[0]) && graph_.value(node.inputs[0]).producer < 0;
    if (is_copy || InputType(node) != graph_.value(node.outputs[0]).type) return false;
    if (node.op->name == "slice")
      return IntsOf(node, "strides").empty() || AllAre(IntsOf(node, "strides"), 1);
    if (node.op->name == "transpose") {
      const std::vector<int64_t> order = OrderOf(node, InputType(node).rank());
      return std::ranges::is_sorted(order);
    }
    if (node.op->name == "pad") {
      return AllAre(IntsOf(node, "before"), 0) && AllAre(IntsOf(node, "after"), 0);
    }
    return true;
  }

  Status Split(const Node& node) {
    const TensorType& type = InputType(node);
    const int64_t given = IntOf(node, "axis");
    const auto axis = static_cast<size_t>(given < 0 ? given + type.rank() : given);
    std::vector<int64_t> begin(type.shape.size(), 0);
    for (ValueId output : node.outputs) {
      const Value& value = graph_.value(output);
      KILN_ASSIGN_OR_RETURN(const ValueId slice,
                            r_.builder().AddOne("slice", {r_.at(node.inputs[0])},
                                                {{"begin", begin}, {"extents", value.type.shape}},
                                                value.name, node.origin));
      r_.Map(output, slice);
      begin[axis] += value.type.shape[axis];
    }
    return OkStatus();
  }

  // Returns the node of the new graph that makes the value, if it is this operator.
  const Node* MadeBy(ValueId now, std::string_view op) {
    const int producer = r_.builder().value(now).producer;
    if (producer < 0) return nullptr;
    const Node& node = r_.builder().node(producer);
    return node.op->name == op ? &node : nullptr;
  }

  Status Add(const Node& node, std::string_view op, ValueId input, Attributes attributes) {
    const Value& output = graph_.value(node.outputs[0]);
    KILN_ASSIGN_OR_RETURN(
        const ValueId made,
        r_.builder().AddOne(op, {input}, std::move(attributes), output.name, node.origin));
    r_.Map(node.outputs[0], made);
    return OkStatus();
  }

  Status Reshape(const Node& node) {
    ValueId input = r_.at(node.inputs[0]);
    if (const Node* before = MadeBy(input, "reshape")) input = before->inputs[0];
    const std::vector<int64_t>& shape = graph_.value(node.outputs[0]).type.shape;
    if (r_.builder().type(input).shape == shape && !graph_.is_output(node.outputs[0])) {
      r_.Map(node.outputs[0], input);
      return OkStatus();
    }
    return Add(node, "reshape", input, {{"shape", shape}});
  }

  Status Transpose(const Node& node) {
    ValueId input = r_.at(node.inputs[0]);
    std::vector<int64_t> order = OrderOf(node, InputType(node).rank());
    if (const Node* before = MadeBy(input, "transpose")) {
      const std::vector<int64_t> first = OrderOf(*before, InputType(node).rank());
      for (int64_t& axis : order) axis = first[static_cast<size_t>(axis)];
      input = before->inputs[0];
    }
    if (std::ranges::is_sorted(order) && !graph_.is_output(node.outputs[0])) {
      r_.Map(node.outputs[0], input);
      return OkStatus();
    }
    // Elements move only if extents of more than 1 change places.
    const std::vector<int64_t>& shape = r_.builder().type(input).shape;
    std::vector<int64_t> moving;
    for (int64_t axis : order) {
      if (shape[static_cast<size_t>(axis)] > 1) moving.push_back(axis);
    }
    if (std::ranges::is_sorted(moving)) {
      return Add(node, "reshape", input, {{"shape", graph_.value(node.outputs[0]).type.shape}});
    }
    return Add(node, "transpose", input, {{"axes", order}});
  }

  // Returns the padding if the pad adds zeros only around the image: a convolution can add these
  // itself.
  std::optional<std::vector<int64_t>> ZerosAroundImage(const Node& pad, bool channels_last) const {
    if (std::get<std::string>(pad.attributes.at("mode")) != "constant" ||
        std::get<double>(pad.attributes.at("value")) != 0)
      return std::nullopt;
    const size_t rank = IntsOf(pad, "before").size();
    const size_t first = channels_last ? 1 : 2, end = channels_last ? rank - 1 : rank;
    std::vector<int64_t> pads;
    for (const char* side : {"before", "after"}) {
      const std::vector<int64_t>& values = IntsOf(pad, side);
      for (size_t d = 0; d < rank; ++d) {
        const bool in_image = d >= first && d < end;
        if (values[d] < 0 || (!in_image && values[d] != 0)) return std::nullopt;
        if (in_image) pads.push_back(values[d]);
      }
    }
    return pads;
  }

  Status Convolution(int i) {
    const Node& node = graph_.node(i);
    const int producer = graph_.value(node.inputs[0]).producer;
    if (producer < 0 || graph_.node(producer).op->name != "pad") return r_.Copy(i);
    const auto zeros = ZerosAroundImage(graph_.node(producer), IntOf(node, "channels_last") != 0);
    if (!zeros) return r_.Copy(i);
    Attributes attributes = node.attributes;
    auto& pads = std::get<std::vector<int64_t>>(attributes.at("pads"));
    pads.resize(zeros->size(), 0);
    for (size_t d = 0; d < pads.size(); ++d) pads[d] += (*zeros)[d];
    const Value& output = graph_.value(node.outputs[0]);
    KILN_ASSIGN_OR_RETURN(
        const ValueId made,
        r_.builder().AddOne(node.op->name,
                            {r_.at(graph_.node(producer).inputs[0]), r_.at(node.inputs[1])},
                            std::move(attributes), output.name, node.origin));
    r_.Map(node.outputs[0], made);
    return OkStatus();
  }

  const Graph& graph_;
  Rewriter r_;
};

}  // namespace

StatusOr<Graph> Simplify(const Graph& graph) {
  KILN_ASSIGN_OR_RETURN(const Graph simpler, Simplification(graph).Run());
  return WithoutDeadCode(simpler);
}

}  // namespace kiln::graph
