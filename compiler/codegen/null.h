// Program -> nothing that runs: the code generator of the null target, for tests of everything
// around it.
#pragma once

#include "compiler/codegen/backend.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The binary is a description of the program, byte for byte the same for the same program. Never
// fails.
Compiled CompileNull(const ir::Program& program);

// Of target kind null. It has no form: nothing runs, so there is nothing to read.
const Backend& NullBackend();

}  // namespace kiln::codegen
