#include "graph/passes/winograd.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/dag/ops/winograd.h"
#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

// Returns the image if Winograd's method can compute the node.
std::optional<dag::WinogradImage> ImageOf(const Graph& graph, const Node& node) {
  if (node.op->name != "conv" || IntOf(node, "channels_last") == 0 || IntOf(node, "groups") != 1 ||
      IntOf(node, "output_first") != 0)
    return std::nullopt;
  const Value &data = graph.value(node.inputs[0]), &weights = graph.value(node.inputs[1]);
  const std::vector<int64_t>& shape = weights.type.shape;
  if (weights.constant == nullptr || shape.size() != 4 || shape[0] != 3 || shape[1] != 3 ||
      (data.type.type != ir::kFloat32 && data.type.type != ir::kFloat64))
    return std::nullopt;
  const std::vector<int64_t>&pads = IntsOf(node, "pads"), &strides = IntsOf(node, "strides");
  const int64_t pad = pads.empty() ? 0 : pads[0], stride = strides.empty() ? 1 : strides[0];
  if (!AllAre(strides, stride) || !AllAre(IntsOf(node, "dilations"), 1) || !AllAre(pads, pad))
    return std::nullopt;
  const std::vector<int64_t>& image = data.type.shape;
  return dag::WinogradImage{image[0], image[1], image[2], pad, stride};
}

// Returns the form that TVM takes on a GPU (topi/cuda/conv2d_winograd.py), or the faster form here.
std::optional<dag::WinogradForm> FormOf(const dag::WinogradImage& image,
                                        const PassOptions& options) {
  if (options.winograd != WinogradRule::kTvm) return dag::FastWinogradForm(image, options.is_gpu);
  if (image.stride != 1) return std::nullopt;
  return dag::WinogradForm{.tile = image.height % 8 == 0 ? 4 : 2, .by_rows = false};
}

}  // namespace

StatusOr<Graph> UseWinograd(const Graph& graph, const PassOptions& options) {
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    const std::optional<dag::WinogradImage> image = ImageOf(graph, node);
    const std::optional<dag::WinogradForm> form = image ? FormOf(*image, options) : std::nullopt;
    const bool wanted = !options.winograd_only ||
                        options.winograd_only->contains(graph.value(node.outputs[0]).name);
    if (!form || !wanted) {
      KILN_RETURN_IF_ERROR(r.Copy(i));
      continue;
    }
    const Attributes transform = {
        {"tile", form->tile}, {"by_rows", int64_t{form->by_rows}}, {"stride", image->stride}};
    Attributes attributes = transform;
    attributes["pad"] = image->pad;
    const Value& weights = graph.value(node.inputs[1]);
    KILN_ASSIGN_OR_RETURN(const ValueId transformed,
                          r.builder().AddOne("winograd_weights", {r.at(node.inputs[1])}, transform,
                                             weights.name + ".winograd"));
    KILN_ASSIGN_OR_RETURN(
        const ValueId output,
        r.builder().AddOne("winograd_conv", {r.at(node.inputs[0]), transformed},
                           std::move(attributes), graph.value(node.outputs[0]).name, node.origin));
    r.Map(node.outputs[0], output);
  }
  return r.Finish();
}

}  // namespace kiln::graph
