// Tensors of a model's file as constants, without copying their elements where they stand in memory
// as constants have them.
#pragma once

#include <string>
#include <unordered_map>

#include "base/status.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/onnx.pb.h"
#include "frontend/onnx/tensor.h"

namespace kiln::frontend {

class TensorData {
 public:
  explicit TensorData(std::string folder) : external_(std::move(folder)) {}

  // Takes the elements out of the message. Asked again for the same message, which must live
  // as long, it gives the same tensor. Unimplemented: element types that Kiln has not.
  StatusOr<Tensor> Take(::onnx::TensorProto& proto);

 private:
  StatusOr<Tensor> Read(::onnx::TensorProto& proto);
  // Elements of `bytes` bytes in all, in a file.
  StatusOr<ExternalData::Bytes> MapExternal(const graph::TensorType& type, int64_t bytes,
                                            const ::onnx::TensorProto& proto);

  ExternalData external_;
  std::unordered_map<const ::onnx::TensorProto*, Tensor> taken_;
};

}  // namespace kiln::frontend
