#include "graph/passes/fold_batch_norm.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

bool HasConstantStatistics(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (graph.value(node.inputs[i]).constant == nullptr) return false;
  }
  return true;
}

// Returns the vector with extents of 1 around the axis of the channels.
StatusOr<ValueId> AlongChannels(GraphBuilder& b, ValueId vector, int rank, int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = b.type(vector).shape[0];
  return b.AddOne("reshape", {vector}, {{"shape", shape}});
}

Status Replace(Rewriter& r, const Graph& graph, const Node& node) {
  GraphBuilder& b = r.builder();
  const std::vector<ValueId> in = r.AllAt(node.inputs);
  const ir::Type type = b.type(in[4]).type;
  const ValueId epsilon =
      b.Add("epsilon", Constant::Scalar(type, std::get<double>(node.attributes.at("epsilon"))));
  KILN_ASSIGN_OR_RETURN(const ValueId variance, b.AddOne("add", {in[4], epsilon}));
  KILN_ASSIGN_OR_RETURN(const ValueId deviation, b.AddOne("rsqrt", {variance}));
  KILN_ASSIGN_OR_RETURN(const ValueId scale, b.AddOne("mul", {in[1], deviation}));
  KILN_ASSIGN_OR_RETURN(const ValueId mean, b.AddOne("mul", {in[3], scale}));
  KILN_ASSIGN_OR_RETURN(const ValueId bias, b.AddOne("sub", {in[2], mean}));
  const int rank = b.type(in[0]).rank();
  const int64_t axis = std::get<int64_t>(node.attributes.at("axis"));
  KILN_ASSIGN_OR_RETURN(const ValueId scales, AlongChannels(b, scale, rank, axis));
  KILN_ASSIGN_OR_RETURN(const ValueId biases, AlongChannels(b, bias, rank, axis));
  const Value& output = graph.value(node.outputs[0]);
  KILN_ASSIGN_OR_RETURN(const ValueId scaled,
                        b.AddOne("mul", {in[0], scales}, {}, output.name + ".scaled", node.origin));
  KILN_ASSIGN_OR_RETURN(const ValueId result,
                        b.AddOne("add", {scaled, biases}, {}, output.name, node.origin));
  r.Map(node.outputs[0], result);
  return OkStatus();
}

}  // namespace

StatusOr<Graph> FoldBatchNorm(const Graph& graph) {
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    const bool folds = node.op->name == "batch_norm" && HasConstantStatistics(graph, node);
    KILN_RETURN_IF_ERROR(folds ? Replace(r, graph, node) : r.Copy(i));
  }
  return r.Finish();
}

}  // namespace kiln::graph
