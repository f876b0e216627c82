// The element types by themselves. This header includes no other, so that code for a GPU shares it
// (runner/cuda_kernels.cu). runtime/dtype.h has names and sizes.
#pragma once

namespace kiln::runtime {

enum class DType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

}  // namespace kiln::runtime
