#include "graph/passes/fold_scales.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// x op c with a constant c that has a number for each channel of x, or one number for all.
struct ChannelOp {
  ValueId x, constant;
};

std::optional<ChannelOp> AsChannelOp(const Graph& graph, const Node& node, std::string_view op,
                                     int axis) {
  if (node.op->name != op) return std::nullopt;
  for (const auto& [x, c] :
       {std::pair(node.inputs[0], node.inputs[1]), std::pair(node.inputs[1], node.inputs[0])}) {
    if (graph.value(c).constant == nullptr || graph.value(x).constant != nullptr) continue;
    const TensorType& type = graph.value(x).type;
    const auto vector = ChannelVectorOf(graph.value(c).type, type.rank());
    if (vector && (vector->axis < 0 || vector->axis == axis) &&
        type == graph.value(node.outputs[0]).type)
      return ChannelOp{x, c};
  }
  return std::nullopt;
}

// Planned changes of nodes, found in the old graph and applied while it is copied.
struct Plan {
  // Factors for the outputs of a product, by product.
  std::map<int, std::vector<ValueId>> weight_of_output;
  // Factors for the inputs of a product, by product.
  std::map<int, std::vector<ValueId>> weight_of_input;
  // Factors for the constant of an add, by add.
  std::map<int, ValueId> multiplied;
  // Divisors for the constant of an add, by add.
  std::map<int, ValueId> divided;
  // Values that stand for the output of a mul, by mul.
  std::map<int, ValueId> dropped;
};

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph) {}

  Plan Make() {
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (graph_.node(i).op->name != "mul") continue;
      if (!FoldBack(i)) FoldForward(i);
    }
    return std::move(plan_);
  }

 private:
  // Returns the node that makes the value, if only one node reads the value.
  std::optional<int> OnlyFor(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.producer < 0 || graph_.is_output(id) || graph_.readers(id).size() != 1)
      return std::nullopt;
    return value.producer;
  }

  bool HasConstantWeights(const Node& product) const {
    return graph_.value(product.inputs[1]).constant != nullptr &&
           product.inputs[0] != product.inputs[1];
  }

  // Folds the factor into the product that makes the value, perhaps through an add of a constant.
  bool FoldBack(int mul) {
    const Node& node = graph_.node(mul);
    for (ValueId x : node.inputs) {
      std::optional<int> made = OnlyFor(x);
      std::optional<int> add;
      if (made && graph_.node(*made).op->name == "add") {
        add = made;
        made = ProductUnderAdd(*add);
      }
      if (!made) continue;
      const Node& product = graph_.node(*made);
      const auto channels = ChannelsOf(graph_, product);
      if (!channels || !channels->weight_of_output || !HasConstantWeights(product)) continue;
      const auto scale = AsChannelOp(graph_, node, "mul", channels->output_axis);
      if (!scale || scale->x != x) continue;
      if (add && !AsChannelOp(graph_, graph_.node(*add), "add", channels->output_axis)) continue;
      plan_.weight_of_output[*made].push_back(scale->constant);
      if (add) plan_.multiplied[*add] = scale->constant;
      plan_.dropped[mul] = x;
      return true;
    }
    return false;
  }

  std::optional<int> ProductUnderAdd(int add) const {
    for (ValueId x : graph_.node(add).inputs) {
      const std::optional<int> made = OnlyFor(x);
      if (made && ChannelsOf(graph_, graph_.node(*made))) return made;
    }
    return std::nullopt;
  }

  // Follows the chain mul [add] [relu] to the products that read its end.
  bool FoldForward(int mul) {
    const Node& node = graph_.node(mul);
    ValueId end = node.outputs[0];
    std::optional<int> add;
    bool through_relu = false;
    while (const std::optional<int> next = OnlyReader(end)) {
      const std::string& op = graph_.node(*next).op->name;
      if (op == "add" && !add && !through_relu) {
        add = next;
      } else if (op == "relu") {
        through_relu = true;
      } else {
        break;
      }
      end = graph_.node(*next).outputs[0];
    }
    const std::optional<int> axis = InputAxisOfReaders(end);
    if (!axis) return false;
    const auto scale = AsChannelOp(graph_, node, "mul", *axis);
    if (!scale || !IsUsable(scale->constant, add.has_value(), through_relu)) return false;
    if (add && !AsChannelOp(graph_, graph_.node(*add), "add", *axis)) return false;
    for (int reader : graph_.readers(end)) plan_.weight_of_input[reader].push_back(scale->constant);
    if (add) plan_.divided[*add] = scale->constant;
    plan_.dropped[mul] = scale->x;
    return true;
  }

  std::optional<int> OnlyReader(ValueId id) const {
    if (graph_.is_output(id) || graph_.readers(id).size() != 1) return std::nullopt;
    return graph_.readers(id)[0];
  }

  // Returns the axis of channels, if all readers are products that may take factors for their
  // inputs.
  std::optional<int> InputAxisOfReaders(ValueId id) const {
    std::optional<int> axis;
    if (graph_.is_output(id)) return std::nullopt;
    for (int reader : graph_.readers(id)) {
      const Node& product = graph_.node(reader);
      const auto channels = ChannelsOf(graph_, product);
      if (!channels || !channels->weight_of_input || !HasConstantWeights(product) ||
          product.inputs[0] != id || (axis && *axis != channels->input_axis))
        return std::nullopt;
      axis = channels->input_axis;
    }
    return axis;
  }

  // Returns whether the scale may be used: a divisor must not be 0, and a factor taken out of a
  // relu must be positive.
  bool IsUsable(ValueId scale, bool divides, bool through_relu) const {
    const Constant& constant = *graph_.value(scale).constant;
    for (int64_t i = 0; i < constant.type().num_elements(); ++i) {
      const double s = constant.At(i);
      if (through_relu && !(s > 0)) return false;
      if (divides && !(std::abs(s) > 1e-30)) return false;
    }
    return true;
  }

  const Graph& graph_;
  Plan plan_;
};

