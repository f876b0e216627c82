// 2-D pooling over windows and over whole images.
#include <limits>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

enum class Layout { kNchw, kNhwc };
enum class Kind { kMax, kAvg };

int HeightAxis(Layout layout) { return layout == Layout::kNchw ? 2 : 1; }

std::vector<int64_t> ImageShape(Layout layout, int64_t n, int64_t h, int64_t w, int64_t channels) {
  if (layout == Layout::kNchw) return {n, channels, h, w};
  return {n, h, w, channels};
}

double LowestValue(ir::Type type) {
  if (type == ir::kFloat16) return -65504.0;
  if (type == ir::kFloat64) return std::numeric_limits<double>::lowest();
  if (type.is_float()) return std::numeric_limits<float>::lowest();
  return type == ir::kInt8 ? -128.0 : static_cast<double>(std::numeric_limits<int32_t>::lowest());
}

// Number of input elements that the window at `out` covers along one axis.
Value Covered(const Value& out, int64_t stride, int64_t pad, int64_t kernel, int64_t extent) {
  const Value start = out * stride - pad;
  return Min(start + kernel, extent) - Max(start, 0);
}

TensorRef WindowPool(OpContext& c, Layout layout, Kind kind) {
  const int64_t n = c.args["N"], h = c.args["H"], w = c.args["W"], channels = c.args["C"];
  const int64_t kh = c.args["KH"], kw = c.args["KW"], stride = c.args["stride"],
                pad = c.args["pad"];
  const int64_t oh = WindowExtent(c, "H", h, 2 * pad, kh, stride, 1);
  const int64_t ow = WindowExtent(c, "W", w, 2 * pad, kw, stride, 1);
  if (pad >= kh || pad >= kw) {
    c.Fail("pad = {} must be smaller than the kernel {}x{}: a window may not be all padding", pad,
           kh, kw);
  }
  const int y = HeightAxis(layout), x = y + 1;
  std::vector<int64_t> pads(4, 0);
  pads[static_cast<size_t>(y)] = pads[static_cast<size_t>(x)] = pad;

  TensorRef data = c.Input(ImageShape(layout, n, h, w, channels));
  const double fill = kind == Kind::kMax ? LowestValue(c.type) : 0;
  TensorRef padded = Pad(c, data, "pad_temp", "ax", {pads, pads, fill}, /*always=*/false);
  const std::vector<Axis> axes = NumberedAxes("ax", ImageShape(layout, n, oh, ow, channels));
  TensorRef pooled =
      c.b.Reduce(kind == Kind::kMax ? "pool_max" : "pool_sum", axes, {{"rv0", kh}, {"rv1", kw}},
                 kind == Kind::kMax ? Combiner::kMax : Combiner::kSum, [&](Vars v) {
                   std::vector<Value> index(v.begin(), v.begin() + 4);
                   index[static_cast<size_t>(y)] = index[static_cast<size_t>(y)] * stride + v[4];
                   index[static_cast<size_t>(x)] = index[static_cast<size_t>(x)] * stride + v[5];
                   return padded.At(index);
                 });
  if (kind == Kind::kMax) return pooled;
  return c.b.Compute("pool_avg", axes, [&](Vars v) {
    if (c.args["count_include_pad"] != 0 || pad == 0) return pooled.At(v) / (kh * kw);
    const Value count = Covered(v[static_cast<size_t>(y)], stride, pad, kh, h) *
                        Covered(v[static_cast<size_t>(x)], stride, pad, kw, w);
    return pooled.At(v) / Cast(c.type, Max(count, 1));
  });
}

