// The attributes that convolutions and pools share: how a window moves over an input.
#pragma once

#include "frontend/onnx/rule.h"

namespace kiln::frontend {

struct Window {
  Shape kernel, strides, dilations;
  Shape pads;  // before each axis, then after each
  bool ceil = false;
};

// Of a node over an input of shape [N, C, spatial...]; SAME and VALID become numbers. Pads that are
// absurd beside the input are failures.
Window ReadWindow(NodeContext& n, const Shape& input, Shape kernel);

}  // namespace kiln::frontend
