// What operators over images share: batch, channels and one to three dimensions of an image, with
// the channels before the image (NCW, NCHW, NCDHW) or behind it (NWC, NHWC, NDHWC).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

struct Layout {
  int dims;            // of the image: 1, 2 or 3
  bool channels_last;  // NHWC

  std::string Name() const;                               // "nchw"
  std::string ShapeDoc() const;                           // "N, C, H, W"
  size_t first() const { return channels_last ? 1 : 2; }  // position of the image's first dimension
  int channel_axis() const { return channels_last ? dims + 1 : 1; }
  // The image's part of a shape or an index.
  template <typename T>
  std::vector<T> Image(const std::vector<T>& all) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first());
    return {begin, begin + dims};
  }
};

// Batch, channel and image in the layout's order: of extents, axes or indices.
template <typename T>
std::vector<T> Arrange(Layout layout, const T& batch, const T& channel,
                       const std::vector<T>& image) {
  std::vector<T> all = {batch};
  if (!layout.channels_last) all.push_back(channel);
  all.insert(all.end(), image.begin(), image.end());
  if (layout.channels_last) all.push_back(channel);
  return all;
}

// Weights: the kernel behind two axes of channels where channels come first, else in front of them.
template <typename T>
std::vector<T> ArrangeWeight(Layout layout, const T& first, const T& second,
                             const std::vector<T>& kernel) {
  std::vector<T> all = kernel;
  all.insert(layout.channels_last ? all.end() : all.begin(), {first, second});
  return all;
}

// What a sum runs over: channels before or behind the elements of the window.
template <typename T>
std::vector<T> ArrangeSum(Layout layout, const T& channel, const std::vector<T>& window) {
  std::vector<T> all = window;
  all.insert(layout.channels_last ? all.end() : all.begin(), channel);
  return all;
}

// A window that moves over an image. Each list has an entry for each dimension of the image; values
// are in the ranges of library parameters (at most kMaxExtent).
struct Window {
  std::vector<int64_t> kernel, strides, before, after, dilations;  // before, after: padding

  static Window Uniform(std::vector<int64_t> kernel, int64_t stride, int64_t pad, int64_t dilation);

  size_t dims() const { return kernel.size(); }
  // Elements from the first one it reads to the last one.
  int64_t Span(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // Where, in the padded image, element `at` of the window number `out` is.
  Value Position(size_t d, const Value& out, const Value& at) const {
    return out * strides[d] + at * dilations[d];
  }
  // How many windows there are along each dimension; fails `c` where there is none.
  std::vector<int64_t> Count(OpContext& c, const std::vector<int64_t>& image) const;
  Padding PaddingOf(Layout layout, double value = 0) const;
};

// Axes of those names, which are as many as there are extents at least.
std::vector<Axis> NamedAxes(std::span<const std::string_view> names,
                            const std::vector<int64_t>& extents);

// That the layout of the weight may be changed before the run, where it is an input.
Attrs LayoutFree(OpContext& c, const TensorRef& weight);

// "D", "H", "W", as many as there are dimensions, the last ones first left out: W alone for 1.
std::vector<std::string> ImageLetters(int dims);
// Parameters N, then D, H, W; KD, KH, KW; OD, OH, OW. `what`: "input", "kernel", "output".
std::vector<Parameter> ImageParameters(int dims);
void AddExtents(std::vector<Parameter>& parameters, int dims, std::string_view prefix,
                std::string_view what);
// Values of prefix + letter: {KH, KW}.
std::vector<int64_t> ReadExtents(OpContext& c, int dims, std::string_view prefix);

}  // namespace kiln::dag
