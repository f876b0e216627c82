// Convolutions and operators that are built from them.
#include <algorithm>

#include "frontend/onnx/rule.h"
#include "frontend/onnx/rules/quantized.h"
#include "frontend/onnx/rules/window.h"

namespace kiln::frontend {
namespace {

Shape KernelOf(const Tensor& w) {
  return {w.shape().begin() + std::min(2, w.rank()), w.shape().end()};
}

// Requires that x [N, C, spatial...] and w have the same number of axes.
void RequireOperands(NodeContext& n, int x_input = 0, int w_input = 1) {
  n.RequireRank(x_input, 3);
  n.RequireRank(w_input, 3);
  if (n.failed()) return;
  const Tensor &x = n.input(x_input), &w = n.input(w_input);
  if (x.rank() != w.rank())
    n.Invalid("its input has {} dimensions, its weights {}", x.rank(), w.rank());
}

// One group per channel makes an operator of its own, with weights [C, M, kernel...].
Tensor DepthwiseConv(NodeContext& n, const Tensor& x, const Tensor& w, int64_t groups,
                     const graph::Attributes& window) {
  Shape shape = w.shape();
  shape[0] = groups;
  shape[1] = w.dim(0) / groups;
  return n.Emit("depthwise_conv", {x, n.Reshape(w, std::move(shape))}, window);
}

Tensor Convolution(NodeContext& n, const Tensor& x, const Tensor& w) {
  const int64_t groups = n.Count("group", 1, 1);
  const Window window = ReadWindow(n, x.shape(), KernelOf(w));
  if (n.failed()) return Tensor::Missing();
  graph::Attributes attributes = {
      {"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations}};
  const bool is_depthwise =
      groups > 1 && groups == x.dim(1) && w.dim(1) == 1 && w.dim(0) % groups == 0;
  if (is_depthwise) return DepthwiseConv(n, x, w, groups, attributes);
  attributes["groups"] = groups;
  return n.Emit("conv", {x, w}, std::move(attributes));
}

void Conv(NodeContext& n) {
  RequireOperands(n);
  if (n.failed()) return;
  n.SetOutput(WithChannelBias(n, Convolution(n, n.input(0), n.input(1)), n.input(2)));
}

void ConvInteger(NodeContext& n) { n.SetOutput(IntegerConvolution(n, 0, 2, 1, 3)); }

// Returns the pads of a transposed convolution whose output has the wanted extents. Elements that
// are missing even without pads are added at the ends.
Shape PadsForOutput(NodeContext& n, const Shape& input, const Window& window, const Shape& wanted,
                    Shape& output_padding) {
  const size_t rank = window.kernel.size();
  const bool is_upper = n.Text("auto_pad", "NOTSET") == "SAME_UPPER";
  Shape pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t excess = window.strides[d] * (input[d + 2] - 1) + output_padding[d] +
                           (window.kernel[d] - 1) * window.dilations[d] + 1 - wanted[d];
    output_padding[d] += std::max<int64_t>(-excess, 0);
    const int64_t total = std::max<int64_t>(excess, 0);
    pads[d] = is_upper ? total / 2 : total - total / 2;
    pads[rank + d] = total - pads[d];
  }
  return pads;
}

void ConvTranspose(NodeContext& n) {
  RequireOperands(n);
  if (n.failed()) return;
  const Tensor &x = n.input(0), &w = n.input(1);
  const int rank = x.rank() - 2;
  Window window = ReadWindow(n, x.shape(), KernelOf(w));
  Shape output_padding = n.Counts("output_padding", rank, 0);
  const std::string automatic = n.Text("auto_pad", "NOTSET");
  Shape wanted;
  if (n.has("output_shape")) {
    wanted = n.Counts("output_shape", rank, 1, 1);
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (int d = 0; d < rank; ++d)
      wanted.push_back(x.dim(d + 2) * window.strides[static_cast<size_t>(d)]);
  }
  const int64_t groups = n.Count("group", 1, 1);
  if (n.failed()) return;
  if (!wanted.empty()) window.pads = PadsForOutput(n, x.shape(), window, wanted, output_padding);
  const Tensor y = n.Emit("conv_transpose", {x, w},
                          {{"strides", window.strides},
                           {"pads", window.pads},
                           {"dilations", window.dilations},
                           {"output_padding", output_padding},
                           {"groups", groups}});
  n.SetOutput(WithChannelBias(n, y, n.input(2)));
}

}  // namespace

Tensor IntegerConvolution(NodeContext& n, int x, int x_zero_point, int w, int w_zero_point) {
  RequireOperands(n, x, w);
  if (n.failed()) return Tensor::Missing();
  const Tensor wide = WithoutZeroPoint(n, n.input(x), n.input(x_zero_point), 1);
  const Tensor weights = WithoutZeroPoint(n, n.input(w), n.input(w_zero_point), 0);
  return n.failed() ? Tensor::Missing() : Convolution(n, wide, weights);
}

Tensor WithChannelBias(NodeContext& n, const Tensor& y, const Tensor& bias) {
  if (n.failed() || !bias.exists()) return y;
  Shape shape(y.shape().size(), 1);
  shape[1] = bias.num_elements();
  return n.Add(y, n.Reshape(bias, std::move(shape)));
}

std::vector<Rule> ConvolutionRules() {
  return {{"Conv", Conv}, {"ConvInteger", ConvInteger}, {"ConvTranspose", ConvTranspose}};
}

}  // namespace kiln::frontend
