#include "graph/evaluate.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "compiler/dag/evaluate.h"
#include "graph/node_dag.h"

namespace kiln::graph {

StatusOr<std::vector<ir::NDArray>> EvaluateDag(const dag::DagPtr& dag,
                                               std::span<const ir::NDArray> inputs) {
  return dag::Evaluate(*dag, inputs, {.wide_accumulation = true});
}

StatusOr<std::vector<ir::NDArray>> EvaluateNode(const Graph& graph, int node,
                                                std::span<const ir::NDArray* const> inputs,
                                                const DagEvaluator& evaluate) {
  const Node& n = graph.node(node);
  const int nodes[] = {node};
  KILN_ASSIGN_OR_RETURN(const NodeDag written, MakeNodeDag(graph, nodes, n.outputs));
  std::vector<ir::NDArray> arguments;
  for (ValueId id : written.inputs) {
    const auto at = std::ranges::find(n.inputs, id) - n.inputs.begin();
    arguments.push_back(*inputs[static_cast<size_t>(at)]);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> results, evaluate(written.dag, arguments));
  std::vector<ir::NDArray> outputs(n.outputs.size());
  for (size_t i = 0; i < written.outputs.size(); ++i) {
    const auto at = std::ranges::find(n.outputs, written.outputs[i]) - n.outputs.begin();
    if (at < std::ssize(n.outputs)) outputs[static_cast<size_t>(at)] = std::move(results[i]);
  }
  return outputs;
}

StatusOr<std::vector<ir::NDArray>> Evaluate(const Graph& graph, std::span<const ir::NDArray> inputs,
                                            const DagEvaluator& evaluate) {
  if (inputs.size() != graph.inputs().size()) {
    return InvalidArgument("got {} inputs, the network has {}", inputs.size(),
                           graph.inputs().size());
  }
  std::map<ValueId, ir::NDArray> arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    const TensorType type{inputs[i].type(), inputs[i].shape()};
    if (type != value.type) {
      return InvalidArgument("input {} is {}, expected {}", value.name, TypeText(type),
                             TypeText(value.type));
    }
    arrays[graph.inputs()[i]] = inputs[i];
  }
  const auto array = [&](ValueId id) -> const ir::NDArray* {
    if (id == kAbsent) return nullptr;
    const ConstantPtr& constant = graph.value(id).constant;
    if (constant != nullptr && !arrays.contains(id)) arrays[id] = constant->ToArray();
    return &arrays.at(id);
  };
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    std::vector<const ir::NDArray*> read;
    for (ValueId id : node.inputs) read.push_back(array(id));
    StatusOr<std::vector<ir::NDArray>> results = EvaluateNode(graph, i, read, evaluate);
    if (!results.ok()) return Annotate(results.status(), graph.value(node.outputs[0]).name);
    for (size_t k = 0; k < node.outputs.size(); ++k)
      arrays[node.outputs[k]] = std::move((*results)[k]);
    for (ValueId id : node.inputs) {
      if (id != kAbsent && !graph.is_output(id) && graph.readers(id).back() == i) arrays.erase(id);
    }
  }
  std::vector<ir::NDArray> outputs;
  for (ValueId id : graph.outputs()) outputs.push_back(*array(id));
  return outputs;
}

}  // namespace kiln::graph
