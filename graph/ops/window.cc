#include "graph/ops/window.h"

#include "graph/ops/inputs.h"

namespace kiln::graph {

using dag::kMaxExtent;

std::vector<AttributeSpec> WindowAttributes() {
  using List = std::vector<int64_t>;
  return {
      IntsAttribute("strides", "steps of the window, one for each dimension; default 1", List()),
      IntsAttribute("pads", "padding before each dimension, then after each; default 0", List()),
      IntsAttribute("dilations", "steps inside the window; default 1", List()), ChannelsLast()};
}

AttributeSpec ChannelsLast() {
  return IntAttribute("channels_last", "1: the channels are the last axis, not the second one", 0);
}

dag::Layout ReadLayout(NodeWriter& w) {
  const int dims = w.input(0).rank() - 2;
  if (dims >= 1 && dims <= 3) return {dims, Flag(w, "channels_last")};
  w.Fail("input of shape [{}], expected batch, channels and 1 to 3 dimensions of an image",
         fmt::join(w.shape(0), ", "));
  return {1, false};
}

std::vector<int64_t> ReadPerAxis(NodeWriter& w, std::string_view attribute, size_t count,
                                 int64_t least, int64_t fallback) {
  const std::vector<int64_t>& values = w.Ints(attribute);
  if (values.empty()) return std::vector<int64_t>(count, fallback);
  if (values.size() != count)
    w.Fail("{} has {} entries, expected {}", attribute, values.size(), count);
  for (int64_t value : values) {
    if (value < least || value > kMaxExtent)
      w.Fail("{} = {}, expected {} to {}", attribute, value, least, kMaxExtent);
  }
  return values;
}

dag::Window ReadWindow(NodeWriter& w, const std::vector<int64_t>& kernel) {
  const size_t dims = kernel.size();
  for (int64_t extent : kernel) {
    if (extent < 1 || extent > kMaxExtent)
      w.Fail("kernel = [{}], expected 1 to {}", fmt::join(kernel, ", "), kMaxExtent);
  }
  std::vector<int64_t> pads = ReadPerAxis(w, "pads", 2 * dims, 0, 0);
  pads.resize(2 * dims);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(dims);
  return {.kernel = kernel,
          .strides = ReadPerAxis(w, "strides", dims, 1, 1),
          .before = {pads.begin(), middle},
          .after = {middle, pads.end()},
          .dilations = ReadPerAxis(w, "dilations", dims, 1, 1)};
}

}  // namespace kiln::graph
