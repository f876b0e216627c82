// Convolutions written over tensors, shared by the operators of the library and those of networks.
// Shapes must fit each other, and values of windows must lie in the ranges of the library's
// parameters. Windows that do not fit the image fail the context. Results have the context's
// out_type.
#pragma once

#include "compiler/dag/ops/image.h"

namespace kiln::dag {

// The window's kernel is the kernel of the weights.
struct ConvSpec {
  Layout layout;
  Window window;
  // A divisor of the input channels and of the output channels.
  int64_t groups = 1;
  // Weights are [CO, K..., CI/groups] if channels come last, so that neighbours lie along the sum.
  bool is_output_first = false;
};

// The weight is [CO, CI/groups, K...]. If channels come last it is [K..., CI/groups, CO], unless
// is_output_first is set.
TensorRef WriteConv(OpContext& c, const ConvSpec& spec, const TensorRef& data,
                    const TensorRef& weight);

// Every channel has its own kernels. The weight is [C, multiplier, K...] or [K..., C, multiplier].
TensorRef WriteDepthwiseConv(OpContext& c, Layout layout, const Window& window,
                             const TensorRef& data, const TensorRef& weight);

// The window's padding is cut off the result.
struct ConvTransposeSpec {
  Layout layout;
  Window window;
  // Additional rows and columns at the end.
  std::vector<int64_t> output_padding;
  int64_t groups = 1;
  // Compute a convolution of the image stretched by zeros. Needs one group and no dilation.
  bool stretch = false;
};

// The weight is [CI, CO/groups, K...], or [K..., CI, CO/groups] if channels come last.
TensorRef WriteConvTranspose(OpContext& c, const ConvTransposeSpec& spec, const TensorRef& data,
                             const TensorRef& weight);

}  // namespace kiln::dag
