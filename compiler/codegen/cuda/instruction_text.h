// The text of an instruction that lowering has placed. Internal to this folder.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Returns the text of the statement's row (compiler/instructions/instruction.h) with the program's
// elements for its operands. InvalidArgument: no instruction has this name, or it computes something
// else than the statement's body.
StatusOr<std::string> InstructionText(const ir::Program& program, ir::Stmt stmt, CudaScope& scope,
                                      CudaExprs& exprs);

}  // namespace kiln::codegen
