#include "frontend/onnx/evaluate_known.h"

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "graph/evaluate.h"

namespace kiln::frontend {
namespace {

using graph::Constant;
using graph::ValueId;

bool AllKnown(std::span<const Tensor> inputs) {
  return std::ranges::all_of(inputs, [](const Tensor& input) {
    return !input.exists() || (input.constant != nullptr && !input.is_empty());
  });
}

int64_t LargestInput(std::span<const Tensor> inputs) {
  int64_t most = 0;
  for (const Tensor& input : inputs)
    if (input.exists()) most = std::max(most, input.num_elements());
  return most;
}

// Steps that an element costs which is kept.
constexpr int64_t kStepsOfElement = 8;

// Returns the most steps for an element of the output.
int64_t WorkOfElement(const graph::OpDef& op, std::span<const Tensor> inputs) {
  const bool reads_one = op.pattern == graph::OpPattern::kElementwise ||
                         op.pattern == graph::OpPattern::kBroadcast ||
                         op.pattern == graph::OpPattern::kInjective;
  if (reads_one) return kStepsOfElement;
  // A reduction reads each element about once, a product reads a row of the smaller input.
  int64_t fewest = INT64_MAX;
  for (const Tensor& input : inputs)
    if (input.exists()) fewest = std::min(fewest, input.num_elements());
  return std::max(fewest, kStepsOfElement);
}

// A network of one node, whose inputs are those that exist.
struct OneNode {
  graph::GraphBuilder builder;
  std::vector<ValueId> inputs, outputs;
};

Status MakeNode(std::string_view op, std::span<const Tensor> inputs,
                const graph::Attributes& attributes, const std::string& origin, OneNode& node) {
  for (const Tensor& input : inputs) {
    node.inputs.push_back(graph::kAbsent);
    if (!input.exists()) continue;
    KILN_ASSIGN_OR_RETURN(node.inputs.back(), node.builder.Input("x", input.type));
  }
  KILN_ASSIGN_OR_RETURN(
      node.outputs, node.builder.Add(op, node.inputs, attributes, {.names = {}, .origin = origin}));
  for (ValueId id : node.outputs) node.builder.Output(id);
  return OkStatus();
}

StatusOr<std::vector<Tensor>> Evaluate(OneNode& node, std::span<const Tensor> inputs) {
  KILN_ASSIGN_OR_RETURN(const graph::Graph graph, node.builder.Build());
  std::vector<ir::NDArray> arrays(inputs.size());
  std::vector<const ir::NDArray*> arguments(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].exists()) continue;
    arrays[i] = inputs[i].constant->ToArray();
    arguments[i] = &arrays[i];
  }
  KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> results, graph::EvaluateNode(graph, 0, arguments));
  std::vector<Tensor> outputs;
  for (ir::NDArray& result : results)
    outputs.push_back(Tensor::Of(Constant::FromArray(std::move(result))));
  return outputs;
}

StatusOr<std::vector<Tensor>> View(const Tensor& x, graph::TensorType type) {
  KILN_ASSIGN_OR_RETURN(graph::ConstantPtr constant,
                        Constant::FromMemory(std::move(type), x.constant, x.constant->bytes()));
  return std::vector<Tensor>{Tensor::Of(std::move(constant), x.name)};
}

}  // namespace

StatusOr<std::optional<std::vector<Tensor>>> EvaluateKnown(std::string_view op,
                                                           std::span<const Tensor> inputs,
                                                           const graph::Attributes& attributes,
                                                           const std::string& origin,
                                                           int64_t& budget) {
  if (inputs.empty() || !AllKnown(inputs)) return std::nullopt;
  OneNode node;
  KILN_RETURN_IF_ERROR(MakeNode(op, inputs, attributes, origin, node));
  KILN_ASSIGN_OR_RETURN(const graph::OpDef* def, graph::FindOp(op));
  std::vector<graph::TensorType> types;
  int64_t most = LargestInput(inputs), work = 0;
  for (ValueId id : node.outputs) {
    const int64_t elements = node.builder.type(id).num_elements();
    most = std::max(most, elements);
    work = std::max(work, MultiplyCounts(elements, WorkOfElement(*def, inputs)));
  }
  StatusOr<std::vector<Tensor>> outputs;
  if (def->is_view) {
    outputs = View(inputs[0], node.builder.type(node.outputs[0]));
  } else if (most <= kMaxKnownElements && work <= std::min(kMaxKnownWork, budget)) {
    budget -= work;
    outputs = Evaluate(node, inputs);
  } else {
    return std::nullopt;
  }
  if (!outputs.ok()) return Annotate(outputs.status(), op);
  return std::optional(*std::move(outputs));
}

}  // namespace kiln::frontend
