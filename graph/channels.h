// Finds the axes of a node's channels, for passes that move factors between nodes or change
// layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace kiln::graph {

// Axes of a product of data and weights, which are inputs 0 and 1 of the node.
struct ProductChannels {
  // Axis of the result.
  int output_axis;
  // Axis of the weights whose elements belong to the result's channels.
  std::optional<int> weight_of_output;
  // Axis of the data.
  int input_axis;
  // Axis of the weights whose elements belong to the data's channels.
  std::optional<int> weight_of_input;
};

// Returns the axes for conv, depthwise_conv, conv_transpose and for matmul with a matrix of
// weights; none for other operators. An axis of the weights is given only if its element c meets
// channel c and nothing else: grouped convolutions have none for the input.
std::optional<ProductChannels> ChannelsOf(const Graph& graph, const Node& node);

// Extent and axis of a constant that has at most one axis of more than 1, seen as a tensor of
// `rank` dimensions. A constant of one element has axis -1.
struct ChannelVector {
  int axis;
  int64_t extent;
};
std::optional<ChannelVector> ChannelVectorOf(const TensorType& type, int rank);

// The value of an attribute. A node of a graph has all attributes of its operator.
int64_t IntOf(const Node& node, std::string_view attribute);
const std::vector<int64_t>& IntsOf(const Node& node, std::string_view attribute);
// Returns whether all values are this one; those of an empty list are.
bool AllAre(const std::vector<int64_t>& values, int64_t value);

}  // namespace kiln::graph
