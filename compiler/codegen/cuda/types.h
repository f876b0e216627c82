// Types of CUDA C for the scalar types of a program, and for vectors of them. Internal to
// this folder.
#pragma once

#include <string>
#include <string_view>

#include "compiler/codegen/cuda/preamble.h"
#include "compiler/ir/type.h"

namespace kiln::codegen {

std::string CudaTypeName(ir::Type type);  // in memory: "float", "float16", "signed char"

// Of a loop over so many elements: "int" or "long long".
std::string_view IndexTypeName(int64_t extent);

// CUDA has a vector type: "float4", with the lanes .x, .y, .z, .w. The other types get a struct
// with an array of lanes.
bool HasBuiltinVector(ir::Type type);
// Such a struct is defined in the preamble.
std::string VectorTypeName(ir::Type type, int lanes, CudaPreamble& preamble);
// ".x" or ".lane[0]"
std::string LaneName(ir::Type type, int lane);

}  // namespace kiln::codegen
