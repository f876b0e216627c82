#include "frontend/onnx/rules/window.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace kiln::frontend {
namespace {

// Returns the total padding of SAME, which gives the output ceil(extent / stride) elements.
int64_t SamePadding(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t outputs = CeilDiv(extent, stride);
  return std::max<int64_t>((outputs - 1) * stride + (kernel - 1) * dilation + 1 - extent, 0);
}

Shape AutoPads(const Shape& input, const Window& window, bool upper) {
  const size_t rank = window.kernel.size();
  Shape pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t total =
        SamePadding(input[d + 2], window.kernel[d], window.strides[d], window.dilations[d]);
    pads[d] = upper ? total / 2 : total - total / 2;
    pads[rank + d] = total - pads[d];
  }
  return pads;
}

}  // namespace

Window ReadWindow(NodeContext& n, const Shape& input, Shape kernel) {
  const auto rank = static_cast<int>(input.size()) - 2;
  Window window;
  window.kernel = n.Counts("kernel_shape", rank, 1, 1);
  if (!kernel.empty()) window.kernel = std::move(kernel);
  window.strides = n.Counts("strides", rank, 1, 1);
  window.dilations = n.Counts("dilations", rank, 1, 1);
  window.pads = n.Counts("pads", 2 * rank, 0);
  window.ceil = n.Int("ceil_mode", 0) != 0;
  // The limit keeps later computations from overflowing.
  if (std::ranges::any_of(input, [](int64_t extent) { return extent > int64_t{1} << 31; }))
    n.Unsupported("an image of more than 2^31 elements along an axis");
  if (n.failed()) return window;
  const std::string automatic = n.Text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    window.pads = AutoPads(input, window, automatic == "SAME_UPPER");
  } else if (automatic == "VALID") {
    window.pads = Shape(window.pads.size(), 0);
  } else if (automatic != "NOTSET" && !automatic.empty()) {
    n.Invalid("auto_pad is '{}'", automatic);
  }
  return window;
}

}  // namespace kiln::frontend
