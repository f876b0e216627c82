#include "graph/passes/winograd.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/dag/ops/winograd.h"
#include "graph/channels.h"
#include "graph/rewrite.h"

namespace kiln::graph {
namespace {

const std::vector<int64_t>& IntsOf(const Node& node, std::string_view attribute) {
  return std::get<std::vector<int64_t>>(node.attributes.find(attribute)->second);
}

bool AllAre(const std::vector<int64_t>& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

// The padding, where Winograd's method can do the convolution.
std::optional<int64_t> PadOf(const Graph& graph, const Node& node) {
  if (node.op->name != "conv" || IntOf(node, "channels_last") == 0 || IntOf(node, "groups") != 1)
    return std::nullopt;
  const Value &data = graph.value(node.inputs[0]), &weights = graph.value(node.inputs[1]);
  const std::vector<int64_t>& shape = weights.type.shape;
  if (weights.constant == nullptr || shape.size() != 4 || shape[0] != 3 || shape[1] != 3 ||
      (data.type.type != ir::kFloat32 && data.type.type != ir::kFloat64))
    return std::nullopt;
  const std::vector<int64_t>& pads = IntsOf(node, "pads");
  const int64_t pad = pads.empty() ? 0 : pads[0];
  if (!AllAre(IntsOf(node, "strides"), 1) || !AllAre(IntsOf(node, "dilations"), 1) ||
      !AllAre(pads, pad))
    return std::nullopt;
  return pad;
}

// What TVM takes on a GPU (topi/cuda/conv2d_winograd.py), or what is faster here.
dag::WinogradForm FormOf(const Graph& graph, const Node& node, int64_t pad,
                         const PassOptions& options) {
  const std::vector<int64_t>& data = graph.value(node.inputs[0]).type.shape;
  if (options.winograd == WinogradRule::kTvm)
    return {.tile = data[1] % 8 == 0 ? 4 : 2, .by_rows = false};
  return dag::FastWinogradForm(data[0], data[1], data[2], pad, options.is_gpu);
}

}  // namespace

StatusOr<Graph> UseWinograd(const Graph& graph, const PassOptions& options) {
  Rewriter r(graph);
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    const std::optional<int64_t> pad = PadOf(graph, node);
    if (!pad) {
      KILN_RETURN_IF_ERROR(r.Copy(i));
      continue;
    }
    const dag::WinogradForm form = FormOf(graph, node, *pad, options);
    const Attributes transform = {{"tile", form.tile}, {"by_rows", int64_t{form.by_rows}}};
    Attributes attributes = transform;
    attributes["pad"] = *pad;
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
