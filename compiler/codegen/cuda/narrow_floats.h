// Floats of 16 and 8 bits in CUDA C: the types and their conversions, which stand above the kernels
// that use them.
//
// No header of the toolkit is needed: it would take NVRTC longer than a small kernel, and NVRTC is
// found without one. Any architecture will do. Conversions are instructions where there are such
// (PTX ISA, "cvt": to bfloat16 from sm_80 on, from it from sm_90 on, of 8 bits from sm_89 on), else
// integer code, which gives the same bits but for those of NaN. It is what hosts run, too. Internal
// to this folder.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/type.h"

namespace kiln::codegen {

// Its name in PTX, "f16", "bf16", "e4m3" or "e5m2": of the functions float_to_f16, double_to_f16
// and f16_to_float. "": it is none of these types.
std::string_view NarrowFloatName(ir::Type type);

// Of the types that are used.
std::string NarrowFloatDefinitions(bool f16, bool bf16, bool e4m3, bool e5m2);

}  // namespace kiln::codegen
