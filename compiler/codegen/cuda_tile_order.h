// Register tiles inside, reductions outside. Internal to cuda_*.cc.
//
// A schedule may leave reduction loops between the two spatial levels of a register tile
// (S R S). When such a reduction stays a loop, the unrolled outer level becomes as many copies of
// it. So in each nest around one accumulation into a local array the loops that do not index the
// array go outside, those that do inside, both in their own order. Every element then still adds
// its terms in the same order: results are the same to the last bit.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::codegen {

// New statements live in `pool`, which must outlive the result.
ir::Stmt SinkRegisterLoops(ir::ExprPool& pool, const ir::Program& program, ir::Stmt body);

}  // namespace kiln::codegen
