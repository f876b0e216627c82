#include "compiler/dag/ops/epilogue.h"

#include <algorithm>
#include <utility>

#include "compiler/dag/ops/registry.h"

namespace kiln::dag {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substitute}));
    }
  }
  return row[b.size()];
}

// To be combined with x.
TensorRef SideInput(OpContext& c, std::vector<int64_t> shape, const TensorRef& x) {
  const bool is_wide = x.type() == c.out_type;
  return Converted(c, c.Input(std::move(shape), is_wide ? c.result_type : x.type()), x.type());
}

// A vector along the channel axis, with the rank of x.
TensorRef ChannelInput(OpContext& c, const TensorRef& x, int channel_axis) {
  std::vector<int64_t> shape(x.shape().size(), 1);
  const int axis = channel_axis < 0 ? channel_axis + x.rank() : channel_axis;
  if (axis >= 0 && axis < x.rank())
    shape[static_cast<size_t>(axis)] = x.shape()[static_cast<size_t>(axis)];
  return SideInput(c, std::move(shape), x);
}

}  // namespace

std::vector<std::string> EpilogueNames() {
  std::vector<std::string> names = {"bias", "scale", "residual", "add", "mul"};
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
  if (HasUnary(name)) return ApplyUnary(c, name, x);
  const std::vector<std::string> closest = ClosestNames(name, EpilogueNames());
  return NotFound(
      "unknown epilogue '{}'{}; there are: {}", name,
      closest.empty() ? "" : fmt::format(", did you mean {}", fmt::join(closest, " or ")),
      fmt::join(EpilogueNames(), ", "));
}

std::vector<std::string> ClosestNames(std::string_view name,
                                      const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> ranked;
  if (name.size() > 64) return {};
  for (const std::string& candidate : names) {
    const bool inside = name.size() >= 3 && candidate.find(name) != std::string::npos;
    const size_t distance = inside ? 1 : EditDistance(name, candidate);
    if (distance <= std::max<size_t>(2, name.size() / 3)) ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> closest;
  for (size_t i = 0; i < std::min<size_t>(3, ranked.size()); ++i)
    closest.push_back(ranked[i].second);
  return closest;
}

}  // namespace kiln::dag
