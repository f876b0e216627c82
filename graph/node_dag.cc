#include "graph/node_dag.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace kiln::graph {
namespace {

using dag::TensorRef;

using Inputs = std::vector<std::optional<TensorRef>>;

// Makes a stage of its own for an output that is an input, or from which another output is
// computed.
void SeparateOutputs(dag::DagBuilder& b, std::span<const std::optional<TensorRef>> inputs,
                     std::vector<TensorRef>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorRef x = outputs[i];
    const auto is_x = [&](const TensorRef& other) {
      return b.OperatorOf(other) == b.OperatorOf(x) && b.OutputOf(other) == b.OutputOf(x);
    };
    const bool is_input = std::ranges::any_of(
        inputs, [&](const std::optional<TensorRef>& input) { return input && is_x(*input); });
    const bool is_twice =
        std::any_of(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), is_x);
    if (!is_input && !is_twice && !b.IsRead(x)) continue;
    outputs[i] = b.Compute("T_identity", dag::NumberedAxes("ax", x.shape()),
                           [&](dag::Vars v) { return x.At(v); });
  }
}

StatusOr<std::vector<TensorRef>> WriteNode(dag::DagBuilder& b, const OpDef& op,
                                           const Attributes& attributes, const Inputs& inputs) {
  NodeWriter writer(b, attributes, inputs);
  std::vector<TensorRef> outputs = op.write(writer);
  KILN_RETURN_IF_ERROR(b.status());
  SeparateOutputs(b, inputs, outputs);
  KILN_RETURN_IF_ERROR(b.status());
  return outputs;
}

TensorRef WriteNumber(dag::DagBuilder& b, const Constant& number) {
  const TensorType& type = number.type();
  return b.Compute("T_number", dag::NumberedAxes("ax", type.shape),
                   [&](dag::Vars) { return b.Constant(number.At(0), type.type); });
}

}  // namespace

StatusOr<std::vector<TensorType>> InferTypes(const OpDef& op, const Attributes& attributes,
                                             std::span<const std::optional<TensorType>> inputs) {
  dag::DagBuilder b;
  Inputs refs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    refs.emplace_back();
    if (inputs[i]) {
      refs.back() = b.Placeholder(fmt::format("p{}", i), inputs[i]->type, inputs[i]->shape);
    }
  }
  KILN_RETURN_IF_ERROR(b.status());
  KILN_ASSIGN_OR_RETURN(const std::vector<TensorRef> outputs, WriteNode(b, op, attributes, refs));
  std::vector<TensorType> types;
  for (const TensorRef& output : outputs) types.push_back({output.type(), output.shape()});
  return types;
}

bool IsNumber(const Value& value) {
  return value.constant != nullptr && value.type.num_elements() == 1 && value.type.type.is_float();
}

StatusOr<NodeDag> MakeNodeDag(const Graph& graph, std::span<const int> nodes,
                              std::span<const ValueId> outputs, const NodeDagOptions& options) {
  dag::DagBuilder b;
  std::map<ValueId, TensorRef> made;
  std::map<const dag::Operator*, ValueId> placeholders;
  int num_placeholders = 0;
  for (int n : nodes) {
    const Node& node = graph.node(n);
    Inputs inputs;
    for (ValueId id : node.inputs) {
      inputs.emplace_back();
      if (id == kAbsent) continue;
      if (!made.contains(id) && options.inline_numbers && IsNumber(graph.value(id))) {
        made[id] = WriteNumber(b, *graph.value(id).constant);
        KILN_RETURN_IF_ERROR(b.status());
      }
      if (!made.contains(id)) {
        const TensorType& type = graph.value(id).type;
        made[id] = b.Placeholder(fmt::format("p{}", num_placeholders++), type.type, type.shape);
        KILN_RETURN_IF_ERROR(b.status());
        placeholders[b.OperatorOf(made[id]).get()] = id;
      }
      inputs.back() = made.at(id);
    }
    StatusOr<std::vector<TensorRef>> written = WriteNode(b, *node.op, node.attributes, inputs);
    if (!written.ok()) return Annotate(written.status(), node.op->name);
    for (size_t i = 0; i < node.outputs.size(); ++i) made[node.outputs[i]] = (*written)[i];
  }

  NodeDag result;
  std::vector<TensorRef> refs;
  std::map<std::pair<const dag::Operator*, int>, ValueId> wanted;
  for (ValueId id : outputs) refs.push_back(made.at(id));
  if (std::ranges::any_of(refs, [&](const TensorRef& x) { return b.IsRead(x); })) {
    const TensorRef joined = b.Join(refs);
    for (size_t k = 0; k < refs.size(); ++k) refs[k] = joined.output(static_cast<int>(k));
    KILN_RETURN_IF_ERROR(b.status());
  }
  for (size_t k = 0; k < refs.size(); ++k)
    wanted[{b.OperatorOf(refs[k]).get(), b.OutputOf(refs[k])}] = outputs[k];
  KILN_ASSIGN_OR_RETURN(result.dag, b.Build(refs));
  for (const dag::Tensor& argument : result.dag->arguments()) {
    const dag::Operator* op = &result.dag->op(argument.op);
    if (op->is_placeholder()) {
      result.inputs.push_back(placeholders.at(op));
      continue;
    }
    const auto it = wanted.find({op, argument.output});
    result.outputs.push_back(it == wanted.end() ? kAbsent : it->second);
  }
  return result;
}

}  // namespace kiln::graph