class Folding {
 public:
  explicit Folding(const Graph& graph) : graph_(graph), plan_(Planner(graph).Make()), r_(graph) {}

  StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.num_nodes(); ++i) KILN_RETURN_IF_ERROR(Visit(i));
    return r_.Finish();
  }

 private:
  Status Visit(int i) {
    const Node& node = graph_.node(i);
    if (const auto dropped = plan_.dropped.find(i); dropped != plan_.dropped.end()) {
      r_.Map(node.outputs[0], r_.at(dropped->second));
      return OkStatus();
    }
    if (plan_.weight_of_output.contains(i) || plan_.weight_of_input.contains(i))
      return ScaleWeights(i);
    if (const auto by = plan_.multiplied.find(i); by != plan_.multiplied.end())
      return ScaleAdd(node, "mul", by->second);
    if (const auto by = plan_.divided.find(i); by != plan_.divided.end())
      return ScaleAdd(node, "div", by->second);
    return r_.Copy(i);
  }

  Status ScaleWeights(int i) {
    const Node& node = graph_.node(i);
    const auto channels = ChannelsOf(graph_, node);
    ValueId weights = r_.at(node.inputs[1]);
    for (const auto& [factors, axis] :
         {std::pair(&plan_.weight_of_output, channels->weight_of_output),
          std::pair(&plan_.weight_of_input, channels->weight_of_input)}) {
      const auto found = factors->find(i);
      if (found == factors->end()) continue;
      for (ValueId factor : found->second) {
        KILN_ASSIGN_OR_RETURN(weights, Scaled(weights, *axis, factor));
      }
    }
    std::vector<ValueId> inputs = r_.AllAt(node.inputs);
    inputs[1] = weights;
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          r_.builder().Copy(graph_, node, std::move(inputs)));
    r_.Map(node.outputs[0], outputs[0]);
    return OkStatus();
  }

  // Returns weights * factor. The factor's numbers lie along `axis` of the weights.
  StatusOr<ValueId> Scaled(ValueId weights, int axis, ValueId factor) {
    GraphBuilder& b = r_.builder();
    std::vector<int64_t> shape(b.type(weights).shape.size(), 1);
    shape[static_cast<size_t>(axis)] = graph_.value(factor).type.num_elements();
    KILN_ASSIGN_OR_RETURN(const ValueId along,
                          b.AddOne("reshape", {r_.at(factor)}, {{"shape", shape}}));
    return b.AddOne("mul", {weights, along}, {}, b.value(weights).name);
  }

  // Changes x + c into x + (c op factor).
  Status ScaleAdd(const Node& node, std::string_view op, ValueId factor) {
    std::vector<ValueId> inputs = r_.AllAt(node.inputs);
    const size_t c = graph_.value(node.inputs[0]).constant != nullptr ? 0 : 1;
    KILN_ASSIGN_OR_RETURN(inputs[c], r_.builder().AddOne(op, {inputs[c], r_.at(factor)}));
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          r_.builder().Copy(graph_, node, std::move(inputs)));
    r_.Map(node.outputs[0], outputs[0]);
    return OkStatus();
  }

  const Graph& graph_;
  const Plan plan_;
  Rewriter r_;
};

}  // namespace

StatusOr<Graph> FoldScales(const Graph& graph) { return Folding(graph).Run(); }

}  // namespace kiln::graph
