// Instructions of a thread as data: what each computes, and its text.
//
// A row is all that Kiln knows of such an instruction. A pass of lowering finds the loops that it
// computes (compiler/lower/place_instructions.h), the interpreter and features read its body in the
// program, and code generation prints its text. docs/cuda.md, "Instructions", says how to add one.
#pragma once

#include <span>
#include <string_view>

#include "compiler/ir/program.h"

namespace kiln::instructions {

struct Instruction {
  // An identifier, as in `instruction dp4a {` of a program's text.
  std::string_view name;
  // The first architecture with the instruction: 61 is sm_61.
  int first_arch;
  // The operation: a program (compiler/ir/program_text.h) of one serial loop around
  // one store. Its buffers are the operands. The buffer that is stored is the result, an integer,
  // which does not depend on the loop; if it is also read, it is read at the place of the store.
  // An index of another operand is the loop's variable, whose iterations are neighbours in memory,
  // aligned to the size of all of them, or it does not depend on the loop.
  std::string_view body;
  // A statement of CUDA C. $NAME stands for the element of operand NAME in iteration 0.
  std::string_view text;
};

// Returns all rows.
std::span<const Instruction> Instructions();

// A row whose body is parsed.
struct InstructionBody {
  const Instruction* row;
  ir::Program program;
  // The loop of the body, and the store in it.
  ir::Stmt loop, store;
};
// Returns the bodies of all rows, in their order. They are parsed once; any thread may call.
std::span<const InstructionBody> InstructionBodies();
// Null: no row has this name.
const InstructionBody* FindInstruction(std::string_view name);

}  // namespace kiln::instructions
