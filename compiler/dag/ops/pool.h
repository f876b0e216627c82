// Pooling written over tensors, shared by the operators of the library and those of networks.
#pragma once

#include <vector>

#include "compiler/dag/ops/image.h"

namespace kiln::dag {

enum class PoolKind { kMax, kAvg };

// Initial value of a maximum: the lowest finite value of the type.
double LowestValue(ir::Type type);

struct PoolSpec {
  Layout layout;
  Window window;
  // The last window may reach past the padded image, if it starts before the padding at the end.
  bool ceil = false;
  // An average counts padding, but no elements past it.
  bool count_include_pad = false;
};

// Returns the numbers of windows over an image. Fails the context if a window does not fit, or if
// the padding is as large as a window, because that window could be all padding.
std::vector<int64_t> PoolExtents(OpContext& c, const PoolSpec& spec,
                                 const std::vector<int64_t>& image);

// `data` and the result have the context's type. A sum has out_type.
TensorRef WritePool(OpContext& c, const PoolSpec& spec, PoolKind kind, const TensorRef& data);

// Cuts the image evenly into `out` windows along each dimension.
TensorRef WriteAdaptivePool(OpContext& c, Layout layout, PoolKind kind,
                            const std::vector<int64_t>& out, const TensorRef& data);

}  // namespace kiln::dag
