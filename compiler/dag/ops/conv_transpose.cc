// Transposed convolution: the gradient of a convolution, used to enlarge images.
//
// By definition it is a convolution of the image stretched by zeros, in which most products are
// with such a zero. The output has `stride` phases along each dimension. Each phase is computed as
// a convolution of the image itself, with the taps that meet the phase. With dilate=1 the
// definition itself is computed.
#include <algorithm>
#include <optional>

#include "base/numbers/integers.h"
#include "compiler/dag/ops/conv.h"

namespace kiln::dag {
namespace {

// Adds a condition to the earlier ones.
void Require(std::optional<Value>& all, const Value& condition) {
  all = all ? *all && condition : condition;
}

// Returns a name for each dimension of the image: "h", "rh", "ph", "h_c".
std::vector<std::string> ImageNames(int dims, std::string_view prefix, std::string_view suffix) {
  std::vector<std::string> names;
  for (const std::string& letter : ImageLetters(dims))
    names.push_back(fmt::format("{}{}{}", prefix, static_cast<char>(letter[0] + 32), suffix));
  return names;
}

std::vector<Axis> ImageAxes(std::string_view prefix, const std::vector<int64_t>& extents) {
  const std::vector<std::string> names = ImageNames(static_cast<int>(extents.size()), prefix, "");
  std::vector<Axis> axes;
  for (size_t d = 0; d < extents.size(); ++d) axes.push_back({names[d], extents[d]});
  return axes;
}

struct Transposed {
  OpContext& c;
  const ConvTransposeSpec& spec;
  const TensorRef &data, &weight;
  Layout layout = spec.layout;
  const Window& window = spec.window;
  size_t dims = window.dims();
  int64_t n = data.shape()[0];
  int64_t ci = data.shape()[static_cast<size_t>(layout.channel_axis())];
  int64_t group_co = weight.shape()[layout.channels_last ? dims + 1 : 1];
  std::vector<int64_t> in = layout.Image(data.shape());
  std::vector<int64_t> out = {};

  int64_t co() const { return group_co * spec.groups; }
  int64_t kernel(size_t d) const { return window.kernel[d]; }
  int64_t stride(size_t d) const { return window.strides[d]; }
  int64_t cut(size_t d) const { return window.before[d]; }
  // Zeros around the stretched input, which make a plain convolution. Negative: rows are cut off.
  int64_t Before(size_t d) const { return kernel(d) - 1 - window.before[d]; }
  int64_t After(size_t d) const { return kernel(d) - 1 - window.after[d] + spec.output_padding[d]; }

