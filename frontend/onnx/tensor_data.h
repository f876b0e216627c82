// Reads tensors of a model's file as constants. Elements are not copied if they have the layout of
// a constant in memory.
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

  // Takes the elements out of the message, which must outlive this. A second call for the same
  // message gives the same tensor. Unimplemented: element types that Kiln lacks.
  StatusOr<Tensor> Take(::onnx::TensorProto& proto);

 private:
  StatusOr<Tensor> Read(::onnx::TensorProto& proto);
  // Maps elements of `bytes` bytes in all from a file.
  StatusOr<ExternalData::Bytes> MapExternal(const graph::TensorType& type, int64_t bytes,
                                            const ::onnx::TensorProto& proto);

  ExternalData external_;
  std::unordered_map<const ::onnx::TensorProto*, Tensor> taken_;
};

}  // namespace kiln::frontend
