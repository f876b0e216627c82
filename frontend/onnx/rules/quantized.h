// Of integers that stand for floats, what convolutions and products of them share.
#pragma once

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

// x - zero point, in int32. The zero point is absent, or of one element, or has one for each element
// of an axis of x.
Tensor WithoutZeroPoint(NodeContext& n, const Tensor& x, const Tensor& zero_point, int64_t axis);

// The convolution that the node's attributes say, in int32, of inputs by their numbers: x, which has
// one zero point, and weights, which have one or one for each of their outputs.
Tensor IntegerConvolution(NodeContext& n, int x, int x_zero_point, int w, int w_zero_point);

// y + bias, which has an element for each channel of y, axis 1; y where there is none.
Tensor WithChannelBias(NodeContext& n, const Tensor& y, const Tensor& bias);

}  // namespace kiln::frontend
