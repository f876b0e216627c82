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

// "D", "H", "W", as many as there are dimensions, the last ones first left out: W alone for 1.
std::vector<std::string> ImageLetters(int dims);
// Parameters N, then D, H, W; KD, KH, KW; OD, OH, OW. `what`: "input", "kernel", "output".
std::vector<Parameter> ImageParameters(int dims);
void AddExtents(std::vector<Parameter>& parameters, int dims, std::string_view prefix,
                std::string_view what);
// Values of prefix + letter: {KH, KW}.
std::vector<int64_t> ReadExtents(OpContext& c, int dims, std::string_view prefix);

}  // namespace kiln::dag
