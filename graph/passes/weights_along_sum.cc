#include "graph/passes/weights_along_sum.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

bool IsToChange(const Graph& graph, const Node& node, const PassOptions& options) {
  if (node.op->name != "conv" || IntOf(node, "channels_last") == 0 ||
      IntOf(node, "output_first") != 0)
    return false;
  const Value& weights = graph.value(node.inputs[1]);
  if (weights.constant == nullptr ||
      std::ranges::find(options.along_sum, weights.type.type) == options.along_sum.end())
    return false;
  // [K..., CI/groups, CO].
  const std::vector<int64_t>& shape = weights.type.shape;
  const int64_t channels = shape[shape.size() - 2];
  return std::all_of(shape.begin(), shape.end() - 2,
                     [&](int64_t extent) { return extent <= channels; });
}

}  // namespace

StatusOr<Graph> WeightsAlongSum(const Graph& graph, const PassOptions& options) {
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (!IsToChange(graph, node, options)) {
      KILN_RETURN_IF_ERROR(r.Copy(i));
      continue;
    }
    const Value& weights = graph.value(node.inputs[1]);
    const int64_t last = weights.type.rank() - 1;
    std::vector<int64_t> order = {last};
    for (int64_t axis = 0; axis < last; ++axis) order.push_back(axis);
    KILN_ASSIGN_OR_RETURN(const ValueId turned,
                          r.builder().AddOne("transpose", {r.at(node.inputs[1])},
                                             {{"axes", std::move(order)}}, weights.name));
    Attributes attributes = node.attributes;
    attributes["output_first"] = int64_t{1};
    KILN_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        r.builder().Add("conv", {r.at(node.inputs[0]), turned}, std::move(attributes),
                        {.names = {graph.value(node.outputs[0]).name}, .origin = node.origin}));
    r.Map(node.outputs[0], made[0]);
  }
  return r.Finish();
}

}  // namespace kiln::graph
