// Sums of products of bytes, four at a time (dp4a).
//
// CUDA Math API, "__dp4a"; PTX ISA, "dp4a".
#pragma once

#include "compiler/instructions/instruction.h"

namespace kiln::instructions {

inline constexpr Instruction kDp4a = {
    .name = "dp4a",
    .first_arch = 61,
    .body =
        "program(a: input int8[4], b: input int8[4], c: output int32[1]) {\n"
        "  stage dp4a\n"
        "  kernel dp4a {\n"
        "    for k in 0..4 {\n"
        "      c[0] = c[0] + int32(a[k])*int32(b[k]) @ dp4a\n"
        "    }\n"
        "  }\n"
        "}\n",
    .text =
        "$c = __dp4a(*reinterpret_cast<const int*>(&$a), *reinterpret_cast<const int*>(&$b), "
        "$c);"};

}  // namespace kiln::instructions
