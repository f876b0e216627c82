// 2-D pooling over windows.
#include "compiler/dag/ops/pool.h"

#include <limits>

#include "compiler/dag/ops/image.h"

namespace kiln::dag {

double LowestValue(ir::Type type) {
  if (type == ir::kFloat16) return -65504.0;
  if (type == ir::kFloat64) return std::numeric_limits<double>::lowest();
  if (type.is_float()) return std::numeric_limits<float>::lowest();
  return type == ir::kInt8 ? -128.0 : static_cast<double>(std::numeric_limits<int32_t>::lowest());
}

namespace {

// Number of input elements that the window at `out` covers along one axis.
Value Covered(const Value& out, int64_t stride, int64_t pad, int64_t kernel, int64_t extent) {
  const Value start = out * stride - pad;
  return Min(start + kernel, extent) - Max(start, 0);
}

TensorRef WindowPool(OpContext& c, Layout layout, PoolKind kind) {
  const int64_t n = c.args["N"], h = c.args["H"], w = c.args["W"], channels = c.args["C"];
  const int64_t kh = c.args["KH"], kw = c.args["KW"], stride = c.args["stride"],
                pad = c.args["pad"];
  if (kind == PoolKind::kAvg) c.RequireFloat();
  const int64_t oh = WindowExtent(c, "H", h, 2 * pad, kh, stride, 1);
  const int64_t ow = WindowExtent(c, "W", w, 2 * pad, kw, stride, 1);
  if (pad >= kh || pad >= kw) {
    c.Fail("pad = {} must be smaller than the kernel {}x{}: a window may not be all padding", pad,
           kh, kw);
  }
  const size_t y = layout.first(), x = y + 1;
  const std::vector<int64_t> pads = Arrange<int64_t>(layout, 0, 0, {pad, pad});

  TensorRef data = c.Input(Arrange<int64_t>(layout, n, channels, {h, w}));
  const double fill = kind == PoolKind::kMax ? LowestValue(c.type) : 0;
  TensorRef padded = Pad(c, data, "pad_temp", "ax", {pads, pads, fill}, /*always=*/false);
  const std::vector<Axis> axes =
      NumberedAxes("ax", Arrange<int64_t>(layout, n, channels, {oh, ow}));
  TensorRef pooled =
      c.b.Reduce(kind == PoolKind::kMax ? "pool_max" : "pool_sum", axes, {{"rv0", kh}, {"rv1", kw}},
                 kind == PoolKind::kMax ? Combiner::kMax : Combiner::kSum, [&](Vars v) {
                   std::vector<Value> index(v.begin(), v.begin() + 4);
                   index[y] = index[y] * stride + v[4];
                   index[x] = index[x] * stride + v[5];
                   return padded.At(index);
                 });
  if (kind == PoolKind::kMax) return pooled;
  return c.b.Compute("pool_avg", axes, [&](Vars v) {
    if (c.args["count_include_pad"] != 0 || pad == 0) return pooled.At(v) / (kh * kw);
    const Value count = Covered(v[y], stride, pad, kh, h) * Covered(v[x], stride, pad, kw, w);
    return pooled.At(v) / Cast(c.type, Max(count, 1));
  });
}

OpInfo WindowOp(Layout layout, PoolKind kind) {
  std::vector<Parameter> parameters = ImageParameters(layout.dims);
  parameters.push_back({.name = "C", .doc = "channels"});
  AddExtents(parameters, layout.dims, "K", "window");
  parameters.push_back({.name = "stride", .doc = "step of the window"});
  parameters.push_back({.name = "pad", .doc = "padding on each side", .min = 0});
  if (kind == PoolKind::kAvg) {
    parameters.push_back({.name = "count_include_pad",
                          .doc = "divide by the whole window, padding included",
                          .min = 0,
                          .max = 1,
                          .default_value = 0});
  }
  const bool max = kind == PoolKind::kMax;
  return {.name = fmt::format("{}_pool2d_{}", max ? "max" : "avg", layout.Name()),
          .family = "pooling",
          .doc = fmt::format("{} of each window of [{}]", max ? "maximum" : "average",
                             layout.ShapeDoc()),
          .parameters = std::move(parameters),
          .channel_axis = layout.channel_axis(),
          .build = [=](OpContext& c) { return WindowPool(c, layout, kind); }};
}

}  // namespace

std::vector<OpInfo> PoolOps() {
  std::vector<OpInfo> ops;
  for (PoolKind kind : {PoolKind::kMax, PoolKind::kAvg}) {
    for (bool last : {false, true}) ops.push_back(WindowOp({2, last}, kind));
  }
  return ops;
}

}  // namespace kiln::dag
