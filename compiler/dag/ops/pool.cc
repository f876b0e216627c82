// 2-D pooling over windows.
#include "compiler/dag/ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/integers.h"
#include "compiler/ir/scalar.h"

namespace kiln::dag {

double LowestValue(ir::Type type) {
  if (type.is_float()) return -std::numeric_limits<double>::infinity();
  if (type.is_unsigned()) return 0;
  return -std::ldexp(1.0, type.bits - 1);
}

namespace {

// Counts the windows along one dimension if the last one may reach past the padded image.
int64_t CountUp(OpContext& c, const PoolSpec& spec, size_t d, int64_t extent) {
  const Window& w = spec.window;
  const int64_t padded = extent + w.before[d] + w.after[d];
  const int64_t stride = w.strides[d];
  if (padded + stride - 1 < w.Span(d)) {
    c.Fail("a window spans {} along {}, but the padded input has only {}", w.Span(d),
           ImageLetters(spec.layout.dims)[d], padded);
    return 1;
  }
  const int64_t count = (padded - w.Span(d) + stride - 1) / stride + 1;
  return (count - 1) * stride >= extent + w.before[d] ? count - 1 : count;
}

std::string Crossed(const std::vector<int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

// Returns how far the last window reaches past the padded image, or 0.
int64_t Overrun(const Window& w, size_t d, int64_t extent, int64_t count) {
  const int64_t end = (count - 1) * w.strides[d] + w.Span(d);
  return std::max<int64_t>(0, end - (extent + w.before[d] + w.after[d]));
}

// Returns the number of elements, of the `extent` elements from `begin` on, that the window at
// `out` covers along one dimension of the padded image.
Value Covered(const Window& w, size_t d, const Value& out, int64_t begin, int64_t extent) {
  const Value start = out * w.strides[d] - begin;
  const int64_t kernel = w.kernel[d], dilation = w.dilations[d];
  if (dilation == 1) return Min(start + kernel, extent) - Max(start, 0);
  // Element number i is at start + i * dilation.
  const auto below = [&](const Value& bound) { return FloorDiv(bound + (dilation - 1), dilation); };
  return Max(Min(below(extent - start), kernel) - Max(below(0 - start), 0), 0);
}

// Returns the number of elements in an average, which is a constant if all windows cover the same
// number.
Value Divisor(OpContext& c, const PoolSpec& spec, const std::vector<int64_t>& in,
              const std::vector<int64_t>& out, Vars v) {
  const Window& w = spec.window;
  int64_t whole = 1;
  std::optional<Value> covered;
  for (size_t d = 0; d < w.dims(); ++d) {
    const bool padded = w.before[d] > 0 || w.after[d] > 0;
    const bool overruns = Overrun(w, d, in[d], out[d]) > 0;
    if (!overruns && (!padded || spec.count_include_pad)) {
      whole = MultiplyCounts(whole, w.kernel[d]);
      continue;
    }
    const Value& o = v[spec.layout.first() + d];
    const Value here = spec.count_include_pad
                           ? Covered(w, d, o, 0, in[d] + w.before[d] + w.after[d])
                           : Covered(w, d, o, w.before[d], in[d]);
    covered = covered ? *covered * here : here;
  }
  if (!covered) return whole;
  return Cast(c.out_type, Max(whole == 1 ? *covered : *covered * whole, 1));
}

}  // namespace

std::vector<int64_t> PoolExtents(OpContext& c, const PoolSpec& spec,
                                 const std::vector<int64_t>& image) {
  const Window& w = spec.window;
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t pad = std::max(w.before[d], w.after[d]);
    if (pad < w.Span(d)) continue;
    c.Fail("pad = {} must be smaller than the {} {}: a window may not be all padding", pad,
           w.Span(d) == w.kernel[d] ? "kernel" : "dilated kernel", Crossed(w.kernel));
  }
  if (!spec.ceil) return w.Count(c, image);
  std::vector<int64_t> count;
  for (size_t d = 0; d < w.dims(); ++d) count.push_back(CountUp(c, spec, d, image[d]));
  return count;
}

TensorRef WritePool(OpContext& c, const PoolSpec& spec, PoolKind kind, const TensorRef& data) {
  const auto& [layout, window, ceil, count_include_pad] = spec;
  const bool max = kind == PoolKind::kMax;
  if (!max) c.RequireFloat();
  const std::vector<int64_t> in = layout.Image(data.shape());
  const std::vector<int64_t> out = PoolExtents(c, spec, in);
  if (!c.b.status().ok()) return data;
  Padding padding = window.PaddingOf(layout, max ? LowestValue(c.type) : 0);
  for (size_t d = 0; d < out.size(); ++d)
    padding.after[layout.first() + d] += Overrun(window, d, in[d], out[d]);

  TensorRef padded = Pad(c, data, "pad_temp", "ax", padding, /*always=*/false);
  const int64_t channels = data.shape()[static_cast<size_t>(layout.channel_axis())];
  const std::vector<Axis> axes =
      NumberedAxes("ax", Arrange(layout, data.shape()[0], channels, out));
  TensorRef pooled =
      c.b.Reduce(max ? "pool_max" : "pool_sum", axes, NumberedAxes("rv", window.kernel),
                 max ? Combiner::kMax : Combiner::kSum, [&](Vars v) {
                   const size_t rank = window.dims() + 2;
                   std::vector<Value> index(v.begin(), v.begin() + static_cast<int>(rank));
                   for (size_t d = 0; d < window.dims(); ++d) {
                     Value& at = index[layout.first() + d];
                     at = window.Position(d, at, v[rank + d]);
                   }
                   return max ? padded.At(index) : c.Widen(padded.At(index));
                 });
  if (max) return pooled;
  return c.b.Compute("pool_avg", axes, [&](Vars v) {
    return Cast(c.type, pooled.At(v) / Divisor(c, spec, in, out, v));
  });
}

namespace {

TensorRef WindowPool(OpContext& c, Layout layout, PoolKind kind) {
  const PoolSpec spec{
      .layout = layout,
      .window =
          Window::Uniform(ReadExtents(c, layout.dims, "K"), c.args["stride"], c.args["pad"], 1),
      .count_include_pad = kind == PoolKind::kAvg && c.args["count_include_pad"] != 0};
  TensorRef data =
      c.Input(Arrange(layout, c.args["N"], c.args["C"], ReadExtents(c, layout.dims, "")));
  return WritePool(c, spec, kind, data);
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
