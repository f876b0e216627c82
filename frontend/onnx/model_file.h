// Reads the messages of an ONNX file (onnx.proto) without a second copy of its weights: the raw
// bytes of a tensor go from the file into the one string that its message owns.
//
// Any bytes may be read: nothing is allocated for which the file is too short. Fields of newer
// versions of ONNX are kept aside.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

// Refuses a file that is no ONNX model, and files of 2 GB and more, which protobuf cannot read.
StatusOr<::onnx::ModelProto> ReadModelFile(const std::string& path);
StatusOr<::onnx::ModelProto> ParseModel(std::string_view bytes);

// Reads a file of a single tensor, as ONNX's test cases have them.
StatusOr<::onnx::TensorProto> ReadTensorFile(const std::string& path);

}  // namespace kiln::frontend
