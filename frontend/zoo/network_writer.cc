#include "frontend/zoo/network_writer.h"

#include <cmath>

#include "base/numbers/rng.h"
#include "compiler/ir/ndarray.h"

namespace kiln::frontend {

using graph::Attributes;

Window Cube(int rank, int64_t kernel, int64_t stride, int64_t pad) {
  const auto all = [&](int64_t value) {
    return std::vector<int64_t>(static_cast<size_t>(rank), value);
  };
  return {.kernel = all(kernel), .strides = all(stride), .pads = all(pad)};
}

Window Same(std::vector<int64_t> kernel) {
  std::vector<int64_t> pads;
  for (int64_t extent : kernel) pads.push_back(extent / 2);
  const std::vector<int64_t> strides(kernel.size(), 1);
  return {.kernel = std::move(kernel), .strides = strides, .pads = std::move(pads)};
}

ValueId NetworkWriter::Input(std::string name, graph::TensorType type) {
  if (!status_.ok()) return graph::kAbsent;
  StatusOr<ValueId> id = builder_.Input(std::move(name), std::move(type));
  if (id.ok()) return *id;
  Fail(id.status());
  return graph::kAbsent;
}

ValueId NetworkWriter::Images(std::span<const int64_t> spatial, int64_t channels) {
  return Input("data", {options_.dtype, Arrange(batch(), spatial, channels)});
}

void NetworkWriter::Output(ValueId value) {
  if (status_.ok()) builder_.Output(value);
}

void NetworkWriter::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

StatusOr<graph::Graph> NetworkWriter::Build() {
  KILN_RETURN_IF_ERROR(status_);
  return builder_.Build();
}

int64_t NetworkWriter::Channels(ValueId x) const {
  if (!status_.ok()) return 1;
  const std::vector<int64_t>& shape = builder_.type(x).shape;
  return channels_last() ? shape.back() : shape[1];
}

std::vector<int64_t> NetworkWriter::Arrange(int64_t outer, std::span<const int64_t> spatial,
                                            int64_t channels) const {
  std::vector<int64_t> shape = {outer};
  if (!channels_last()) shape.push_back(channels);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  if (channels_last()) shape.push_back(channels);
  return shape;
}

ValueId NetworkWriter::Constant(std::string name, graph::ConstantPtr constant) {
  return status_.ok() ? builder_.Add(std::move(name), std::move(constant)) : graph::kAbsent;
}

// Seeds have 63 bits, since the text of a graph has no room for more.
ValueId NetworkWriter::Random(std::string name, std::vector<int64_t> shape, double low,
                              double high) {
  const uint64_t seed = SplitSeed(options_.seed, weights_++) >> 1;
  return Constant(std::move(name),
                  graph::Constant::Random({options_.dtype, std::move(shape)},
                                          {.seed = seed, .low = low, .high = high}));
}

// Uniform numbers within +-b have a variance of b^2 / 3.
ValueId NetworkWriter::ProductWeight(std::string name, std::vector<int64_t> shape, int64_t terms) {
  const double bound = std::sqrt(3 * weight_gain_ / static_cast<double>(terms));
  return Random(std::move(name), std::move(shape), -bound, bound);
}

ValueId NetworkWriter::Bias(std::string name, std::vector<int64_t> shape) {
  return Random(std::move(name), std::move(shape), -0.1, 0.1);
}

ValueId NetworkWriter::Scale(std::string name, std::vector<int64_t> shape) {
  return Random(std::move(name), std::move(shape), 0.5, 1);
}

std::vector<ValueId> NetworkWriter::Add(std::string_view op, std::vector<ValueId> inputs,
                                        Attributes attributes, std::vector<std::string> names) {
  const std::vector<ValueId> nothing(names.size(), graph::kAbsent);
  if (!status_.ok()) return nothing;
  StatusOr<std::vector<ValueId>> outputs =
      builder_.Add(op, std::move(inputs), std::move(attributes), {.names = names});
  if (outputs.ok()) return *std::move(outputs);
  Fail(Annotate(outputs.status(), names[0]));
  return nothing;
}

ValueId NetworkWriter::AddOne(std::string_view op, std::vector<ValueId> inputs,
                              Attributes attributes, std::string name) {
  return Add(op, std::move(inputs), std::move(attributes), {std::move(name)})[0];
}

ValueId NetworkWriter::Reshape(ValueId x, std::vector<int64_t> shape, std::string name) {
  return AddOne("reshape", {x}, {{"shape", std::move(shape)}}, std::move(name));
}

ValueId NetworkWriter::Softmax(ValueId x, std::string name) {
  return AddOne("softmax", {x}, {{"axis", int64_t{-1}}}, std::move(name));
}

ValueId NetworkWriter::Dense(ValueId x, int64_t units, const std::string& name) {
  const int64_t terms = status_.ok() ? builder_.type(x).shape.back() : 1;
  const ValueId weight = ProductWeight(name + "_weight", {units, terms}, terms);
  const ValueId product = AddOne("matmul", {x, weight}, {{"transpose_b", int64_t{1}}}, name);
  return Sum(product, Bias(name + "_bias", {1, units}), name + "_biased");
}

Attributes NetworkWriter::WindowAttributes(const Window& window, bool with_kernel) const {
  std::vector<int64_t> pads = window.pads;
  pads.insert(pads.end(), window.pads.begin(), window.pads.end());
  Attributes attributes = {{"strides", window.strides},
                           {"pads", std::move(pads)},
                           {"channels_last", int64_t{channels_last()}}};
  if (with_kernel) attributes["kernel"] = window.kernel;
  return attributes;
}

ValueId NetworkWriter::Conv(ValueId x, int64_t channels, const Window& window,
                            const std::string& name) {
  const int64_t in = Channels(x);
  std::vector<int64_t> shape = window.kernel;
  shape.insert(channels_last() ? shape.end() : shape.begin(), {in, channels});
  if (!channels_last()) std::swap(shape[0], shape[1]);
  const int64_t terms = ProductOfCounts(window.kernel) * in;
  const ValueId weight = ProductWeight(name + "_weight", std::move(shape), terms);
  return AddOne("conv", {x, weight}, WindowAttributes(window, /*with_kernel=*/false), name);
}

ValueId NetworkWriter::ConvBias(ValueId x, int64_t channels, const Window& window,
                                const std::string& name) {
  const ValueId product = Conv(x, channels, window, name);
  const std::vector<int64_t> ones(window.kernel.size(), 1);
  return Sum(product, Bias(name + "_bias", Arrange(1, ones, channels)), name + "_biased");
}

ValueId NetworkWriter::DepthwiseConv(ValueId x, const Window& window, const std::string& name) {
  std::vector<int64_t> shape = window.kernel;
  shape.insert(channels_last() ? shape.end() : shape.begin(), {Channels(x), 1});
  const ValueId weight =
      ProductWeight(name + "_weight", std::move(shape), ProductOfCounts(window.kernel));
  return AddOne("depthwise_conv", {x, weight}, WindowAttributes(window, /*with_kernel=*/false),
                name);
}

ValueId NetworkWriter::BatchNormWith(ValueId x, ValueId scale, const std::string& name,
                                     double epsilon) {
  const std::vector<int64_t> shape = {Channels(x)};
  const ValueId bias = Bias(name + "_bias", shape);
  const ValueId mean = Random(name + "_mean", shape, -0.1, 0.1);
  const ValueId variance = Random(name + "_variance", shape, 0.5, 1.5);
  return AddOne("batch_norm", {x, scale, bias, mean, variance},
                {{"axis", ChannelAxis()}, {"epsilon", epsilon}}, name);
}

ValueId NetworkWriter::BatchNorm(ValueId x, const std::string& name, double epsilon) {
  return BatchNormWith(x, Scale(name + "_scale", {Channels(x)}), name, epsilon);
}

ValueId NetworkWriter::UnscaledBatchNorm(ValueId x, const std::string& name, double epsilon) {
  ir::NDArray ones(options_.dtype, {Channels(x)});
  ones.Fill(1);
  const ValueId scale = Constant(name + "_scale", graph::Constant::FromArray(std::move(ones)));
  return BatchNormWith(x, scale, name, epsilon);
}

ValueId NetworkWriter::NormRelu(ValueId x, const std::string& prefix, int number, double epsilon) {
  const ValueId norm = BatchNorm(x, fmt::format("{}bn{}", prefix, number), epsilon);
  return Relu(norm, fmt::format("{}relu{}", prefix, number));
}

ValueId NetworkWriter::ConvNormRelu(ValueId x, int64_t channels, const Window& window,
                                    const std::string& name, double epsilon) {
  const ValueId product = Conv(x, channels, window, name);
  return Relu(BatchNorm(product, name + "_bn", epsilon), name + "_relu");
}

ValueId NetworkWriter::ConvBiasRelu(ValueId x, int64_t channels, const Window& window,
                                    const std::string& name) {
  return Relu(ConvBias(x, channels, window, name), name + "_relu");
}

ValueId NetworkWriter::MaxPool(ValueId x, const Window& window, std::string name) {
  return AddOne("max_pool", {x}, WindowAttributes(window, /*with_kernel=*/true), std::move(name));
}

ValueId NetworkWriter::AvgPool(ValueId x, const Window& window, std::string name) {
  Attributes attributes = WindowAttributes(window, /*with_kernel=*/true);
  attributes["count_include_pad"] = int64_t{1};
  return AddOne("avg_pool", {x}, std::move(attributes), std::move(name));
}

ValueId NetworkWriter::ConcatChannels(std::vector<ValueId> values, std::string name) {
  return AddOne("concat", std::move(values), {{"axis", ChannelAxis()}}, std::move(name));
}

ValueId NetworkWriter::PooledRows(ValueId x) {
  const ValueId pooled =
      AddOne("global_avg_pool", {x}, {{"channels_last", int64_t{channels_last()}}}, "pool");
  return Reshape(pooled, {batch(), Channels(x)}, "flat");
}

void NetworkWriter::Classify(ValueId rows, int64_t classes, const std::string& name) {
  Output(Softmax(Dense(rows, classes, name), "probabilities"));
}

}  // namespace kiln::frontend
