#include "graph/passes/fold_constants.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

constexpr int64_t kMaxGrowthBytes = int64_t{64} << 20;
constexpr int64_t kMaxBytesAtOnce = int64_t{64} << 10;

// These operators read elements at places that do not depend on any element, so they cannot fail.
constexpr std::array kDeferred = {
    "add",   "sub",    "mul",   "div",          "transpose",        "reshape",
    "slice", "concat", "rsqrt", "broadcast_to", "winograd_weights", "cast"};

// Null stands for an absent input.
using Inputs = std::vector<ConstantPtr>;

StatusOr<std::vector<ir::NDArray>> Evaluated(const Graph& graph, int node, const Inputs& inputs) {
  std::vector<ir::NDArray> arrays(inputs.size());
  std::vector<const ir::NDArray*> pointers;
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (inputs[k] != nullptr) arrays[k] = inputs[k]->ToArray();
    pointers.push_back(inputs[k] == nullptr ? nullptr : &arrays[k]);
  }
  return EvaluateNode(graph, node, pointers);
}

// Returns a graph of the node alone, whose inputs become graph inputs. It outlives the node's own
// graph.
StatusOr<Graph> Alone(const Graph& graph, const Node& node) {
  GraphBuilder b;
  std::map<ValueId, ValueId> inputs;
  std::vector<ValueId> now;
  for (ValueId id : node.inputs) {
    now.push_back(kAbsent);
    if (id == kAbsent) continue;
    if (!inputs.contains(id)) {
      KILN_ASSIGN_OR_RETURN(inputs[id], b.Input(graph.value(id).name, graph.value(id).type));
    }
    now.back() = inputs.at(id);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, b.Copy(graph, node, std::move(now)));
  for (ValueId output : outputs) b.Output(output);
  return b.Build();
}

class Folding {
 public:
  explicit Folding(const Graph& graph)
      : graph_(graph), rewriter_(graph), constants_(graph.values().size()) {
    for (size_t i = 0; i < constants_.size(); ++i) constants_[i] = graph.values()[i].constant;
  }

  StatusOr<Graph> Run() {
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      KILN_RETURN_IF_ERROR(IsFoldable(i) ? Fold(i) : rewriter_.Copy(i));
    }
    return rewriter_.Finish();
  }

 private:
  const ConstantPtr& constant(ValueId id) const { return constants_[static_cast<size_t>(id)]; }
  const TensorType& TypeOf(ValueId id) const { return graph_.value(id).type; }

  bool IsFoldable(int i) const {
    const Node& node = graph_.node(i);
    int64_t read = 0, made = 0;
    for (ValueId id : node.inputs) {
      if (id == kAbsent) continue;
      if (constant(id) == nullptr) return false;
      read += TypeOf(id).bytes();
    }
    for (ValueId id : node.outputs) made += TypeOf(id).bytes();
    return made <= read || made <= kMaxGrowthBytes;
  }

  Status Fold(int i) {
    KILN_ASSIGN_OR_RETURN(std::vector<ConstantPtr> results, Results(i));
    const Node& node = graph_.node(i);
    for (size_t k = 0; k < results.size(); ++k) {
      const ValueId old = node.outputs[k];
      rewriter_.Map(old, rewriter_.builder().Add(graph_.value(old).name, results[k]));
      constants_[static_cast<size_t>(old)] = std::move(results[k]);
    }
    return OkStatus();
  }

  StatusOr<std::vector<ConstantPtr>> Results(int i) const {
    const Node& node = graph_.node(i);
    if (IsView(node)) return View(node);
    if (IsDeferred(node)) return Later(node);
    return Now(i);
  }

  bool IsView(const Node& node) const {
    return node.op->is_view && !constant(node.inputs[0])->is_deferred() &&
           TypeOf(node.outputs[0]).type == TypeOf(node.inputs[0]).type;
  }
  bool IsDeferred(const Node& node) const {
    return node.outputs.size() == 1 && TypeOf(node.outputs[0]).bytes() > kMaxBytesAtOnce &&
           std::ranges::find(kDeferred, node.op->name) != kDeferred.end();
  }

  // Returns a constant that shares the elements of the node's input.
  StatusOr<std::vector<ConstantPtr>> View(const Node& node) const {
    const ConstantPtr& source = constant(node.inputs[0]);
    KILN_ASSIGN_OR_RETURN(ConstantPtr view,
                          Constant::FromMemory(TypeOf(node.outputs[0]), source, source->bytes()));
    return std::vector<ConstantPtr>{std::move(view)};
  }

  StatusOr<std::vector<ConstantPtr>> Later(const Node& node) const {
    KILN_ASSIGN_OR_RETURN(Graph alone, Alone(graph_, node));
    auto make = [alone = std::move(alone), inputs = InputsOf(node)] {
      StatusOr<std::vector<ir::NDArray>> made = Evaluated(alone, 0, inputs);
      KILN_CHECK(made.ok(), "{}", std::string(made.status().message()));
      return std::move((*made)[0]);
    };
    return std::vector<ConstantPtr>{Constant::Deferred(TypeOf(node.outputs[0]), std::move(make))};
  }

  StatusOr<std::vector<ConstantPtr>> Now(int i) const {
    KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> outputs,
                          Evaluated(graph_, i, InputsOf(graph_.node(i))));
    std::vector<ConstantPtr> results;
    for (ir::NDArray& output : outputs) results.push_back(Constant::FromArray(std::move(output)));
    return results;
  }

  Inputs InputsOf(const Node& node) const {
    Inputs inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == kAbsent ? nullptr : constant(id));
    return inputs;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<ConstantPtr> constants_;
};

}  // namespace

StatusOr<Graph> FoldConstants(const Graph& graph) { return Folding(graph).Run(); }

}  // namespace kiln::graph
