// Transposed 2-D convolution: the gradient of a convolution, used to enlarge images.
//
// Its definition is a convolution of the image stretched by zeros. Most products are with such a
// zero; so each of the stride * stride phases of the output is computed as a convolution of the
// image itself, with the taps that meet it. dilate=1 is the definition as it stands.
#include <algorithm>
#include <optional>

#include "base/integers.h"
#include "compiler/dag/ops/image.h"

namespace kiln::dag {
namespace {

struct Transposed {
  int64_t n, co, ci, stride, pad, output_pad;
  bool dilate;                           // or by phases
  std::vector<int64_t> in, kernel, out;  // {height, width}
  // Zeros around the stretched input, which make it a plain convolution.
  int64_t Before(size_t d) const { return kernel[d] - 1 - pad; }
  int64_t After(size_t d) const { return kernel[d] - 1 - pad + output_pad; }
};

Transposed Read(OpContext& c) {
  Transposed v{.n = c.args["N"],
               .co = c.args["CO"],
               .ci = c.args["CI"],
               .stride = c.args["stride"],
               .pad = c.args["pad"],
               .output_pad = c.args["output_pad"],
               .dilate = c.args["dilate"] != 0 || c.args["stride"] == 1,
               .in = ReadExtents(c, 2, ""),
               .kernel = ReadExtents(c, 2, "K"),
               .out = {}};
  if (v.pad >= v.kernel[0] || v.pad >= v.kernel[1]) {
    c.Fail("pad = {} must be smaller than the kernel {}x{}", v.pad, v.kernel[0], v.kernel[1]);
    v.pad = 0;
  }
  if (v.output_pad >= v.stride) {
    c.Fail("output_pad = {} must be smaller than stride = {}", v.output_pad, v.stride);
    v.output_pad = 0;
  }
  const std::vector<std::string> letters = ImageLetters(2);
  for (size_t d = 0; d < 2; ++d) {
    const __int128 stretched = static_cast<__int128>(v.in[d] - 1) * v.stride + 1;
    const __int128 out = stretched + v.Before(d) + v.After(d) - v.kernel[d] + 1;
    if (out < 1 || stretched > kMaxExtent) {
      c.Fail("{} = {} with stride {} and pad {} makes {} output rows or columns, expected 1 to {}",
             letters[d], v.in[d], v.stride, v.pad, static_cast<int64_t>(out), kMaxExtent);
    }
    v.out.push_back(out < 1 || stretched > kMaxExtent ? 1 : static_cast<int64_t>(out));
  }
  return v;
}

// Element i of `x` stretched along two axes: zeros between its elements.
Value Stretched(OpContext& c, const TensorRef& x, std::vector<Value> index, size_t first,
                int64_t stride) {
  if (stride == 1) return x.At(index);
  const Value on_grid = index[first] % stride == 0 && index[first + 1] % stride == 0;
  for (size_t d = first; d < first + 2; ++d) index[d] = FloorDiv(index[d], stride);
  return If(on_grid, x.At(index), c.b.Constant(0, x.type()));
}

// Output row y = stride * q + phase is the sum over taps t of input row q + FirstRow(phase) + t
// times kernel row Tap(phase, t).
struct Phases {
  const Transposed& v;

