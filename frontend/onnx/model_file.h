// The messages of an ONNX file (onnx.proto), read without a second copy of its weights: the raw
// bytes of a tensor go from the file into the one string that its message owns.
//
// Any bytes are fine as input: nothing is allocated that the file is too short for. Fields that
// newer versions of ONNX have added are kept aside.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

// Refuses what is no ONNX model, and files of 2 GB and more: protobuf reads no longer ones.
StatusOr<::onnx::ModelProto> ReadModelFile(const std::string& path);
StatusOr<::onnx::ModelProto> ParseModel(std::string_view bytes);

// A file of a single tensor, as ONNX's test cases have them.
StatusOr<::onnx::TensorProto> ReadTensorFile(const std::string& path);

}  // namespace kiln::frontend
