// What statements do with buffers. Internal to this folder.
#pragma once

#include <cstdint>
#include <set>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Does it store to the buffer, or load from it?
bool UsesBuffer(ir::Stmt stmt, int32_t slot);

// Nothing but asynchronous copies, which touch no registers of a tile?
bool IsCopies(ir::Stmt stmt);

// Does it round elements of one of the buffers to 16 bits or fewer, as they are? What is stored in one of
// `except` does not count.
bool RoundsElements(ir::Stmt stmt, const std::set<int32_t>& slots, const std::set<int32_t>& except);

}  // namespace kiln::codegen
