// Windows that move over images: the attributes that convolutions and pools have in common.
#pragma once

#include <vector>

#include "compiler/dag/ops/image.h"
#include "graph/op.h"

namespace kiln::graph {

// strides, pads, dilations, and channels_last; none of them need be given.
std::vector<AttributeSpec> WindowAttributes();
AttributeSpec ChannelsLast();

// Of input 0: batch, channels and 1 to 3 dimensions of an image. Fails the writer where it isn't.
dag::Layout ReadLayout(NodeWriter& w);
// With padding of 0 or more. Fails the writer where a list has not an entry for each dimension of
// the image (pads: two), or a value out of range; what it gives then must not be used.
dag::Window ReadWindow(NodeWriter& w, const std::vector<int64_t>& kernel);
// The attribute, or as many times `fallback` where it is empty.
std::vector<int64_t> ReadPerAxis(NodeWriter& w, std::string_view attribute, size_t count,
                                 int64_t least, int64_t fallback);

}  // namespace kiln::graph
