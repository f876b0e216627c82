// Where the channels of a node are: what passes that move factors between nodes, or change layouts,
// ask.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace kiln::graph {

// A product of data and weights: input 0 and input 1 of the node.
struct ProductChannels {
  int output_axis;                      // of the result
  std::optional<int> weight_of_output;  // axis of the weights that goes along with it
  int input_axis;                       // of the data
  std::optional<int> weight_of_input;
};

// Of conv, depthwise_conv, conv_transpose and of matmul with a matrix of weights; none of others.
// An axis of the weights is there only where element c of it meets channel c and nothing else:
// grouped convolutions have none for the input.
std::optional<ProductChannels> ChannelsOf(const Graph& graph, const Node& node);

// The extent and the axis of a constant that has one axis of more than 1, seen as a tensor of
// `rank` dimensions; of one element: axis -1.
struct ChannelVector {
  int axis;
  int64_t extent;
};
std::optional<ChannelVector> ChannelVectorOf(const TensorType& type, int rank);

int64_t IntOf(const Node& node, std::string_view attribute);

}  // namespace kiln::graph
