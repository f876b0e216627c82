// Direct convolution of 1, 2 or 3 dimensions with stride, padding, dilation and groups. Weights are
// OI + kernel where channels come first, kernel + IO where they come last.
#include "compiler/dag/ops/image.h"
#include "compiler/dag/ops/winograd.h"

namespace kiln::dag {
namespace {

struct Conv {
  int64_t n, co, ci, stride, pad, dilation, groups;
  std::vector<int64_t> in, kernel, out;  // per dimension of the image
};

Conv ReadConv(OpContext& c, int dims) {
  Conv v{.n = c.args["N"],
         .co = c.args["CO"],
         .ci = c.args["CI"],
         .stride = c.args["stride"],
         .pad = c.args["pad"],
         .dilation = c.args["dilation"],
         .groups = c.args["groups"],
         .in = ReadExtents(c, dims, ""),
         .kernel = ReadExtents(c, dims, "K"),
         .out = {}};
  if (v.ci % v.groups != 0 || v.co % v.groups != 0) {
    c.Fail("groups = {} must divide CI = {} and CO = {}", v.groups, v.ci, v.co);
    v.groups = 1;
  }
  const std::vector<std::string> letters = ImageLetters(dims);
  for (size_t d = 0; d < letters.size(); ++d) {
    v.out.push_back(
        WindowExtent(c, letters[d], v.in[d], 2 * v.pad, v.kernel[d], v.stride, v.dilation));
  }
  return v;
}

// The input channel that output channel ff and rc, counted inside its group, meet.
Value InputChannel(const Conv& v, const Value& ff, const Value& rc) {
  if (v.groups == 1) return rc;
  return FloorDiv(ff, v.co / v.groups) * (v.ci / v.groups) + rc;
}

std::vector<Axis> NamedAxes(const char* const* names, const std::vector<int64_t>& extents) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < extents.size(); ++d) axes.push_back({names[d], extents[d]});
  return axes;
}

TensorRef Convolution(OpContext& c, Layout layout) {
  static constexpr const char* kOut[] = {"yy", "xx", "zz"};
  static constexpr const char* kWindow[] = {"ry", "rx", "rz"};
  const Conv v = ReadConv(c, layout.dims);
  const auto dims = static_cast<size_t>(layout.dims);
  const bool last = layout.channels_last;

  TensorRef data = c.Input(Arrange(layout, v.n, v.ci, v.in));
  const std::vector<int64_t> pads =
      Arrange<int64_t>(layout, 0, 0, std::vector<int64_t>(dims, v.pad));
  TensorRef padded = Pad(c, data, "pad_temp", "i", {pads, pads}, /*always=*/true);
  const int64_t group_channels = v.ci / v.groups;
  std::vector<int64_t> weight_shape = v.kernel;
  weight_shape.insert(last ? weight_shape.end() : weight_shape.begin(),
                      last ? std::initializer_list<int64_t>{group_channels, v.co}
                           : std::initializer_list<int64_t>{v.co, group_channels});
  TensorRef weight = c.Input(weight_shape);

  std::vector<Axis> reduce = NamedAxes(kWindow, v.kernel);
  reduce.insert(last ? reduce.end() : reduce.begin(), {"rc", group_channels});
  Attrs attrs;
  if (last) attrs.layout_free_placeholders = {"p1"};
  return c.b.Reduce(
      fmt::format("{}conv{}d_{}", v.groups > 1 ? "group_" : "", dims, layout.Name()),
      Arrange<Axis>(layout, {"nn", v.n}, {"ff", v.co}, NamedAxes(kOut, v.out)), reduce,
      Combiner::kSum,
      [&](Vars i) {
        const Vars out = i.subspan(layout.first(), dims);
        const Vars window = i.subspan(dims + 2 + (last ? 0 : 1), dims);
        const Value& ff = i[static_cast<size_t>(layout.channel_axis())];
        const Value& rc = last ? i.back() : i[dims + 2];
        std::vector<Value> image;
        for (size_t d = 0; d < dims; ++d)
          image.push_back(out[d] * v.stride + window[d] * v.dilation);
        std::vector<Value> at(window.begin(), window.end());
        const Value channels[] = {last ? rc : ff, last ? ff : rc};
        at.insert(last ? at.end() : at.begin(), std::begin(channels), std::end(channels));
        return c.Widen(padded.At(Arrange(layout, i[0], InputChannel(v, ff, rc), image))) *
               c.Widen(weight.At(at));
      },
      attrs);
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
