// Pooling written over tensors: what the operators of the library and those of networks share.
#pragma once

#include <vector>

#include "compiler/dag/ops/image.h"

namespace kiln::dag {

enum class PoolKind { kMax, kAvg };

// What a maximum starts from: the lowest finite value of the type.
double LowestValue(ir::Type type);

struct PoolSpec {
  Layout layout;
  Window window;
  // A last window may reach past the padded image, if it starts before the padding at the end.
  bool ceil = false;
  // An average counts padding, but nothing past it.
  bool count_include_pad = false;
};

// How many windows there are over an image. Fails the context where a window does not fit, and
// where the padding is as large as a window: one may not be all padding.
std::vector<int64_t> PoolExtents(OpContext& c, const PoolSpec& spec,
                                 const std::vector<int64_t>& image);

// `data` is of the context's type, and so is the result; a sum is of out_type.
TensorRef WritePool(OpContext& c, const PoolSpec& spec, PoolKind kind, const TensorRef& data);

// The image cut evenly into `out` windows along each dimension.
TensorRef WriteAdaptivePool(OpContext& c, Layout layout, PoolKind kind,
                            const std::vector<int64_t>& out, const TensorRef& data);

}  // namespace kiln::dag
