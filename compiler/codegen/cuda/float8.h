// 8-bit floats in CUDA C: the type and its conversions, which stand above the kernels that use them.
// Internal to this folder.
//
// No header of the toolkit is needed, and any architecture will do: from sm_89 on the conversions
// are instructions (PTX ISA, "cvt"), before that integer code, which gives the same bits but for
// those of NaN.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/type.h"

namespace kiln::codegen {

// "e4m3": of the functions float_to_e4m3, double_to_e4m3 and e4m3_to_float.
std::string_view Float8Name(ir::Type type);

// Of the types that are used.
std::string Float8Definitions(bool e4m3, bool e5m2);

}  // namespace kiln::codegen