  int64_t Taps(size_t d) const { return CeilDiv(v.kernel[d], v.stride); }
  int64_t Rows(size_t d) const { return CeilDiv(v.out[d], v.stride); }
  // Zeros around the image.
  int64_t Before(size_t d) const { return std::max<int64_t>(0, Taps(d) - 1 - v.pad / v.stride); }
  int64_t After(size_t d) const {
    const int64_t last = Rows(d) - 1 + (v.stride - 1 + v.pad) / v.stride;
    return std::max<int64_t>(0, last - (v.in[d] - 1));
  }
  // In the padded image.
  Value Row(size_t d, const Value& q, const Value& phase, const Value& t) const {
    return q + FloorDiv(phase + v.pad, v.stride) + t + (Before(d) - (Taps(d) - 1));
  }
  Value Tap(size_t d, const Value& phase, const Value& t) const {
    return (phase + v.pad) % v.stride + ((Taps(d) - 1) - t) * v.stride;
  }
  // The weight at these taps; 0 where a phase has fewer than others.
  Value Weight(OpContext& c, const TensorRef& weight, const std::vector<Value>& index,
               const Value& y, const Value& x) const {
    std::optional<Value> inside;
    for (size_t d = 0; d < 2; ++d) {
      if (v.kernel[d] % v.stride == 0) continue;
      const Value has = (d == 0 ? y : x) < v.kernel[d];
      inside = inside ? *inside && has : has;
    }
    const Value at = weight.At(index);
    return inside ? If(*inside, at, c.b.Constant(0, weight.type())) : at;
  }
};

// The phases of an image, rows and columns apart, as the image that they make up.
std::vector<Value> PhaseIndex(const Value& y, const Value& x, int64_t stride) {
  return {FloorDiv(y, stride), y % stride, FloorDiv(x, stride), x % stride};
}

TensorRef NchwByPhases(OpContext& c, const Transposed& v) {
  const Phases p{v};
  TensorRef data = c.Input({v.n, v.ci, v.in[0], v.in[1]});
  TensorRef padded = Pad(c, data, "data_pad", "i",
                         {{0, 0, p.Before(0), p.Before(1)}, {0, 0, p.After(0), p.After(1)}},
                         /*always=*/true);
  TensorRef weight = c.Input({v.ci, v.co, v.kernel[0], v.kernel[1]});
  TensorRef phases = c.b.Reduce(
      "conv2d_transpose_phases",
      {{"n", v.n},
       {"co", v.co},
       {"h", p.Rows(0)},
       {"ph", v.stride},
       {"w", p.Rows(1)},
       {"pw", v.stride}},
      {{"rc", v.ci}, {"rh", p.Taps(0)}, {"rw", p.Taps(1)}}, Combiner::kSum, [&](Vars i) {
        const Value y = p.Tap(0, i[3], i[7]), x = p.Tap(1, i[5], i[8]);
        return c.Widen(padded(i[0], i[6], p.Row(0, i[2], i[3], i[7]), p.Row(1, i[4], i[5], i[8]))) *
               c.Widen(p.Weight(c, weight, {i[6], i[1], y, x}, y, x));
      });
  return c.b.Compute("conv2d_transpose_nchw",
                     {{"n", v.n}, {"co", v.co}, {"h", v.out[0]}, {"w", v.out[1]}}, [&](Vars i) {
                       const std::vector<Value> at = PhaseIndex(i[2], i[3], v.stride);
                       return phases(i[0], i[1], at[0], at[1], at[2], at[3]);
                     });
}

TensorRef NhwcByPhases(OpContext& c, const Transposed& v) {
  const Phases p{v};
  TensorRef data = c.Input({v.n, v.in[0], v.in[1], v.ci});
  TensorRef padded = Pad(c, data, "PadInput", "i",
                         {{0, p.Before(0), p.Before(1), 0}, {0, p.After(0), p.After(1), 0}},
                         /*always=*/true);
  TensorRef weight = c.Input({v.kernel[0], v.kernel[1], v.ci, v.co});
  TensorRef phases = c.b.Reduce(
      "conv2d_transpose_phases",
      {{"n", v.n},
       {"h", p.Rows(0)},
       {"ph", v.stride},
       {"w", p.Rows(1)},
       {"pw", v.stride},
       {"co", v.co}},
      {{"rh", p.Taps(0)}, {"rw", p.Taps(1)}, {"rc", v.ci}}, Combiner::kSum, [&](Vars i) {
        const Value y = p.Tap(0, i[2], i[6]), x = p.Tap(1, i[4], i[7]);
        return c.Widen(padded(i[0], p.Row(0, i[1], i[2], i[6]), p.Row(1, i[3], i[4], i[7]), i[8])) *
               c.Widen(p.Weight(c, weight, {y, x, i[8], i[5]}, y, x));
      });
  return c.b.Compute("conv2d_transpose_nhwc",
                     {{"n", v.n}, {"h", v.out[0]}, {"w", v.out[1]}, {"co", v.co}}, [&](Vars i) {
                       const std::vector<Value> at = PhaseIndex(i[1], i[2], v.stride);
                       return phases(i[0], at[0], at[1], at[2], at[3], i[3]);
                     });
}

TensorRef Nchw(OpContext& c) {
  const Transposed v = Read(c);
  if (!v.dilate) return NchwByPhases(c, v);
  TensorRef data = c.Input({v.n, v.ci, v.in[0], v.in[1]});
  const std::vector<int64_t> shape = {v.n, v.ci, (v.in[0] - 1) * v.stride + 1,
                                      (v.in[1] - 1) * v.stride + 1};
  TensorRef stretched = c.b.Compute("data_dilate", NumberedAxes("i", shape), [&](Vars i) {
    return Stretched(c, data, {i.begin(), i.end()}, 2, v.stride);
  });
  TensorRef padded = Pad(c, stretched, "data_pad", "i",
                         {{0, 0, v.Before(0), v.Before(1)}, {0, 0, v.After(0), v.After(1)}},
                         /*always=*/true);
  TensorRef weight = c.Input({v.ci, v.co, v.kernel[0], v.kernel[1]});
  TensorRef turned = c.b.Compute(
      "kernel_transform", {{"o", v.co}, {"i", v.ci}, {"h", v.kernel[0]}, {"w", v.kernel[1]}},
      [&](Vars i) { return weight(i[1], i[0], v.kernel[0] - 1 - i[2], v.kernel[1] - 1 - i[3]); });
  return c.b.Reduce("compute", {{"b", v.n}, {"c", v.co}, {"h", v.out[0]}, {"w", v.out[1]}},
                    {{"dc", v.ci}, {"dh", v.kernel[0]}, {"dw", v.kernel[1]}}, Combiner::kSum,
                    [&](Vars i) {
                      return c.Widen(padded(i[0], i[4], i[2] + i[5], i[3] + i[6])) *
                             c.Widen(turned(i[1], i[4], i[5], i[6]));
                    });
}

// The stretching stands inside the sum, where unrolled loops drop the products with zeros.
TensorRef Nhwc(OpContext& c) {
  const Transposed v = Read(c);
  if (!v.dilate) return NhwcByPhases(c, v);
  TensorRef data = c.Input({v.n, v.in[0], v.in[1], v.ci});
  auto blocks = [&](int64_t zeros) { return CeilDiv(zeros, v.stride); };
  TensorRef padded = Pad(c, data, "PadInput", "i",
                         {{0, blocks(v.Before(0)), blocks(v.Before(1)), 0},
                          {0, blocks(v.After(0)), blocks(v.After(1)), 0}},
                         /*always=*/true);
  // Whole blocks were padded: so many of the zeros are too many.
  auto surplus = [&](size_t d) { return blocks(v.Before(d)) * v.stride - v.Before(d); };
  TensorRef weight = c.Input({v.kernel[0], v.kernel[1], v.ci, v.co});
  return c.b.Reduce(
      "conv2d_transpose_nhwc", {{"n", v.n}, {"h", v.out[0]}, {"w", v.out[1]}, {"co", v.co}},
      {{"rh", v.kernel[0]}, {"rw", v.kernel[1]}, {"rc", v.ci}}, Combiner::kSum,
      [&](Vars i) {
        const Value &h = i[1], &w = i[2], &rh = i[4], &rw = i[5], &rc = i[6];
        return c.Widen(Stretched(c, padded, {i[0], h + rh + surplus(0), w + rw + surplus(1), rc}, 1,
                                 v.stride)) *
               c.Widen(weight(v.kernel[0] - 1 - rh, v.kernel[1] - 1 - rw, rc, i[3]));
      },
      {.always_unroll_inner = {"h", "w", "rh", "rw", "h_c", "w_c"}});
}

std::vector<Parameter> Parameters() {
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
  return parameters;
}

}  // namespace

std::vector<OpInfo> ConvTransposeOps() {
  return {
      {.name = "conv2d_transpose_nchw",
       .family = "convolutions",
       .doc = "transposed convolution of [N, CI, H, W] with [CI, CO, KH, KW]",
       .parameters = Parameters(),
       .channel_axis = 1,
       .build = Nchw},
      {.name = "conv2d_transpose_nhwc",
       .family = "convolutions",
       .doc = "transposed convolution of [N, H, W, CI] with [KH, KW, CI, CO]",
       .parameters = Parameters(),
       .channel_axis = 3,
       .build = Nhwc},
  };
}

}  // namespace kiln::dag
