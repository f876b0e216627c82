#include "graph/passes/fold_patches.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

using Shape = std::vector<int64_t>;

constexpr int64_t kFullTile = 16;  // terms that a matrix unit of 16 bits adds up at once

// Returns the list of an attribute, an empty one written out.
Shape WholeListOf(const Node& node, std::string_view attribute, size_t size, int64_t absent) {
  const Shape& values = IntsOf(node, attribute);
  return values.empty() ? Shape(size, absent) : values;
}

bool IsOfDisjointPatches(const Graph& graph, const Node& node) {
  if (node.op->name != "conv" || IntOf(node, "channels_last") == 0 || IntOf(node, "groups") != 1 ||
      IntOf(node, "output_first") != 0)
    return false;
  const Shape& image = graph.value(node.inputs[0]).type.shape;    // [N, ..., W, C]
  const Shape& weights = graph.value(node.inputs[1]).type.shape;  // [..., KW, C, CO]
  const size_t dims = image.size() - 2, last = dims - 1;
  const int64_t width = weights[last], channels = image.back();
  if (width == 1 || image[dims] % width != 0) return false;
  const Shape pads = WholeListOf(node, "pads", 2 * dims, 0);
  if (WholeListOf(node, "strides", dims, 1)[last] != width || pads[last] != 0 ||
      pads[dims + last] != 0 || WholeListOf(node, "dilations", dims, 1)[last] != 1)
    return false;
  return channels % kFullTile != 0 && width * channels % kFullTile == 0;
}

Status Fold(const Node& node, const Graph& graph, Rewriter& r) {
  const Value& data = graph.value(node.inputs[0]);
  const Value& kernel = graph.value(node.inputs[1]);
  Shape image = data.type.shape, weights = kernel.type.shape;
  const size_t dims = image.size() - 2, last = dims - 1;
  const int64_t width = std::exchange(weights[last], 1);
  image[dims] /= width;
  image.back() *= width;
  weights[dims] *= width;
  KILN_ASSIGN_OR_RETURN(const ValueId pixels, r.builder().AddOne("reshape", {r.at(node.inputs[0])},
                                                                 {{"shape", std::move(image)}}));
  KILN_ASSIGN_OR_RETURN(const ValueId folded,
                        r.builder().AddOne("reshape", {r.at(node.inputs[1])},
                                           {{"shape", std::move(weights)}}, kernel.name));
  Shape strides = WholeListOf(node, "strides", dims, 1);
  strides[last] = 1;
  Attributes attributes = node.attributes;
  attributes["strides"] = std::move(strides);
  KILN_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      r.builder().Add("conv", {pixels, folded}, std::move(attributes),
                      {.names = {graph.value(node.outputs[0]).name}, .origin = node.origin}));
  r.Map(node.outputs[0], made[0]);
  return OkStatus();
}

}  // namespace

StatusOr<Graph> FoldPatches(const Graph& graph) {
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    KILN_RETURN_IF_ERROR(IsOfDisjointPatches(graph, node) ? Fold(node, graph, r) : r.Copy(i));
  }
  return r.Finish();
}

}  // namespace kiln::graph
