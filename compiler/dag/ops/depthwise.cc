// Depthwise 2-D convolution: every channel has kernels of its own.
#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

struct Depthwise {
  int64_t n, h, w, ch, kh, kw, stride, pad, dilation, multiplier;
  int64_t oh, ow;
};

Depthwise Read(OpContext& c) {
  Depthwise v{.n = c.args["N"],
              .h = c.args["H"],
              .w = c.args["W"],
              .ch = c.args["C"],
              .kh = c.args["KH"],
              .kw = c.args["KW"],
              .stride = c.args["stride"],
              .pad = c.args["pad"],
              .dilation = c.args["dilation"],
              .multiplier = c.args["multiplier"],
              .oh = 1,
              .ow = 1};
  v.oh = WindowExtent(c, "H", v.h, 2 * v.pad, v.kh, v.stride, v.dilation);
  v.ow = WindowExtent(c, "W", v.w, 2 * v.pad, v.kw, v.stride, v.dilation);
  return v;
}

Value Window(const Depthwise& v, const Value& out, const Value& kernel) {
  return out * v.stride + kernel * v.dilation;
}

TensorRef Nchw(OpContext& c) {
  const Depthwise v = Read(c);
  TensorRef data = c.Input({v.n, v.ch, v.h, v.w});
  TensorRef padded = Pad(c, data, "PaddedInput", "i", {{0, 0, v.pad, v.pad}, {0, 0, v.pad, v.pad}},
                         /*always=*/true);
  TensorRef weight = c.Input({v.ch, v.multiplier, v.kh, v.kw});
  return c.b.Reduce(
      "DepthwiseConv2d", {{"b", v.n}, {"c", v.ch * v.multiplier}, {"i", v.oh}, {"j", v.ow}},
      {{"di", v.kh}, {"dj", v.kw}}, Combiner::kSum, [&](Vars x) {
        const Value channel = FloorDiv(x[1], v.multiplier);
        return c.Widen(padded(x[0], channel, Window(v, x[2], x[4]), Window(v, x[3], x[5]))) *
               c.Widen(weight(channel, x[1] % v.multiplier, x[4], x[5]));
      });
}

TensorRef Nhwc(OpContext& c) {
  const Depthwise v = Read(c);
  TensorRef data = c.Input({v.n, v.h, v.w, v.ch});
  TensorRef padded = Pad(c, data, "PaddedInput", "i", {{0, v.pad, v.pad, 0}, {0, v.pad, v.pad, 0}},
                         /*always=*/true);
  TensorRef weight = c.Input({v.kh, v.kw, v.ch, v.multiplier});
  return c.b.Reduce(
      "DepthwiseConv2d", {{"b", v.n}, {"i", v.oh}, {"j", v.ow}, {"c", v.ch * v.multiplier}},
      {{"di", v.kh}, {"dj", v.kw}}, Combiner::kSum, [&](Vars x) {
        const Value channel = FloorDiv(x[3], v.multiplier);
        return c.Widen(padded(x[0], Window(v, x[1], x[4]), Window(v, x[2], x[5]), channel)) *
               c.Widen(weight(x[4], x[5], channel, x[3] % v.multiplier));
      });
}

std::vector<Parameter> Parameters() {
  return {{.name = "N", .doc = "batch"},
          {.name = "H", .doc = "input height"},
          {.name = "W", .doc = "input width"},
          {.name = "C", .doc = "input channels"},
          {.name = "KH", .doc = "kernel height"},
          {.name = "KW", .doc = "kernel width"},
          {.name = "stride", .doc = "step of the window"},
          {.name = "pad", .doc = "zeros added on each side", .min = 0},
          {.name = "dilation", .doc = "step inside the window", .default_value = 1},
          {.name = "multiplier", .doc = "outputs per input channel", .default_value = 1}};
}

}  // namespace

std::vector<OpInfo> DepthwiseOps() {
  return {
      {.name = "depthwise_conv2d_nchw",
       .family = "convolutions",
       .doc = "depthwise convolution of [N, C, H, W] with [C, multiplier, KH, KW]",
       .parameters = Parameters(),
       .channel_axis = 1,
       .build = Nchw},
      {.name = "depthwise_conv2d_nhwc",
       .family = "convolutions",
       .doc = "depthwise convolution of [N, H, W, C] with [KH, KW, C, multiplier]",
       .parameters = Parameters(),
       .channel_axis = 3,
       .build = Nhwc},
  };
}

}  // namespace kiln::dag
