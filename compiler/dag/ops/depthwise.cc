// Depthwise convolution: every channel has its own kernels.
#include "compiler/dag/ops/conv.h"

namespace kiln::dag {

TensorRef WriteDepthwiseConv(OpContext& c, Layout layout, const Window& window,
                             const TensorRef& data, const TensorRef& weight) {
  static constexpr std::string_view kOut[] = {"i", "j", "k"};
  static constexpr std::string_view kWindow[] = {"di", "dj", "dk"};
  const size_t dims = window.dims();
  const auto channel_axis = static_cast<size_t>(layout.channel_axis());
  const int64_t channels = data.shape()[channel_axis];
  const int64_t multiplier = weight.shape()[layout.channels_last ? dims + 1 : 1];
  const std::vector<int64_t> out = window.Count(c, layout.Image(data.shape()));

  TensorRef padded = Pad(c, data, "PaddedInput", "i", window.PaddingOf(layout), /*always=*/true);
  return c.b.Reduce(
      fmt::format("DepthwiseConv{}d", dims),
      Arrange<Axis>(layout, {"b", data.shape()[0]}, {"c", channels * multiplier},
                    NamedAxes(kOut, out)),
      NamedAxes(kWindow, window.kernel), Combiner::kSum, [&](Vars v) {
        const Vars at = v.last(dims);
        const Value channel = FloorDiv(v[channel_axis], multiplier);
        std::vector<Value> image;
        for (size_t d = 0; d < dims; ++d)
          image.push_back(window.Position(d, v[layout.first() + d], at[d]));
        return c.Widen(padded.At(Arrange(layout, v[0], channel, image))) *
               c.Widen(weight.At(ArrangeWeight<Value>(layout, channel, v[channel_axis] % multiplier,
                                                      {at.begin(), at.end()})));
      });
}

namespace {

TensorRef Depthwise(OpContext& c, Layout layout) {
  const Window window = Window::Uniform(ReadExtents(c, layout.dims, "K"), c.args["stride"],
                                        c.args["pad"], c.args["dilation"]);
  TensorRef data =
      c.Input(Arrange(layout, c.args["N"], c.args["C"], ReadExtents(c, layout.dims, "")));
  TensorRef weight =
      c.Input(ArrangeWeight(layout, c.args["C"], c.args["multiplier"], window.kernel));
  return WriteDepthwiseConv(c, layout, window, data, weight);
}

OpInfo Info(Layout layout) {
  std::vector<Parameter> parameters = ImageParameters(layout.dims);
  parameters.push_back({.name = "C", .doc = "input channels"});
  AddExtents(parameters, layout.dims, "K", "kernel");
  parameters.push_back({.name = "stride", .doc = "step of the window"});
  parameters.push_back({.name = "pad", .doc = "zeros added on each side", .min = 0});
  parameters.push_back({.name = "dilation", .doc = "step inside the window", .default_value = 1});
  parameters.push_back(
      {.name = "multiplier", .doc = "outputs per input channel", .default_value = 1});
  return {
      .name = "depthwise_conv2d_" + layout.Name(),
      .family = "convolutions",
      .doc = fmt::format("depthwise convolution of [{}] with [{}]", layout.ShapeDoc(),
                         layout.channels_last ? "KH, KW, C, multiplier" : "C, multiplier, KH, KW"),
      .parameters = std::move(parameters),
      .channel_axis = layout.channel_axis(),
      .build = [layout](OpContext& c) { return Depthwise(c, layout); }};
}

}  // namespace

std::vector<OpInfo> DepthwiseOps() { return {Info({2, false}), Info({2, true})}; }

}  // namespace kiln::dag
