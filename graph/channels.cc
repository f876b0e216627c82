#include "graph/channels.h"

#include <algorithm>

namespace kiln::graph {
namespace {

std::optional<ProductChannels> OfConvolution(const Graph& graph, const Node& node) {
  const int rank = graph.value(node.inputs[0]).type.rank();
  const bool last = IntOf(node, "channels_last") != 0;
  const int axis = last ? rank - 1 : 1;
  ProductChannels channels{.output_axis = axis,
                           .weight_of_output = std::nullopt,
                           .input_axis = axis,
                           .weight_of_input = std::nullopt};
  // Positions of the first and the second axis of channels of the weights.
  const int first = last ? rank - 2 : 0, second = last ? rank - 1 : 1;
  if (node.op->name == "depthwise_conv") {
    const std::vector<int64_t>& weights = graph.value(node.inputs[1]).type.shape;
    if (weights[static_cast<size_t>(second)] == 1)
      channels.weight_of_output = channels.weight_of_input = first;
    return channels;
  }
  const bool grouped = IntOf(node, "groups") != 1;
  if (node.op->name == "conv_transpose") {
    if (!grouped) channels.weight_of_output = second;
    channels.weight_of_input = first;
    return channels;
  }
  if (IntOf(node, "output_first") != 0) {
    channels.weight_of_output = 0;
    if (!grouped) channels.weight_of_input = rank - 1;
    return channels;
  }
  channels.weight_of_output = last ? second : first;
  if (!grouped) channels.weight_of_input = last ? first : second;
  return channels;
}

std::optional<ProductChannels> OfMatmul(const Graph& graph, const Node& node) {
  const int rank = graph.value(node.inputs[0]).type.rank();
  if (graph.value(node.inputs[1]).type.rank() != 2 || rank < 1) return std::nullopt;
  const int column = IntOf(node, "transpose_b") != 0 ? 0 : 1;
  return ProductChannels{.output_axis = rank - 1,
                         .weight_of_output = column,
                         .input_axis = rank - 1,
                         .weight_of_input = 1 - column};
}

}  // namespace

int64_t IntOf(const Node& node, std::string_view attribute) {
  return std::get<int64_t>(node.attributes.find(attribute)->second);
}

const std::vector<int64_t>& IntsOf(const Node& node, std::string_view attribute) {
  return std::get<std::vector<int64_t>>(node.attributes.find(attribute)->second);
}

bool AllAre(const std::vector<int64_t>& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

std::optional<ProductChannels> ChannelsOf(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "conv" || op == "depthwise_conv" || op == "conv_transpose")
    return OfConvolution(graph, node);
  if (op == "matmul") return OfMatmul(graph, node);
  return std::nullopt;
}

std::optional<ChannelVector> ChannelVectorOf(const TensorType& type, int rank) {
  if (type.rank() > rank) return std::nullopt;
  ChannelVector vector{.axis = -1, .extent = 1};
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t extent = type.shape[static_cast<size_t>(d)];
    if (extent == 1) continue;
    if (vector.axis >= 0) return std::nullopt;
    vector = {.axis = rank - type.rank() + d, .extent = extent};
  }
  return vector;
}

}  // namespace kiln::graph
