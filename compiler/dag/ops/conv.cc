// Direct convolution of 1, 2 or 3 dimensions with stride, padding, dilation and groups. Weights are
// OI + kernel if channels come first. If channels come last, weights are kernel + IO or O + kernel
// + I.
#include "compiler/dag/ops/conv.h"

#include "compiler/dag/ops/winograd.h"

namespace kiln::dag {
namespace {

// Returns the input channel that has number rc in the group of output channel ff.
Value InputChannel(const ConvSpec& spec, int64_t co, int64_t group_channels, const Value& ff,
                   const Value& rc) {
  if (spec.groups == 1) return rc;
  return FloorDiv(ff, co / spec.groups) * group_channels + rc;
}

// Returns the extents or an index of the weights.
template <typename T>
std::vector<T> WeightsOf(const ConvSpec& spec, const T& output, const T& input,
                         const std::vector<T>& kernel) {
  if (!spec.layout.channels_last) return ArrangeWeight(spec.layout, output, input, kernel);
  if (!spec.is_output_first) return ArrangeWeight(spec.layout, input, output, kernel);
  std::vector<T> all = {output};
  all.insert(all.end(), kernel.begin(), kernel.end());
  all.push_back(input);
  return all;
}

// Return the axes of the weights' channels.
size_t OutputAxis(const ConvSpec& spec) {
  return spec.layout.channels_last && !spec.is_output_first ? spec.window.dims() + 1 : 0;
}
size_t InputAxis(const ConvSpec& spec) {
  if (!spec.layout.channels_last) return 1;
  return spec.window.dims() + (spec.is_output_first ? 1 : 0);
}

}  // namespace

TensorRef WriteConv(OpContext& c, const ConvSpec& spec, const TensorRef& data,
                    const TensorRef& weight) {
  static constexpr std::string_view kOut[] = {"yy", "xx", "zz"};
  static constexpr std::string_view kWindow[] = {"ry", "rx", "rz"};
  const auto& [layout, window, groups, is_output_first] = spec;
  const size_t dims = window.dims();
  const bool last = layout.channels_last;
  const int64_t co = weight.shape()[OutputAxis(spec)];
  const int64_t group_channels = weight.shape()[InputAxis(spec)];
  const std::vector<int64_t> out = window.Count(c, layout.Image(data.shape()));

  TensorRef padded = Pad(c, data, "pad_temp", "i", window.PaddingOf(layout), /*always=*/true);
  return c.b.Reduce(
      fmt::format("{}conv{}d_{}", groups > 1 ? "group_" : "", dims, layout.Name()),
      Arrange<Axis>(layout, {"nn", data.shape()[0]}, {"ff", co}, NamedAxes(kOut, out)),
      ArrangeSum<Axis>(layout, {"rc", group_channels}, NamedAxes(kWindow, window.kernel)),
      Combiner::kSum,
      [&](Vars i) {
        const Vars at = i.subspan(dims + 2 + (last ? 0 : 1), dims);
        const Value& ff = i[static_cast<size_t>(layout.channel_axis())];
        const Value& rc = last ? i.back() : i[dims + 2];
        std::vector<Value> image;
        for (size_t d = 0; d < dims; ++d)
          image.push_back(window.Position(d, i[layout.first() + d], at[d]));
        const Value channel = InputChannel(spec, co, group_channels, ff, rc);
        return c.Widen(padded.At(Arrange(layout, i[0], channel, image))) *
               c.Widen(
                   weight.At(WeightsOf(spec, ff, rc, std::vector<Value>(at.begin(), at.end()))));
      },
      last ? LayoutFree(c, weight) : Attrs());
}

namespace {

TensorRef Convolution(OpContext& c, Layout layout) {
  const int64_t ci = c.args["CI"], co = c.args["CO"];
  ConvSpec spec{layout,
                Window::Uniform(ReadExtents(c, layout.dims, "K"), c.args["stride"], c.args["pad"],
                                c.args["dilation"]),
                c.args["groups"], layout.channels_last && c.args["output_first"] != 0};
  if (ci % spec.groups != 0 || co % spec.groups != 0) {
    c.Fail("groups = {} must divide CI = {} and CO = {}", spec.groups, ci, co);
    spec.groups = 1;
  }
  TensorRef data = c.Input(Arrange(layout, c.args["N"], ci, ReadExtents(c, layout.dims, "")));
  TensorRef weight = c.Input(WeightsOf(spec, co, ci / spec.groups, spec.window.kernel));
  return WriteConv(c, spec, data, weight);
}

OpInfo Info(Layout layout) {
  std::vector<Parameter> parameters = ImageParameters(layout.dims);
  parameters.push_back({.name = "CO", .doc = "output channels"});
  parameters.push_back({.name = "CI", .doc = "input channels"});
  AddExtents(parameters, layout.dims, "K", "kernel");
  parameters.push_back({.name = "stride", .doc = "step of the window"});
  parameters.push_back({.name = "pad", .doc = "zeros added on each side", .min = 0});
  parameters.push_back({.name = "dilation", .doc = "step inside the window", .default_value = 1});
  parameters.push_back(
      {.name = "groups", .doc = "independent groups of channels", .default_value = 1});
  if (layout.channels_last) {
    parameters.push_back({.name = "output_first",
                          .doc = "1: weights have CO as their first axis, CI/groups as the last",
                          .min = 0,
                          .max = 1,
                          .default_value = 0});
  }
  std::vector<std::string> kernel;
  for (const std::string& letter : ImageLetters(layout.dims)) kernel.push_back("K" + letter);
  const std::string window = fmt::format("{}", fmt::join(kernel, ", "));
  const std::string image = fmt::format("{}", fmt::join(ImageLetters(layout.dims), ", "));
  OpInfo info{
      .name = fmt::format("conv{}d_{}", layout.dims, layout.Name()),
      .family = "convolutions",
      .doc =
          layout.channels_last
              ? fmt::format("convolution of [N, {}, CI] with [{}, CI/groups, CO]", image, window)
              : fmt::format("convolution of [N, CI, {}] with [CO, CI/groups, {}]", image, window),
      .parameters = std::move(parameters),
      .channel_axis = layout.channel_axis(),
      .build = [layout](OpContext& c) { return Convolution(c, layout); }};
  if (layout.dims == 2 && layout.channels_last) info.variants = WinogradVariants;
  return info;
}

}  // namespace

std::vector<OpInfo> ConvOps() {
  std::vector<OpInfo> ops;
  for (int dims : {2, 1, 3}) {
    for (bool last : {false, true}) ops.push_back(Info({dims, last}));
  }
  return ops;
}

}  // namespace kiln::dag
