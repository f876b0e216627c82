// Direct 2-D convolution, NCHW (weights OIHW) and NHWC (weights HWIO), with stride, padding,
// dilation and groups.
#include "compiler/dag/ops/op.h"

namespace kiln::dag {
namespace {

struct Conv {
  int64_t n, h, w, co, ci, kh, kw, stride, pad, dilation, groups;
  int64_t oh, ow;
};

Conv ReadConv(OpContext& c) {
  Conv v{.n = c.args["N"],
         .h = c.args["H"],
         .w = c.args["W"],
         .co = c.args["CO"],
         .ci = c.args["CI"],
         .kh = c.args["KH"],
         .kw = c.args["KW"],
         .stride = c.args["stride"],
         .pad = c.args["pad"],
         .dilation = c.args["dilation"],
         .groups = c.args["groups"],
         .oh = 1,
         .ow = 1};
  if (v.ci % v.groups != 0 || v.co % v.groups != 0) {
    c.Fail("groups = {} must divide CI = {} and CO = {}", v.groups, v.ci, v.co);
    v.groups = 1;
  }
  v.oh = WindowExtent(c, "H", v.h, 2 * v.pad, v.kh, v.stride, v.dilation);
  v.ow = WindowExtent(c, "W", v.w, 2 * v.pad, v.kw, v.stride, v.dilation);
  return v;
}

std::string Name(const Conv& v, std::string_view layout) {
  return fmt::format("{}conv2d_{}", v.groups > 1 ? "group_" : "", layout);
}

// The input channel that output channel ff and rc, counted inside its group, meet.
Value InputChannel(const Conv& v, const Value& ff, const Value& rc) {
  if (v.groups == 1) return rc;
  return FloorDiv(ff, v.co / v.groups) * (v.ci / v.groups) + rc;
}

Value Window(const Conv& v, const Value& out, const Value& kernel) {
  return out * v.stride + kernel * v.dilation;
}

TensorRef ConvNchw(OpContext& c) {
  const Conv v = ReadConv(c);
  TensorRef data = c.Input({v.n, v.ci, v.h, v.w});
  TensorRef padded =
      Pad(c, data, "pad_temp", "i", {{0, 0, v.pad, v.pad}, {0, 0, v.pad, v.pad}}, /*always=*/true);
  TensorRef weight = c.Input({v.co, v.ci / v.groups, v.kh, v.kw});
  return c.b.Reduce(
      Name(v, "nchw"), {{"nn", v.n}, {"ff", v.co}, {"yy", v.oh}, {"xx", v.ow}},
      {{"rc", v.ci / v.groups}, {"ry", v.kh}, {"rx", v.kw}}, Combiner::kSum, [&](Vars i) {
        const Value &nn = i[0], &ff = i[1], &yy = i[2], &xx = i[3];
        const Value &rc = i[4], &ry = i[5], &rx = i[6];
        return c.Widen(padded(nn, InputChannel(v, ff, rc), Window(v, yy, ry), Window(v, xx, rx))) *
               c.Widen(weight(ff, rc, ry, rx));
      });
}

TensorRef ConvNhwc(OpContext& c) {
  const Conv v = ReadConv(c);
  TensorRef data = c.Input({v.n, v.h, v.w, v.ci});
  TensorRef padded =
      Pad(c, data, "pad_temp", "i", {{0, v.pad, v.pad, 0}, {0, v.pad, v.pad, 0}}, /*always=*/true);
  TensorRef weight = c.Input({v.kh, v.kw, v.ci / v.groups, v.co});
  return c.b.Reduce(
      Name(v, "nhwc"), {{"nn", v.n}, {"yy", v.oh}, {"xx", v.ow}, {"ff", v.co}},
      {{"ry", v.kh}, {"rx", v.kw}, {"rc", v.ci / v.groups}}, Combiner::kSum,
      [&](Vars i) {
        const Value &nn = i[0], &yy = i[1], &xx = i[2], &ff = i[3];
        const Value &ry = i[4], &rx = i[5], &rc = i[6];
        return c.Widen(padded(nn, Window(v, yy, ry), Window(v, xx, rx), InputChannel(v, ff, rc))) *
               c.Widen(weight(ry, rx, rc, ff));
      },
      {.layout_free_placeholders = {"p1"}});
}

std::vector<Parameter> Parameters() {
  return {{.name = "N", .doc = "batch"},
          {.name = "H", .doc = "input height"},
          {.name = "W", .doc = "input width"},
          {.name = "CO", .doc = "output channels"},
          {.name = "CI", .doc = "input channels"},
          {.name = "KH", .doc = "kernel height"},
          {.name = "KW", .doc = "kernel width"},
          {.name = "stride", .doc = "step of the window"},
          {.name = "pad", .doc = "zeros added on each side", .min = 0},
          {.name = "dilation", .doc = "step inside the window", .default_value = 1},
          {.name = "groups", .doc = "independent groups of channels", .default_value = 1}};
}

}  // namespace

std::vector<OpInfo> Conv2dOps() {
  return {
      {.name = "conv2d_nchw",
       .family = "convolutions",
       .doc = "convolution of [N, CI, H, W] with [CO, CI/groups, KH, KW]",
       .parameters = Parameters(),
       .channel_axis = 1,
       .build = ConvNchw},
      {.name = "conv2d_nhwc",
       .family = "convolutions",
       .doc = "convolution of [N, H, W, CI] with [KH, KW, CI/groups, CO]",
       .parameters = Parameters(),
       .channel_axis = 3,
       .build = ConvNhwc},
  };
}

}  // namespace kiln::dag
