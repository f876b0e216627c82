#pragma once

#include "compiler/codegen/backend.h"

namespace kiln::codegen {

// Of target kind llvm (llvm.h). Forms: llvm, asm.
const Backend& LlvmBackend();

}  // namespace kiln::codegen