// Pooling to 1x1, written as the adaptive pooling it is a case of. Old keys spell the window's size
// out.
TensorRef GlobalPool(OpContext& c, Layout layout, Kind kind) {
  const int64_t n = c.args["N"], h = c.args["H"], w = c.args["W"], channels = c.args["C"];
  const auto y = static_cast<size_t>(HeightAxis(layout)), x = y + 1;
  TensorRef data = c.Input(ImageShape(layout, n, h, w, channels));
  const std::vector<Axis> axes = NumberedAxes("ax", ImageShape(layout, n, 1, 1, channels));
  const bool max = kind == Kind::kMax;
  TensorRef pooled =
      c.b.Reduce(max ? "adaptive_pool_max" : "adaptive_pool_sum", axes, {{"rv0", h}, {"rv1", w}},
                 max ? Combiner::kMax : Combiner::kSum, [&](Vars v) {
                   std::vector<Value> index(v.begin(), v.begin() + 4);
                   index[y] = index[y] * h + v[4];
                   index[x] = index[x] * w + v[5];
                   return data.At(index);
                 });
  if (max) return pooled;
  auto old_size = [&](size_t axis, int64_t extent) {
    return fmt::format(
        "{0}((select((bool)1, ((ax{1} + 1)*{2}), (((ax{1} + 1)*{2}) + 1)) - (ax{1}*{2})))",
        TypeName(c.type), axis, extent);
  };
  Attrs attrs;
  attrs.hash_body = fmt::format("(adaptive_pool_sum[ax0, ax1, ax2, ax3]/({}*{}))", old_size(y, h),
                                old_size(x, w));
  return c.b.Compute(
      "adaptive_pool_avg", axes,
      [&](Vars v) {
        return pooled.At(v) / (c.b.Constant(static_cast<double>(h), c.type) *
                               c.b.Constant(static_cast<double>(w), c.type));
      },
      attrs);
}

std::vector<Parameter> ImageParameters() {
  return {{.name = "N", .doc = "batch"},
          {.name = "H", .doc = "input height"},
          {.name = "W", .doc = "input width"},
          {.name = "C", .doc = "channels"}};
}

OpInfo WindowOp(Layout layout, Kind kind) {
  std::vector<Parameter> parameters = ImageParameters();
  parameters.push_back({.name = "KH", .doc = "window height"});
  parameters.push_back({.name = "KW", .doc = "window width"});
  parameters.push_back({.name = "stride", .doc = "step of the window"});
  parameters.push_back({.name = "pad", .doc = "padding on each side", .min = 0});
  if (kind == Kind::kAvg) {
    parameters.push_back({.name = "count_include_pad",
                          .doc = "divide by the whole window, padding included",
                          .min = 0,
                          .max = 1,
                          .default_value = 0});
  }
  const bool nchw = layout == Layout::kNchw;
  return {
      .name =
          fmt::format("{}_pool2d_{}", kind == Kind::kMax ? "max" : "avg", nchw ? "nchw" : "nhwc"),
      .family = "pooling",
      .doc = fmt::format("{} of each window of [{}]", kind == Kind::kMax ? "maximum" : "average",
                         nchw ? "N, C, H, W" : "N, H, W, C"),
      .parameters = std::move(parameters),
      .channel_axis = nchw ? 1 : 3,
      .build = [=](OpContext& c) { return WindowPool(c, layout, kind); }};
}

OpInfo GlobalOp(Layout layout, Kind kind) {
  const bool nchw = layout == Layout::kNchw;
  return {.name = fmt::format("global_{}_pool2d_{}", kind == Kind::kMax ? "max" : "avg",
                              nchw ? "nchw" : "nhwc"),
          .family = "pooling",
          .doc = fmt::format("{} of each image of [{}]", kind == Kind::kMax ? "maximum" : "average",
                             nchw ? "N, C, H, W" : "N, H, W, C"),
          .parameters = ImageParameters(),
          .channel_axis = nchw ? 1 : 3,
          .build = [=](OpContext& c) { return GlobalPool(c, layout, kind); }};
}

}  // namespace

std::vector<OpInfo> PoolOps() {
  std::vector<OpInfo> ops;
  for (Kind kind : {Kind::kMax, Kind::kAvg}) {
    for (Layout layout : {Layout::kNchw, Layout::kNhwc}) ops.push_back(WindowOp(layout, kind));
  }
  for (Kind kind : {Kind::kMax, Kind::kAvg}) {
    for (Layout layout : {Layout::kNchw, Layout::kNhwc}) ops.push_back(GlobalOp(layout, kind));
  }
  return ops;
}

}  // namespace kiln::dag
