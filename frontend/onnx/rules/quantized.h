// Of integers that stand for floats, what convolutions and products of them share.
#pragma once

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

// x - zero point, in int32. The zero point is absent, or of one element, or has one for each element
// of an axis of x.
Tensor WithoutZeroPoint(NodeContext& n, const Tensor& x, const Tensor& zero_point, int64_t axis);

}  // namespace kiln::frontend
