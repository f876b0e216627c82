// Whether a store computes what an instruction computes, and by which operands.
#pragma once

#include <optional>
#include <vector>

#include "compiler/instructions/instruction.h"

namespace kiln::instructions {

// The operands of an instruction in a program.
struct Operands {
  ir::Stmt store;
  // Indexed by the buffers of the body. Null: the buffer that is stored.
  std::vector<ir::Expr> loads;
};

// Returns the operands if the store's value has the form of the body's: the same operations on
// loads of the same types, for sums and products in either order. Their places are not compared.
// The cost is linear in the body, but for sums and products, of which both orders are tried.
std::optional<Operands> MatchStore(const InstructionBody& body, ir::Stmt store);

// Returns true if the iterations of the body's loop read neighbours of the operand, false if they
// read one element. `slot` is a buffer of the body that is loaded.
bool IsVector(const InstructionBody& body, int32_t slot);

}  // namespace kiln::instructions
