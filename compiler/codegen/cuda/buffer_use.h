// Which buffers statements use. Internal to this folder.
#pragma once

#include <cstdint>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Does it store to the buffer, or load from it?
bool UsesBuffer(ir::Stmt stmt, int32_t slot);

}  // namespace kiln::codegen