  // Returns the axes of the result in their order: batch, channels and `image`.
  std::vector<Axis> Axes(std::string_view batch, std::string_view channel,
                         const std::vector<Axis>& image) const {
    return Arrange<Axis>(layout, {std::string(batch), n}, {std::string(channel), co()}, image);
  }
  std::vector<Axis> Sum(std::string_view channel, std::string_view prefix,
                        const std::vector<int64_t>& taps) const {
    return ArrangeSum<Axis>(layout, {std::string(channel), ci / spec.groups},
                            ImageAxes(prefix, taps));
  }
  // Return the variable of the input channel in its group, and of a dimension of the window, in a
  // sum over `rank` axes.
  const Value& Channel(Vars v, size_t rank) const {
    return layout.channels_last ? v.back() : v[rank];
  }
  const Value& Tap(Vars v, size_t rank, size_t d) const {
    return v[rank + d + (layout.channels_last ? 0 : 1)];
  }
};

// Fails the context and returns false if an extent of the result is not positive or too large.
bool SetExtents(Transposed& t) {
  const std::vector<std::string> letters = ImageLetters(t.layout.dims);
  for (size_t d = 0; d < t.dims; ++d) {
    const __int128 stretched = static_cast<__int128>(t.in[d] - 1) * t.stride(d) + 1;
    const __int128 out = stretched + t.spec.output_padding[d] + t.window.Span(d) - 1 -
                         t.window.before[d] - t.window.after[d];
    if (out < 1 || out > kMaxExtent || stretched > kMaxExtent) {
      t.c.Fail(
          "{} = {} with stride {} and {} + {} cut off makes {} output rows or columns, expected 1 "
          "to {}",
          letters[d], t.in[d], t.stride(d), t.window.before[d], t.window.after[d],
          static_cast<int64_t>(std::min<__int128>(out, INT64_MAX)), kMaxExtent);
      return false;
    }
    t.out.push_back(static_cast<int64_t>(out));
  }
  return true;
}

// Returns the number among all input channels of channel rc in the group of output channel `co`.
// ChannelOfGroup returns the number of the output channel inside its group.
Value InputChannel(const Transposed& t, const Value& co, const Value& rc) {
  if (t.spec.groups == 1) return rc;
  return FloorDiv(co, t.group_co) * (t.ci / t.spec.groups) + rc;
}
Value ChannelOfGroup(const Transposed& t, const Value& co) {
  return t.spec.groups == 1 ? co : co % t.group_co;
}

// ---- the stretched image

// Returns element i of `x` stretched along the image, with zeros between the elements.
Value Stretched(const Transposed& t, const TensorRef& x, std::vector<Value> index) {
  std::optional<Value> on_grid;
  for (size_t d = 0; d < t.dims; ++d) {
    Value& at = index[t.layout.first() + d];
    if (t.stride(d) == 1) continue;
    Require(on_grid, at % t.stride(d) == 0);
    at = FloorDiv(at, t.stride(d));
  }
  if (!on_grid) return x.At(index);
  return If(*on_grid, x.At(index), t.c.b.Constant(0, x.type()));
}

// For layouts with the channels in front. The stretched image and the turned kernel are stages of
// their own.
TensorRef StretchedFirst(const Transposed& t) {
  OpContext& c = t.c;
  std::vector<int64_t> stretched_image, before, after;
  for (size_t d = 0; d < t.dims; ++d) {
    stretched_image.push_back((t.in[d] - 1) * t.stride(d) + 1);
    before.push_back(t.Before(d));
    after.push_back(t.After(d));
  }
  TensorRef stretched =
      c.b.Compute("data_dilate", NumberedAxes("i", Arrange(t.layout, t.n, t.ci, stretched_image)),
                  [&](Vars i) { return Stretched(t, t.data, {i.begin(), i.end()}); });
  const Padding padding{Arrange<int64_t>(t.layout, 0, 0, before),
                        Arrange<int64_t>(t.layout, 0, 0, after)};
  TensorRef padded = Pad(c, stretched, "data_pad", "i", padding, /*always=*/true);
  TensorRef turned = c.b.Compute(
      "kernel_transform",
      ArrangeWeight<Axis>(t.layout, {"o", t.co()}, {"i", t.ci}, ImageAxes("", t.window.kernel)),
      [&](Vars i) {
        std::vector<Value> index = {i[1], i[0]};
        for (size_t d = 0; d < t.dims; ++d) index.push_back(t.kernel(d) - 1 - i[2 + d]);
        return t.weight.At(index);
      });
  return c.b.Reduce("compute", t.Axes("b", "c", ImageAxes("", t.out)),
                    t.Sum("dc", "d", t.window.kernel), Combiner::kSum, [&](Vars i) {
                      const size_t rank = t.dims + 2;
                      std::vector<Value> at = {i[0], i[rank]}, tap = {i[1], i[rank]};
                      for (size_t d = 0; d < t.dims; ++d) {
                        at.push_back(i[2 + d] + t.Tap(i, rank, d));
                        tap.push_back(t.Tap(i, rank, d));
                      }
                      return c.Widen(padded.At(at)) * c.Widen(turned.At(tap));
                    });
}

// For layouts with the channels behind. The stretching stands inside the sum, where unrolled loops
// drop the products with zeros.
TensorRef StretchedLast(const Transposed& t) {
  OpContext& c = t.c;
  const auto blocks = [&](size_t d, int64_t zeros) { return CeilDiv(zeros, t.stride(d)); };
  // Whole blocks were padded. The surplus is the number of zeros that are too many.
  const auto surplus = [&](size_t d) { return blocks(d, t.Before(d)) * t.stride(d) - t.Before(d); };
  std::vector<int64_t> before, after;
  for (size_t d = 0; d < t.dims; ++d) {
    before.push_back(blocks(d, t.Before(d)));
    after.push_back(blocks(d, t.After(d)));
  }
  const Padding padding{Arrange<int64_t>(t.layout, 0, 0, before),
                        Arrange<int64_t>(t.layout, 0, 0, after)};
  TensorRef padded = Pad(c, t.data, "PadInput", "i", padding, /*always=*/true);
  Attrs attrs;
  for (const auto& [prefix, suffix] : {std::pair("", ""), std::pair("r", ""), std::pair("", "_c")})
    for (std::string& name : ImageNames(t.layout.dims, prefix, suffix))
      attrs.always_unroll_inner.push_back(std::move(name));
  return c.b.Reduce(
      fmt::format("conv{}d_transpose_{}", t.dims, t.layout.Name()),
      t.Axes("n", "co", ImageAxes("", t.out)), t.Sum("rc", "r", t.window.kernel), Combiner::kSum,
      [&](Vars i) {
        const size_t rank = t.dims + 2;
        std::vector<Value> at = {i[0]}, tap;
        for (size_t d = 0; d < t.dims; ++d) {
          at.push_back(i[1 + d] + t.Tap(i, rank, d) + surplus(d));
          tap.push_back(t.kernel(d) - 1 - t.Tap(i, rank, d));
        }
        at.push_back(i.back());
        tap.insert(tap.end(), {i.back(), i[rank - 1]});
        return c.Widen(Stretched(t, padded, at)) * c.Widen(t.weight.At(tap));
      },
      attrs);
}

// ---- the phases

// Output row y = stride * q + phase is the sum over taps t of input row q + FirstRow(phase) + t
// times kernel row Tap(phase, t).
struct Phases {
  const Transposed& v;

