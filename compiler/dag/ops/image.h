// Common parts of operators over images: batch, channels and one to three dimensions of an image,
// with the channels before the image (NCW, NCHW, NCDHW) or behind it (NWC, NHWC, NDHWC).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

struct Layout {
  // Dimensions of the image: 1, 2 or 3.
  int dims;
  // True for NHWC.
  bool channels_last;

  // Returns "nchw".
  std::string Name() const;
  // Returns "N, C, H, W".
  std::string ShapeDoc() const;
  // Position of the image's first dimension.
  size_t first() const { return channels_last ? 1 : 2; }
  int channel_axis() const { return channels_last ? dims + 1 : 1; }
  // Returns the image's part of a shape or an index.
  template <typename T>
  std::vector<T> Image(const std::vector<T>& all) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first());
    return {begin, begin + dims};
  }
};

// Puts batch, channel and image, which are extents, axes or indices, into the layout's order.
template <typename T>
std::vector<T> Arrange(Layout layout, const T& batch, const T& channel,
                       const std::vector<T>& image) {
  std::vector<T> all = {batch};
  if (!layout.channels_last) all.push_back(channel);
  all.insert(all.end(), image.begin(), image.end());
  if (layout.channels_last) all.push_back(channel);
  return all;
}

// Puts the kernel of weights behind the two axes of channels if channels come first, else in front
// of them.
template <typename T>
std::vector<T> ArrangeWeight(Layout layout, const T& first, const T& second,
                             const std::vector<T>& kernel) {
  std::vector<T> all = kernel;
  all.insert(layout.channels_last ? all.end() : all.begin(), {first, second});
  return all;
}

// Puts channels before or behind the elements of the window, for the axes of a sum.
template <typename T>
std::vector<T> ArrangeSum(Layout layout, const T& channel, const std::vector<T>& window) {
  std::vector<T> all = window;
  all.insert(layout.channels_last ? all.end() : all.begin(), channel);
  return all;
}

// A window that moves over an image. Each list has an entry for each dimension of the image. Values
// are in the ranges of library parameters (at most kMaxExtent).
struct Window {
  // `before` and `after` are the padding.
  std::vector<int64_t> kernel, strides, before, after, dilations;

  static Window Uniform(std::vector<int64_t> kernel, int64_t stride, int64_t pad, int64_t dilation);

  size_t dims() const { return kernel.size(); }
  // Number of elements from the first one that the window reads to the last one.
  int64_t Span(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // Position in the padded image of element `at` of window number `out`.
  Value Position(size_t d, const Value& out, const Value& at) const {
    return out * strides[d] + at * dilations[d];
  }
  // Returns the number of windows along each dimension. Fails `c` if a dimension has none.
  std::vector<int64_t> Count(OpContext& c, const std::vector<int64_t>& image) const;
  Padding PaddingOf(Layout layout, double value = 0) const;
};

// Makes axes with these names. There may be more names than extents.
std::vector<Axis> NamedAxes(std::span<const std::string_view> names,
                            const std::vector<int64_t>& extents);

// Allows that the layout of the weight is changed before the run, if the weight is an input.
Attrs LayoutFree(OpContext& c, const TensorRef& weight);

// Returns "D", "H", "W": the last ones, as many as there are dimensions. One dimension gives "W".
std::vector<std::string> ImageLetters(int dims);
// Parameters N, then D, H, W; KD, KH, KW; OD, OH, OW. `what` is "input", "kernel" or "output".
std::vector<Parameter> ImageParameters(int dims);
void AddExtents(std::vector<Parameter>& parameters, int dims, std::string_view prefix,
                std::string_view what);
// Returns the values of prefix + letter, such as {KH, KW}.
std::vector<int64_t> ReadExtents(OpContext& c, int dims, std::string_view prefix);

}  // namespace kiln::dag
