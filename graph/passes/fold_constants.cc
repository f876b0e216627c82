#include "graph/passes/fold_constants.h"

#include <algorithm>
#include <utility>

#include "graph/evaluate.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

constexpr int64_t kMostGrowthBytes = int64_t{64} << 20;

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

  bool IsFoldable(int i) const {
    const Node& node = graph_.node(i);
    int64_t read = 0, made = 0;
    for (ValueId id : node.inputs) {
      if (id == kAbsent) continue;
      if (constant(id) == nullptr) return false;
      read += graph_.value(id).type.bytes();
    }
    for (ValueId id : node.outputs) made += graph_.value(id).type.bytes();
    return made <= read || made <= kMostGrowthBytes;
  }

  // A view shares the elements of what it is a view of.
  Status Fold(int i) {
    const Node& node = graph_.node(i);
    std::vector<ConstantPtr> results;
    if (node.op->is_view &&
        graph_.value(node.outputs[0]).type.type == graph_.value(node.inputs[0]).type.type) {
      const ConstantPtr& source = constant(node.inputs[0]);
      KILN_ASSIGN_OR_RETURN(
          ConstantPtr view,
          Constant::FromMemory(graph_.value(node.outputs[0]).type, source, source->bytes()));
      results.push_back(std::move(view));
    } else {
      KILN_ASSIGN_OR_RETURN(results, Computed(i));
    }
    for (size_t k = 0; k < results.size(); ++k) {
      const ValueId old = node.outputs[k];
      rewriter_.Map(old, rewriter_.builder().Add(graph_.value(old).name, results[k]));
      constants_[static_cast<size_t>(old)] = std::move(results[k]);
    }
    return OkStatus();
  }

  StatusOr<std::vector<ConstantPtr>> Computed(int i) const {
    const Node& node = graph_.node(i);
    std::vector<ir::NDArray> arrays(node.inputs.size());
    std::vector<const ir::NDArray*> inputs;
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (node.inputs[k] != kAbsent) arrays[k] = constant(node.inputs[k])->ToArray();
      inputs.push_back(node.inputs[k] == kAbsent ? nullptr : &arrays[k]);
    }
    KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> outputs, EvaluateNode(graph_, i, inputs));
    std::vector<ConstantPtr> results;
    for (ir::NDArray& output : outputs) results.push_back(Constant::FromArray(std::move(output)));
    return results;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<ConstantPtr> constants_;
};

}  // namespace

StatusOr<Graph> FoldConstants(const Graph& graph) { return Folding(graph).Run(); }

}  // namespace kiln::graph
