// Movements of elements written over tensors, shared by the operators of the library and those of
// networks.
#pragma once

#include <span>
#include <vector>

#include "compiler/dag/builder.h"

namespace kiln::dag {

// Axis i of the result is axis order[i] of x. The order is a permutation.
TensorRef WriteTranspose(DagBuilder& b, const TensorRef& x, std::span<const size_t> order);

// The tensors must have equal shapes except along the axis.
TensorRef WriteConcat(DagBuilder& b, std::span<const TensorRef> inputs, size_t axis);

// Element v of the result is element begin + v * stride of x, which must be inside x. Each list has
// an entry for each axis.
struct SliceSpec {
  std::vector<int64_t> begin, stride, extents;
};
TensorRef WriteSlice(DagBuilder& b, const TensorRef& x, const SliceSpec& spec);

}  // namespace kiln::dag
