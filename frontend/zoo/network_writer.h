// Writes layers of networks into a graph with random weights, in the layout and the type of the
// options.
//
// Errors don't stop the writing. Build() returns the first error; everything after it is dropped.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "frontend/zoo/zoo.h"
#include "graph/graph.h"

namespace kiln::frontend {

using graph::ValueId;

// The window of a convolution or a pool, by spatial axis.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  // Padding on both sides.
  std::vector<int64_t> pads;
};
// Returns a window with the same values along all axes.
Window Cube(int rank, int64_t kernel, int64_t stride = 1, int64_t pad = 0);
inline Window Square(int64_t kernel, int64_t stride = 1, int64_t pad = 0) {
  return Cube(2, kernel, stride, pad);
}
// Returns a window of stride 1 with as many outputs as inputs; extents must be odd.
Window Same(std::vector<int64_t> kernel);

class NetworkWriter {
 public:
  explicit NetworkWriter(const ZooOptions& options) : options_(options) {}

  const ZooOptions& options() const { return options_; }
  int64_t batch() const { return options_.batch; }
  bool channels_last() const { return options_.channels_last; }

  // Sets the variance of a product's weights, times the number of its terms. A gain of 1 keeps the
  // mean square of the input. A relu takes half of it away, a batch norm a third. In a deep network
  // a gain that makes up for this keeps activations from vanishing and exploding.
  void SetWeightGain(double gain) { weight_gain_ = gain; }

  ValueId Input(std::string name, graph::TensorType type);
  // Adds the input "data" with these spatial extents.
  ValueId Images(std::span<const int64_t> spatial, int64_t channels = 3);
  void Output(ValueId value);
  void Fail(Status status);
  StatusOr<graph::Graph> Build();

  // Add weights, each with a seed of its own. A product's weights are around 0 with the gain of
  // SetWeightGain; biases are small; scales are positive and at most 1.
  ValueId ProductWeight(std::string name, std::vector<int64_t> shape, int64_t terms);
  ValueId Bias(std::string name, std::vector<int64_t> shape);
  ValueId Scale(std::string name, std::vector<int64_t> shape);
  // Adds a constant that is not learned.
  ValueId Constant(std::string name, graph::ConstantPtr constant);

  // Adds a node of any operator.
  std::vector<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                           graph::Attributes attributes, std::vector<std::string> names);
  ValueId AddOne(std::string_view op, std::vector<ValueId> inputs, graph::Attributes attributes,
                 std::string name);
  ValueId Sum(ValueId x, ValueId y, std::string name) { return AddOne("add", {x, y}, {}, name); }
  ValueId Reshape(ValueId x, std::vector<int64_t> shape, std::string name);
  ValueId Softmax(ValueId x, std::string name);
  // Returns x [rows, terms] times a transposed weight [units, terms], plus a bias [1, units].
  ValueId Dense(ValueId x, int64_t units, const std::string& name);

  // These layers take images, whose channels are known from their type.
  ValueId Conv(ValueId x, int64_t channels, const Window& window, const std::string& name);
  ValueId ConvBias(ValueId x, int64_t channels, const Window& window, const std::string& name);
  // Has a filter for each channel.
  ValueId DepthwiseConv(ValueId x, const Window& window, const std::string& name);
  ValueId BatchNorm(ValueId x, const std::string& name, double epsilon = kEpsilon);
  // Has a scale of 1 that is not learned.
  ValueId UnscaledBatchNorm(ValueId x, const std::string& name, double epsilon = kEpsilon);
  ValueId Relu(ValueId x, std::string name) { return AddOne("relu", {x}, {}, std::move(name)); }
  // Names the nodes "bnN" and "reluN" after the prefix.
  ValueId NormRelu(ValueId x, const std::string& prefix, int number, double epsilon = kEpsilon);
  ValueId ConvNormRelu(ValueId x, int64_t channels, const Window& window, const std::string& name,
                       double epsilon = kEpsilon);
  ValueId ConvBiasRelu(ValueId x, int64_t channels, const Window& window, const std::string& name);
  ValueId MaxPool(ValueId x, const Window& window, std::string name);
  // Padding counts as zeros.
  ValueId AvgPool(ValueId x, const Window& window, std::string name);
  ValueId ConcatChannels(std::vector<ValueId> values, std::string name);
  // Returns the global average pool as rows [batch, channels].
  ValueId PooledRows(ValueId x);
  // Classifies rows. The probabilities are the output.
  void Classify(ValueId rows, int64_t classes, const std::string& name);

  static constexpr double kEpsilon = 1e-5;

 private:
  int64_t ChannelAxis() const { return channels_last() ? -1 : 1; }
  int64_t Channels(ValueId x) const;
  // Returns [outer, spatial..., channels], or the channels before the spatial axes.
  std::vector<int64_t> Arrange(int64_t outer, std::span<const int64_t> spatial,
                               int64_t channels) const;
  graph::Attributes WindowAttributes(const Window& window, bool with_kernel) const;
  ValueId Random(std::string name, std::vector<int64_t> shape, double low, double high);
  ValueId BatchNormWith(ValueId x, ValueId scale, const std::string& name, double epsilon);

  ZooOptions options_;
  double weight_gain_ = 1;
  // Number of weights that have a seed.
  uint64_t weights_ = 0;
  graph::GraphBuilder builder_;
  Status status_ = OkStatus();
};

}  // namespace kiln::frontend
