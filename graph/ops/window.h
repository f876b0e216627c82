// Windows that move over images: the common attributes of convolutions and pools.
#pragma once

#include <vector>

#include "compiler/dag/ops/image.h"
#include "graph/op.h"

namespace kiln::graph {

// Returns strides, pads, dilations, and channels_last. All of them are optional.
std::vector<AttributeSpec> WindowAttributes();
AttributeSpec ChannelsLast();

// Returns the layout of input 0: batch, channels and 1 to 3 dimensions of an image. Fails the
// writer if the input has another shape.
dag::Layout ReadLayout(NodeWriter& w);
// Returns a window with padding of 0 or more. Fails the writer if a list does not have an entry for
// each dimension of the image (pads: two), or a value is out of range; the result is invalid then.
dag::Window ReadWindow(NodeWriter& w, const std::vector<int64_t>& kernel);
// Returns the attribute, or `count` times `fallback` if the attribute is empty.
std::vector<int64_t> ReadPerAxis(NodeWriter& w, std::string_view attribute, size_t count,
                                 int64_t least, int64_t fallback);

}  // namespace kiln::graph
