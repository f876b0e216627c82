#pragma once

#include "compiler/codegen/backend.h"

namespace kiln::codegen {

// Backend for target kind llvm (llvm.h). Forms: llvm, asm.
const Backend& LlvmBackend();

}  // namespace kiln::codegen
