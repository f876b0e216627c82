// Normalizations written over tensors, shared by the operators of the library and those of
// networks.
#pragma once

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// The axes from `axis` on are normalized together. `epsilon` is added to the divisor. Gamma and
// beta broadcast to those axes; null if there is none. Results have the context's out_type.
struct NormSpec {
  size_t axis;
  double epsilon;
};
TensorRef WriteLayerNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const TensorRef* gamma, const TensorRef* beta);
TensorRef WriteRmsNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                       const TensorRef* gamma);

// Vectors along `spec.axis`. The result has the context's type.
struct BatchNormVectors {
  TensorRef mean, variance, gamma, beta;
};
TensorRef WriteBatchNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const BatchNormVectors& vectors);

}  // namespace kiln::dag
