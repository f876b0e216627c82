#include "compiler/dag/ops/epilogue.h"

#include <algorithm>
#include <utility>

#include "base/text/closest_names.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

// Makes an input that is combined with x.
TensorRef SideInput(OpContext& c, std::vector<int64_t> shape, const TensorRef& x) {
  const bool is_wide = x.type() == c.out_type;
  return Converted(c, c.Input(std::move(shape), is_wide ? c.result_type : x.type()), x.type());
}

// Makes an input that is a vector along the channel axis, with the rank of x.
TensorRef ChannelInput(OpContext& c, const TensorRef& x, int channel_axis) {
  std::vector<int64_t> shape(x.shape().size(), 1);
  const int axis = channel_axis < 0 ? channel_axis + x.rank() : channel_axis;
  if (axis >= 0 && axis < x.rank())
    shape[static_cast<size_t>(axis)] = x.shape()[static_cast<size_t>(axis)];
  return SideInput(c, std::move(shape), x);
}

}  // namespace

std::vector<std::string> EpilogueNames() {
  std::vector<std::string> names = {"bias", "scale", "residual", "add", "mul", "cast"};
  for (std::string& name : UnaryNames()) names.push_back(std::move(name));
  return names;
}

StatusOr<TensorRef> ApplyEpilogue(OpContext& c, std::string_view name, const TensorRef& x,
                                  int channel_axis) {
  if (name == "bias") return ApplyBinary(c, "add", x, ChannelInput(c, x, channel_axis));
  if (name == "scale") return ApplyBinary(c, "mul", x, ChannelInput(c, x, channel_axis));
  if (name == "residual" || name == "add")
    return ApplyBinary(c, "add", x, SideInput(c, x.shape(), x));
  if (name == "mul") return ApplyBinary(c, "mul", x, SideInput(c, x.shape(), x));
  if (name == "cast") return Converted(c, Converted(c, x, c.result_type), x.type());
  if (HasUnary(name)) return ApplyUnary(c, name, x);
  const std::string guess = DidYouMean(name, EpilogueNames());
  return NotFound(
      "unknown epilogue '{}'{}", name,
      guess.empty() ? fmt::format("; there are: {}", fmt::join(EpilogueNames(), ", ")) : guess);
}

}  // namespace kiln::dag
