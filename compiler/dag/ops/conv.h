// Convolutions written over tensors: what the operators of the library and those of networks share.
// Shapes must fit each other, and values of windows lie in the ranges of the library's parameters;
// windows that do not fit the image fail the context. Results are of the context's out_type.
#pragma once

#include "compiler/dag/ops/image.h"

namespace kiln::dag {

// The window's kernel is that of the weights.
struct ConvSpec {
  Layout layout;
  Window window;
  int64_t groups = 1;  // divides the input channels and the output channels
  // Of weights where channels come last: [CO, K..., CI/groups], whose neighbours are along the sum.
  bool is_output_first = false;
};

// weight: [CO, CI/groups, K...], or [K..., CI/groups, CO] where channels come last and
// is_output_first does not say otherwise.
TensorRef WriteConv(OpContext& c, const ConvSpec& spec, const TensorRef& data,
                    const TensorRef& weight);

// Every channel has kernels of its own. weight: [C, multiplier, K...], or [K..., C, multiplier].
TensorRef WriteDepthwiseConv(OpContext& c, Layout layout, const Window& window,
                             const TensorRef& data, const TensorRef& weight);

// The window's padding is what is cut off the result.
struct ConvTransposeSpec {
  Layout layout;
  Window window;
  std::vector<int64_t> output_padding;  // rows and columns more at the end
  int64_t groups = 1;
  // As a convolution of the image stretched by zeros, where there are no groups and dilations.
  bool stretch = false;
};

// weight: [CI, CO/groups, K...], or [K..., CI, CO/groups] where channels come last.
TensorRef WriteConvTranspose(OpContext& c, const ConvTransposeSpec& spec, const TensorRef& data,
                             const TensorRef& weight);

}  // namespace kiln::dag
