// The element types of ONNX (TensorProto.DataType) that Kiln has.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/ir/type.h"

namespace kiln::frontend {

// Unimplemented: a type that Kiln does not compute with. The message names it and says what to do.
StatusOr<ir::Type> ElementType(int onnx_type);
// "uint8"; of a number that ONNX does not have: "type 99".
std::string ElementTypeName(int onnx_type);

}  // namespace kiln::frontend