  int64_t Taps(size_t d) const { return CeilDiv(v.kernel(d), v.stride(d)); }
  int64_t Rows(size_t d) const { return CeilDiv(v.out[d], v.stride(d)); }
  // Zeros around the image.
  int64_t Before(size_t d) const {
    return std::max<int64_t>(0, Taps(d) - 1 - v.cut(d) / v.stride(d));
  }
  int64_t After(size_t d) const {
    const int64_t last = Rows(d) - 1 + (v.stride(d) - 1 + v.cut(d)) / v.stride(d);
    return std::max<int64_t>(0, last - (v.in[d] - 1));
  }
  // Returns the row in the padded image.
  Value Row(size_t d, const Value& q, const Value& phase, const Value& t) const {
    return q + FloorDiv(phase + v.cut(d), v.stride(d)) + t + (Before(d) - (Taps(d) - 1));
  }
  Value Tap(size_t d, const Value& phase, const Value& t) const {
    return (phase + v.cut(d)) % v.stride(d) + ((Taps(d) - 1) - t) * v.stride(d);
  }
  // Returns the weight at these taps, and 0 if the phase has fewer taps than others.
  Value Weight(const std::vector<Value>& index, const std::vector<Value>& taps) const {
    std::optional<Value> inside;
    for (size_t d = 0; d < v.dims; ++d) {
      if (v.kernel(d) % v.stride(d) != 0) Require(inside, taps[d] < v.kernel(d));
    }
    const Value at = v.weight.At(index);
    return inside ? If(*inside, at, v.c.b.Constant(0, v.weight.type())) : at;
  }
};

// The rows and phases of a dimension side by side, as they make up the image.
std::vector<Axis> PhaseAxes(const Phases& p) {
  const Transposed& t = p.v;
  const std::vector<std::string> rows = ImageNames(t.layout.dims, "", ""),
                                 phases = ImageNames(t.layout.dims, "p", "");
  std::vector<Axis> axes;
  for (size_t d = 0; d < t.dims; ++d) {
    axes.push_back({rows[d], p.Rows(d)});
    axes.push_back({phases[d], t.stride(d)});
  }
  return axes;
}

TensorRef ByPhases(const Transposed& t) {
  OpContext& c = t.c;
  const Phases p{t};
  std::vector<int64_t> before, after, taps;
  for (size_t d = 0; d < t.dims; ++d) {
    before.push_back(p.Before(d));
    after.push_back(p.After(d));
    taps.push_back(p.Taps(d));
  }
  const Padding padding{Arrange<int64_t>(t.layout, 0, 0, before),
                        Arrange<int64_t>(t.layout, 0, 0, after)};
  TensorRef padded = Pad(c, t.data, t.layout.channels_last ? "PadInput" : "data_pad", "i", padding,
                         /*always=*/true);
  const size_t rank = 2 * t.dims + 2, first = t.layout.first();
  TensorRef phases = c.b.Reduce(
      fmt::format("conv{}d_transpose_phases", t.dims), t.Axes("n", "co", PhaseAxes(p)),
      t.Sum("rc", "r", taps), Combiner::kSum, [&](Vars i) {
        const Value& co = t.layout.channels_last ? i[rank - 1] : i[1];
        const Value channel = InputChannel(t, co, t.Channel(i, rank));
        std::vector<Value> rows, at;
        for (size_t d = 0; d < t.dims; ++d) {
          const Value &row = i[first + 2 * d], &phase = i[first + 2 * d + 1];
          rows.push_back(p.Row(d, row, phase, t.Tap(i, rank, d)));
          at.push_back(p.Tap(d, phase, t.Tap(i, rank, d)));
        }
        return c.Widen(padded.At(Arrange(t.layout, i[0], channel, rows))) *
               c.Widen(p.Weight(ArrangeWeight(t.layout, channel, ChannelOfGroup(t, co), at), at));
      });
  return c.b.Compute(fmt::format("conv{}d_transpose_{}", t.dims, t.layout.Name()),
                     t.Axes("n", "co", ImageAxes("", t.out)), [&](Vars i) {
                       std::vector<Value> at;
                       for (size_t d = 0; d < t.dims; ++d) {
                         at.push_back(FloorDiv(i[first + d], t.stride(d)));
                         at.push_back(i[first + d] % t.stride(d));
                       }
                       return phases.At(Arrange(
                           t.layout, i[0], i[static_cast<size_t>(t.layout.channel_axis())], at));
                     });
}

// ---- dilated kernels

// Computes the definition for each output: row y takes from the input row i for which i * stride is
// y minus the distance of tap t. Taps of a dilated kernel that meet a phase are not evenly spaced.
TensorRef Gathered(const Transposed& t) {
  OpContext& c = t.c;
  const size_t rank = t.dims + 2, first = t.layout.first();
  return c.b.Reduce(
      fmt::format("conv{}d_transpose_{}", t.dims, t.layout.Name()),
      t.Axes("n", "co", ImageAxes("", t.out)), t.Sum("rc", "r", t.window.kernel), Combiner::kSum,
      [&](Vars i) {
        const Value& co = i[static_cast<size_t>(t.layout.channel_axis())];
        const Value channel = InputChannel(t, co, t.Channel(i, rank));
        std::vector<Value> rows, taps;
        std::optional<Value> inside;
        for (size_t d = 0; d < t.dims; ++d) {
          taps.push_back(t.Tap(i, rank, d));
          const Value at = i[first + d] + t.cut(d) - taps[d] * t.window.dilations[d];
          Require(inside, at >= 0);
          Require(inside, at < (t.in[d] - 1) * t.stride(d) + 1);
          if (t.stride(d) > 1) Require(inside, at % t.stride(d) == 0);
          rows.push_back(FloorDiv(at, t.stride(d)));
        }
        const Value element = If(*inside, t.data.At(Arrange(t.layout, i[0], channel, rows)),
                                 c.b.Constant(0, t.data.type()));
        return c.Widen(element) *
               c.Widen(t.weight.At(ArrangeWeight(t.layout, channel, ChannelOfGroup(t, co), taps)));
      });
}

}  // namespace

TensorRef WriteConvTranspose(OpContext& c, const ConvTransposeSpec& spec, const TensorRef& data,
                             const TensorRef& weight) {
  Transposed t{c, spec, data, weight};
  if (!SetExtents(t)) return data;
  const auto is_dilated = [](int64_t dilation) { return dilation != 1; };
  if (std::ranges::any_of(spec.window.dilations, is_dilated)) return Gathered(t);
  if (!spec.stretch || spec.groups != 1) return ByPhases(t);
  return spec.layout.channels_last ? StretchedLast(t) : StretchedFirst(t);
}

namespace {

TensorRef ConvTranspose(OpContext& c, Layout layout) {
  const std::vector<int64_t> kernel = ReadExtents(c, layout.dims, "K");
  const int64_t stride = c.args["stride"];
  int64_t pad = c.args["pad"], output_pad = c.args["output_pad"];
  if (pad >= kernel[0] || pad >= kernel[1]) {
    c.Fail("pad = {} must be smaller than the kernel {}x{}", pad, kernel[0], kernel[1]);
    pad = 0;
  }
  if (output_pad >= stride) {
    c.Fail("output_pad = {} must be smaller than stride = {}", output_pad, stride);
    output_pad = 0;
  }
  const ConvTransposeSpec spec{.layout = layout,
                               .window = Window::Uniform(kernel, stride, pad, 1),
                               .output_padding = {output_pad, output_pad},
                               .stretch = c.args["dilate"] != 0 || stride == 1};
  TensorRef data =
      c.Input(Arrange(layout, c.args["N"], c.args["CI"], ReadExtents(c, layout.dims, "")));
  TensorRef weight = c.Input(ArrangeWeight(layout, c.args["CI"], c.args["CO"], kernel));
  return WriteConvTranspose(c, spec, data, weight);
}

OpInfo Info(Layout layout) {
  std::vector<Parameter> parameters = ImageParameters(2);
  parameters.push_back({.name = "CO", .doc = "output channels"});
  parameters.push_back({.name = "CI", .doc = "input channels"});
  AddExtents(parameters, 2, "K", "kernel");
  parameters.push_back({.name = "stride", .doc = "factor by which the image grows"});
  parameters.push_back({.name = "pad", .doc = "rows and columns cut off on each side", .min = 0});
  parameters.push_back({.name = "output_pad",
                        .doc = "rows and columns more at the bottom and right",
                        .min = 0,
                        .default_value = 0});
  parameters.push_back({.name = "dilate",
                        .doc = "1: the image is stretched by zeros, as in older logs",
                        .min = 0,
                        .max = 1,
                        .default_value = 0});
  return {.name = "conv2d_transpose_" + layout.Name(),
          .family = "convolutions",
          .doc = fmt::format("transposed convolution of {} with {}",
                             layout.channels_last ? "[N, H, W, CI]" : "[N, CI, H, W]",
                             layout.channels_last ? "[KH, KW, CI, CO]" : "[CI, CO, KH, KW]"),
          .parameters = std::move(parameters),
          .channel_axis = layout.channel_axis(),
          .build = [layout](OpContext& c) { return ConvTranspose(c, layout); }};
}

}  // namespace

std::vector<OpInfo> ConvTransposeOps() { return {Info({2, false}), Info({2, true})}; }

}  // namespace kiln::dag
