// Layers of networks, written into a graph with random weights, in the layout and the type that the
// options ask for.
//
// Errors don't stop the writing: the first one is kept and comes out of Build(), what is written
// after it is dropped. One thread.
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

// What a convolution or a pool moves over its input, by spatial axis.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> pads;  // on both sides
};
// The same along all axes.
Window Cube(int rank, int64_t kernel, int64_t stride = 1, int64_t pad = 0);
inline Window Square(int64_t kernel, int64_t stride = 1, int64_t pad = 0) {
  return Cube(2, kernel, stride, pad);
}
// Of stride 1, with as many outputs as inputs; odd extents.
Window Same(std::vector<int64_t> kernel);

class NetworkWriter {
 public:
  explicit NetworkWriter(const ZooOptions& options) : options_(options) {}

  const ZooOptions& options() const { return options_; }
  int64_t batch() const { return options_.batch; }
  bool channels_last() const { return options_.channels_last; }

  // Variance of the weights of a product, times the terms that it sums. 1 keeps the mean square of
  // what it reads; a relu takes half of it away, a batch norm a third. Activations that neither
  // vanish nor explode in a deep network need what makes up for it.
  void SetWeightGain(double gain) { weight_gain_ = gain; }

  ValueId Input(std::string name, graph::TensorType type);
  // "data" with these spatial extents.
  ValueId Images(std::span<const int64_t> spatial, int64_t channels = 3);
  void Output(ValueId value);
  void Fail(Status status);
  StatusOr<graph::Graph> Build();

  // Weights: each has a seed of its own. A product's are around 0 and as SetWeightGain says; biases
  // are small; scales are positive and at most 1.
  ValueId ProductWeight(std::string name, std::vector<int64_t> shape, int64_t terms);
  ValueId Bias(std::string name, std::vector<int64_t> shape);
  ValueId Scale(std::string name, std::vector<int64_t> shape);
  // What is not learned.
  ValueId Constant(std::string name, graph::ConstantPtr constant);

  // A node of any operator.
  std::vector<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                           graph::Attributes attributes, std::vector<std::string> names);
  ValueId AddOne(std::string_view op, std::vector<ValueId> inputs, graph::Attributes attributes,
                 std::string name);
  ValueId Sum(ValueId x, ValueId y, std::string name) { return AddOne("add", {x, y}, {}, name); }
  ValueId Reshape(ValueId x, std::vector<int64_t> shape, std::string name);
  ValueId Softmax(ValueId x, std::string name);
  // x [rows, terms] times a weight [units, terms] transposed, plus a bias [1, units].
  ValueId Dense(ValueId x, int64_t units, const std::string& name);

  // Of images, whose channels are known from their type.
  ValueId Conv(ValueId x, int64_t channels, const Window& window, const std::string& name);
  ValueId ConvBias(ValueId x, int64_t channels, const Window& window, const std::string& name);
  // A filter for each channel.
  ValueId DepthwiseConv(ValueId x, const Window& window, const std::string& name);
  ValueId BatchNorm(ValueId x, const std::string& name, double epsilon = kEpsilon);
  // With a scale that is 1 and not learned.
  ValueId UnscaledBatchNorm(ValueId x, const std::string& name, double epsilon = kEpsilon);
  ValueId Relu(ValueId x, std::string name) { return AddOne("relu", {x}, {}, std::move(name)); }
  // "bnN" and "reluN" behind the prefix.
  ValueId NormRelu(ValueId x, const std::string& prefix, int number, double epsilon = kEpsilon);
  ValueId ConvNormRelu(ValueId x, int64_t channels, const Window& window, const std::string& name,
                       double epsilon = kEpsilon);
  ValueId ConvBiasRelu(ValueId x, int64_t channels, const Window& window, const std::string& name);
  ValueId MaxPool(ValueId x, const Window& window, std::string name);
  // Padding counts as zeros.
  ValueId AvgPool(ValueId x, const Window& window, std::string name);
  ValueId ConcatChannels(std::vector<ValueId> values, std::string name);
  // Global average pool, as rows [batch, channels].
  ValueId PooledRows(ValueId x);
  // Of rows; the probabilities are the output.
  void Classify(ValueId rows, int64_t classes, const std::string& name);

  static constexpr double kEpsilon = 1e-5;

 private:
  int64_t ChannelAxis() const { return channels_last() ? -1 : 1; }
  int64_t Channels(ValueId x) const;
  // [outer, spatial..., channels], or the channels before them.
  std::vector<int64_t> Arrange(int64_t outer, std::span<const int64_t> spatial,
                               int64_t channels) const;
  graph::Attributes WindowAttributes(const Window& window, bool with_kernel) const;
  ValueId Random(std::string name, std::vector<int64_t> shape, double low, double high);
  ValueId BatchNormWith(ValueId x, ValueId scale, const std::string& name, double epsilon);

  ZooOptions options_;
  double weight_gain_ = 1;
  uint64_t weights_ = 0;  // how many have a seed
  graph::GraphBuilder builder_;
  Status status_ = OkStatus();
};

}  // namespace kiln::frontend
