// Shared by convolutions and products of quantized integers, which stand for floats.
#pragma once

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

// Returns x - zero point in int32. The zero point is absent, has one element, or has one for each
// element of an axis of x.
Tensor WithoutZeroPoint(NodeContext& n, const Tensor& x, const Tensor& zero_point, int64_t axis);

// Returns the convolution that the node's attributes describe, in int32. Inputs are given by their
// numbers: x has one zero point, the weights have one, or one for each of their outputs.
Tensor IntegerConvolution(NodeContext& n, int x, int x_zero_point, int w, int w_zero_point);

// Returns y + bias, which has an element for each channel of y, axis 1; y if there is no bias.
Tensor WithChannelBias(NodeContext& n, const Tensor& y, const Tensor& bias);

}  // namespace kiln::frontend
