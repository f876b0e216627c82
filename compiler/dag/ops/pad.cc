// Padding, alone and as a part of other operators, and the arithmetic of windows.
#include <algorithm>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

std::vector<Axis> NumberedAxes(std::string_view prefix, std::span<const int64_t> shape) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < shape.size(); ++i)
    axes.push_back({fmt::format("{}{}", prefix, i), shape[i]});
  return axes;
}

TensorRef Pad(OpContext& c, const TensorRef& x, std::string name, std::string_view prefix,
              const Padding& padding, bool always) {
  auto zero = [](int64_t n) { return n == 0; };
  const bool copy = std::all_of(padding.before.begin(), padding.before.end(), zero) &&
                    std::all_of(padding.after.begin(), padding.after.end(), zero);
  if (copy && !always) return x;
  const std::vector<int64_t> in = x.shape();
  std::vector<int64_t> shape = in;
  for (size_t i = 0; i < in.size(); ++i) shape[i] += padding.before[i] + padding.after[i];
  return c.b.Compute(std::move(name), NumberedAxes(prefix, shape), [&](Vars v) {
    std::vector<Value> index;
    std::optional<Value> inside;
    auto require = [&](const Value& condition) {
      inside = inside ? *inside && condition : condition;
    };
    for (size_t i = 0; i < in.size(); ++i) {
      index.push_back(v[i] - padding.before[i]);
      if (padding.before[i] > 0) require(v[i] >= padding.before[i]);
      if (padding.after[i] > 0) require(v[i] < padding.before[i] + in[i]);
    }
    if (!inside) return x.At(index);
    return If(*inside, x.At(index), c.b.Constant(padding.value, x.type()));
  });
}

int64_t WindowExtent(OpContext& c, std::string_view axis, int64_t extent, int64_t total_padding,
                     int64_t kernel, int64_t stride, int64_t dilation) {
  const __int128 window = static_cast<__int128>(kernel - 1) * dilation + 1;
  const __int128 padded = static_cast<__int128>(extent) + total_padding;
  if (window > padded) {
    c.Fail(
        "the kernel spans {} along {} (kernel {}, dilation {}), but the padded input has only {}",
        static_cast<int64_t>(window), axis, kernel, dilation, static_cast<int64_t>(padded));
    return 1;
  }
  return static_cast<int64_t>((padded - window) / stride + 1);
}

namespace {

TensorRef PadOp(OpContext& c) {
  const std::vector<int64_t>& shape = c.args.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  Padding padding{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 0)};
  std::vector<int64_t> axes = c.args.list("axis");
  if (axes.empty()) axes = {std::max<int64_t>(rank - 2, 0), rank - 1};
  for (int64_t axis : axes) {
    const std::optional<size_t> at = c.AxisAt("axis", axis);
    if (!at) continue;
    padding.before[*at] = c.args["before"];
    padding.after[*at] = c.args["after"];
  }
  return Pad(c, c.Input(shape), "T_pad", "ax", padding, /*always=*/true);
}

}  // namespace

std::vector<OpInfo> PadOps() {
  return {{.name = "pad",
           .family = "rearrangement",
           .doc = "zeros around a tensor",
           .takes_shape = true,
           .parameters = {{.name = "axis",
                           .doc = "axes to pad, one axis= each; none: the last two",
                           .min = -8,
                           .max = 7,
                           .default_value = std::nullopt,
                           .list = true},
                          {.name = "before", .doc = "zeros before", .min = 0, .default_value = 1},
                          {.name = "after", .doc = "zeros after", .min = 0, .default_value = 1}},
           .build = PadOp}};
}

}  // namespace kiln::dag
