// Functions of values that stand above the kernels: minimum and maximum of floats, and floats to
// ints, as compiler/ir/expr.h and scalar.h say. A host computes the same by the same text, without
// a header. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/type.h"

namespace kiln::codegen {

// maximum(a, b) and minimum(a, b) of float or double.
std::string ExtremesDefinition(bool of_double);

// to_int32(x), to_uint32(x), to_int64(x), to_uint64(x) of float or double.
std::string ConversionDefinitions(bool of_double);

// A float or double, as CUDA C, converted to an int type by those functions.
std::string ConvertedToInt(ir::Type to, std::string_view value);

}  // namespace kiln::codegen
