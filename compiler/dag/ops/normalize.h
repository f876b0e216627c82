// Normalizations written over tensors: what the operators of the library and those of networks
// share.
#pragma once

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// The axes from `axis` on are normalized together; `epsilon` is added to what is divided by. Gamma
// and beta broadcast to those axes; null: none. Results are of the context's out_type.
struct NormSpec {
  size_t axis;
  double epsilon;
};
TensorRef WriteLayerNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const TensorRef* gamma, const TensorRef* beta);
TensorRef WriteRmsNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                       const TensorRef* gamma);

// With vectors along `spec.axis`; the result is of the context's type.
struct BatchNormVectors {
  TensorRef mean, variance, gamma, beta;
};
TensorRef WriteBatchNorm(OpContext& c, const NormSpec& spec, const TensorRef& x,
                         const BatchNormVectors& vectors);

}  // namespace kiln::dag
