// The common attributes of convolutions and pools: how a window moves over an input.
#pragma once

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

struct Window {
  Shape kernel, strides, dilations;
  // Pads before each axis, then after each axis.
  Shape pads;
  bool ceil = false;
};

// Reads the window of a node over an input of shape [N, C, spatial...]. SAME and VALID become
// numbers. Pads that are absurdly large for the input are failures.
Window ReadWindow(NodeContext& n, const Shape& input, Shape kernel);

}  // namespace kiln::frontend
