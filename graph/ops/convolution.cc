// Convolutions over one, two or three dimensions. Their DAGs are those of the library's operators,
// so that networks use records of these operators.
#include "compiler/dag/ops/conv.h"
#include "graph/op.h"
#include "graph/ops/inputs.h"
#include "graph/ops/window.h"

namespace kiln::graph {
namespace {

using dag::Layout;
using dag::TensorRef;
using dag::Window;

// Extents of the weights: two of channels, and the kernel.
struct Weight {
  // Numbers of channels.
  int64_t first = 1, second = 1;
  std::vector<int64_t> kernel = {};
};

// Fails if the weights lack the image's dimensions, or if the types do not fit. is_output_first:
// the first axis is that of the output channels even if the image's channels come last.
Weight ReadWeight(NodeWriter& w, Layout layout, bool is_output_first = false) {
  RequireDomain(w, Domain::kNumbers, 0);
  RequireSameTypes(w, 0);
  RequireRank(w, 1, layout.dims + 2, layout.dims + 2);
  if (!w.ok()) return {};
  const std::vector<int64_t>& shape = w.shape(1);
  const auto dims = static_cast<std::ptrdiff_t>(layout.dims);
  if (is_output_first) return {shape.back(), shape[0], {shape.begin() + 1, shape.end() - 1}};
  if (layout.channels_last) {
    return {shape[static_cast<size_t>(dims)], shape.back(), {shape.begin(), shape.begin() + dims}};
  }
  return {shape[0], shape[1], {shape.begin() + 2, shape.end()}};
}

int64_t Channels(const NodeWriter& w, Layout layout) {
  return w.shape(0)[static_cast<size_t>(layout.channel_axis())];
}

std::vector<TensorRef> Result(NodeWriter& w, const dag::OpContext& c, const TensorRef& x) {
  return {w.ok() ? w.Converted(x, c.result_type) : x};
}

std::vector<TensorRef> Conv(NodeWriter& w) {
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  const bool is_output_first = Flag(w, "output_first");
  if (is_output_first && !layout.channels_last)
    w.Fail("output_first = 1 where the channels are not last, whose weights are [CO, CI, K...]");
  if (!w.ok()) return {w.input(0)};
  const Weight weight = ReadWeight(w, layout, is_output_first);
  const dag::ConvSpec spec{layout, ReadWindow(w, weight.kernel),
                           IntBetween(w, "groups", 1, dag::kMaxExtent), is_output_first};
  const int64_t ci = Channels(w, layout);
  const int64_t co = layout.channels_last ? weight.second : weight.first;
  const int64_t group_channels = layout.channels_last ? weight.first : weight.second;
  if (w.ok() &&
      (ci % spec.groups != 0 || co % spec.groups != 0 || group_channels != ci / spec.groups)) {
    w.Fail(
        "{} input channels in {} groups meet weights of shape [{}], which are for {} of each group "
        "and make {}",
        ci, spec.groups, fmt::join(w.shape(1), ", "), group_channels, co);
  }
  if (!w.ok()) return {w.input(0)};
  dag::OpContext c = w.Context(w.type());
  return Result(w, c, dag::WriteConv(c, spec, w.input(0), w.input(1)));
}

std::vector<TensorRef> DepthwiseConv(NodeWriter& w) {
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  const Weight weight = ReadWeight(w, layout);
  const Window window = ReadWindow(w, weight.kernel);
  if (w.ok() && weight.first != Channels(w, layout)) {
    w.Fail("{} input channels meet weights of shape [{}], which are for {}", Channels(w, layout),
           fmt::join(w.shape(1), ", "), weight.first);
  }
  if (!w.ok()) return {w.input(0)};
  dag::OpContext c = w.Context(w.type());
  return Result(w, c, dag::WriteDepthwiseConv(c, layout, window, w.input(0), w.input(1)));
}

std::vector<TensorRef> ConvTranspose(NodeWriter& w) {
  const Layout layout = ReadLayout(w);
  if (!w.ok()) return {w.input(0)};
  const Weight weight = ReadWeight(w, layout);
  const Window window = ReadWindow(w, weight.kernel);
  const auto dims = static_cast<size_t>(layout.dims);
  const dag::ConvTransposeSpec spec{.layout = layout,
                                    .window = window,
                                    .output_padding = ReadPerAxis(w, "output_padding", dims, 0, 0),
                                    .groups = IntBetween(w, "groups", 1, dag::kMaxExtent),
                                    // With strides of 1 nothing is stretched.
                                    .stretch = window.strides == std::vector<int64_t>(dims, 1)};
  const int64_t ci = Channels(w, layout);
  if (w.ok() && (ci % spec.groups != 0 || weight.first != ci)) {
    w.Fail("{} input channels in {} groups meet weights of shape [{}], which are for {}", ci,
           spec.groups, fmt::join(w.shape(1), ", "), weight.first);
  }
  if (!w.ok()) return {w.input(0)};
  dag::OpContext c = w.Context(w.type());
  return Result(w, c, dag::WriteConvTranspose(c, spec, w.input(0), w.input(1)));
}

OpDef Convolution(std::string name, std::string doc, std::vector<AttributeSpec> more,
                  std::vector<TensorRef> (*write)(NodeWriter&)) {
  std::vector<AttributeSpec> attributes = WindowAttributes();
  for (AttributeSpec& attribute : more) attributes.push_back(std::move(attribute));
  return {.name = std::move(name),
          .family = "convolutions",
          .doc = std::move(doc),
          .pattern = OpPattern::kProduct,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = std::move(attributes),
          .write = write};
}

}  // namespace

std::vector<OpDef> ConvolutionOps() {
  const AttributeSpec groups = IntAttribute("groups", "independent groups of channels", 1);
  const AttributeSpec output_first = IntAttribute(
      "output_first", "1: where channels come last, weights are [CO, K..., CI/groups]", 0);
  return {
      Convolution("conv",
                  "convolution with [CO, CI/groups, K...], or [K..., CI/groups, CO] where channels "
                  "come last",
                  {groups, output_first}, Conv),
      Convolution("depthwise_conv",
                  "convolution of each channel by itself, with [C, M, K...], or [K..., C, M] where "
                  "channels come last: M outputs for each channel",
                  {}, DepthwiseConv),
      Convolution(
          "conv_transpose",
          "transposed convolution, which enlarges images, with [CI, CO/groups, K...], or [K..., "
          "CI, CO/groups] where channels come last; pads are cut off",
          {IntsAttribute("output_padding", "rows and columns more at the end; default 0",
                         std::vector<int64_t>()),
           groups},
          ConvTranspose)};
}

}  // namespace kiln::graph
