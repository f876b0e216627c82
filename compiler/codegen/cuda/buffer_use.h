// What statements do with buffers. Internal to this folder.
#pragma once

#include <cstdint>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Does it store to the buffer, or load from it?
bool UsesBuffer(ir::Stmt stmt, int32_t slot);

// Nothing but asynchronous copies, which touch no registers of a tile?
bool IsCopies(ir::Stmt stmt);

}  // namespace kiln::codegen
