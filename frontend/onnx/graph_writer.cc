#include "frontend/onnx/graph_writer.h"

#include <utility>

#include "base/numbers/integers.h"
#include "frontend/onnx/empty_tensors.h"
#include "frontend/onnx/evaluate_known.h"

namespace kiln::frontend {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::ValueId;

// Inferring the types of a node's outputs takes about this many steps.
constexpr int64_t kStepsOfNode = 1000;

std::vector<bool> NeededNodes(const Graph& graph) {
  std::vector<bool> needed(static_cast<size_t>(graph.num_nodes()));
  std::vector<bool> needed_values(graph.values().size());
  for (ValueId id : graph.outputs()) needed_values[static_cast<size_t>(id)] = true;
  for (int i = graph.num_nodes() - 1; i >= 0; --i) {
    const graph::Node& node = graph.node(i);
    const bool is_needed = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return needed_values[static_cast<size_t>(id)]; });
    needed[static_cast<size_t>(i)] = is_needed;
    if (!is_needed) continue;
    for (ValueId id : node.inputs)
      if (id != graph::kAbsent) needed_values[static_cast<size_t>(id)] = true;
  }
  return needed;
}

// Returns the graph without unneeded nodes, and without constants that only such nodes read.
StatusOr<Graph> Pruned(const Graph& graph) {
  const std::vector<bool> needed = NeededNodes(graph);
  GraphBuilder builder;
  std::vector<ValueId> copies(graph.values().size(), graph::kAbsent);
  for (ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    KILN_ASSIGN_OR_RETURN(copies[static_cast<size_t>(id)], builder.Input(value.name, value.type));
  }
  const auto copy_of = [&](ValueId id) {
    if (id == graph::kAbsent) return id;
    ValueId& copy = copies[static_cast<size_t>(id)];
    const graph::Value& value = graph.value(id);
    if (copy == graph::kAbsent) copy = builder.Add(value.name, value.constant);
    return copy;
  };
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    const graph::Node& node = graph.node(i);
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(copy_of(id));
    KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          builder.Copy(graph, node, std::move(inputs)));
    for (size_t k = 0; k < outputs.size(); ++k)
      copies[static_cast<size_t>(node.outputs[k])] = outputs[k];
  }
  for (ValueId id : graph.outputs()) builder.Output(copy_of(id));
  return builder.Build();
}

}  // namespace

StatusOr<Tensor> GraphWriter::Input(std::string name, graph::TensorType type) {
  KILN_ASSIGN_OR_RETURN(const ValueId id, builder_.Input(std::move(name), type));
  is_named_.resize(static_cast<size_t>(builder_.num_values()), true);
  // Rules see that the tensor is empty. No node reads the input.
  if (Tensor empty = Tensor::Empty(type); empty.is_empty()) return empty;
  return Tensor{Tensor::State::kValue, std::move(type), nullptr, id};
}

StatusOr<ValueId> GraphWriter::IdOf(const Tensor& tensor) {
  if (!tensor.exists() || tensor.id != graph::kAbsent) return tensor.id;
  if (tensor.is_empty() && tensor.constant == nullptr)
    return Unimplemented("a tensor without elements, {}", graph::TypeText(tensor.type));
  ValueId& id = constants_.try_emplace(tensor.constant.get(), graph::kAbsent).first->second;
  if (id == graph::kAbsent) id = builder_.Add(tensor.name, tensor.constant);
  is_named_.resize(static_cast<size_t>(builder_.num_values()), !tensor.name.empty());
  return id;
}

StatusOr<std::vector<Tensor>> GraphWriter::Add(std::string_view op, std::span<const Tensor> inputs,
                                               graph::Attributes attributes,
                                               const std::string& origin) {
  KILN_RETURN_IF_ERROR(Spend(kStepsOfNode));
  if (HasEmpty(inputs)) return EvaluateEmpty(op, inputs, attributes);
  KILN_ASSIGN_OR_RETURN(std::optional<std::vector<Tensor>> known,
                        EvaluateKnown(op, inputs, attributes, origin, budget_));
  if (known) return *std::move(known);
  std::vector<ValueId> ids;
  for (const Tensor& input : inputs) {
    KILN_ASSIGN_OR_RETURN(const ValueId id, IdOf(input));
    ids.push_back(id);
  }
  KILN_ASSIGN_OR_RETURN(
      const std::vector<ValueId> added,
      builder_.Add(op, std::move(ids), std::move(attributes), {.names = {}, .origin = origin}));
  is_named_.resize(static_cast<size_t>(builder_.num_values()), false);
  std::vector<Tensor> outputs;
  for (ValueId id : added)
    outputs.push_back({Tensor::State::kValue, builder_.type(id), nullptr, id});
  return outputs;
}

Status GraphWriter::Spend(int64_t steps) {
  if (steps > budget_)
    return ResourceExhausted("the model takes too much work to read: it comes to too many nodes");
  budget_ -= steps;
  return OkStatus();
}

void GraphWriter::Name(const Tensor& tensor, const std::string& name) {
  if (tensor.id == graph::kAbsent || is_named_[static_cast<size_t>(tensor.id)]) return;
  builder_.Rename(tensor.id, name);
  is_named_[static_cast<size_t>(tensor.id)] = true;
}

Status GraphWriter::Output(const Tensor& tensor, const std::string& name) {
  Tensor named = tensor;
  // An empty tensor becomes a constant, whatever made it.
  if (named.is_empty()) {
    KILN_ASSIGN_OR_RETURN(named.constant, graph::Constant::FromMemory(tensor.type, nullptr, {}));
  }
  if (named.id == graph::kAbsent && !constants_.contains(named.constant.get())) named.name = name;
  KILN_ASSIGN_OR_RETURN(ValueId id, IdOf(named));
  // An input, a constant or another output gets a node that gives it this name.
  if (builder_.value(id).name != name && !named.is_empty()) {
    KILN_ASSIGN_OR_RETURN(id, builder_.AddOne("identity", {id}, {}, name));
    is_named_.resize(static_cast<size_t>(builder_.num_values()), true);
  }
  builder_.Output(id);
  return OkStatus();
}

StatusOr<Graph> GraphWriter::Build() {
  KILN_ASSIGN_OR_RETURN(const Graph graph, builder_.Build());
  return Pruned(graph);
}

}  // namespace kiln::frontend
