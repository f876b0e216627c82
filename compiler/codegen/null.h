// The code generator of the null target, whose programs do not run. For tests of everything around
// it.
#pragma once

#include "compiler/codegen/backend.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The binary is a description of the program, byte for byte the same for the same program. Never
// fails.
Compiled CompileNull(const ir::Program& program);

// Backend for target kind null. It has no forms, because there is no code to read.
const Backend& NullBackend();

}  // namespace kiln::codegen
