// Movements of elements written over tensors: what the operators of the library and those of
// networks share.
#pragma once

#include <span>
#include <vector>

#include "compiler/dag/builder.h"

namespace kiln::dag {

// Axis i of the result is axis order[i] of x, a permutation.
TensorRef WriteTranspose(DagBuilder& b, const TensorRef& x, std::span<const size_t> order);

// One or more tensors, alike but for their extents along the axis.
TensorRef WriteConcat(DagBuilder& b, std::span<const TensorRef> inputs, size_t axis);

// Element v of the result is element begin + v * stride of x. An entry for each axis; inside x.
struct SliceSpec {
  std::vector<int64_t> begin, stride, extents;
};
TensorRef WriteSlice(DagBuilder& b, const TensorRef& x, const SliceSpec& spec);

}  // namespace kiln::dag
