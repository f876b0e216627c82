#include "compiler/instructions/instruction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/instructions/byte_products.h"
#include "compiler/ir/program_text.h"

namespace kiln::instructions {
namespace {

constexpr Instruction kInstructions[] = {kDp4a};

InstructionBody Parse(const Instruction& row) {
  StatusOr<ir::Program> program = ir::ParseProgram(row.body);
  KILN_CHECK(program.ok(), "the body of instruction '{}': {}", row.name, Message(program.status()));
  KILN_CHECK(program->kernels.size() == 1, "the body of instruction '{}' is no kernel", row.name);
  const ir::Stmt loop = program->kernels[0].body;
  const bool is_loop =
      loop->kind == ir::StmtKind::kFor && loop->body()->kind == ir::StmtKind::kStore;
  KILN_CHECK(is_loop, "the body of instruction '{}' is no loop around a store", row.name);
  return {&row, *std::move(program), loop, loop->body()};
}

std::vector<InstructionBody> ParseAll() {
  std::vector<InstructionBody> bodies;
  for (const Instruction& row : kInstructions) bodies.push_back(Parse(row));
  return bodies;
}

}  // namespace

std::span<const Instruction> Instructions() { return kInstructions; }

std::span<const InstructionBody> InstructionBodies() {
  static const auto* const kBodies = new std::vector<InstructionBody>(ParseAll());
  return *kBodies;
}

const InstructionBody* FindInstruction(std::string_view name) {
  const auto bodies = InstructionBodies();
  const auto found =
      std::ranges::find(bodies, name, [](const InstructionBody& body) { return body.row->name; });
  return found == bodies.end() ? nullptr : &*found;
}

}  // namespace kiln::instructions
