// Maps element types of ONNX (TensorProto.DataType) to those of Kiln.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/ir/type.h"

namespace kiln::frontend {

// Unimplemented: Kiln does not compute with the type. The message names the type and says what to
// do.
StatusOr<ir::Type> ElementType(int onnx_type);
// Returns "uint8", or "type 99" for a number that ONNX does not have.
std::string ElementTypeName(int onnx_type);

}  // namespace kiln::frontend
