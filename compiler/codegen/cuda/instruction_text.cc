#include "compiler/codegen/cuda/instruction_text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/arith/linear.h"
#include "compiler/instructions/match.h"

namespace kiln::codegen {

StatusOr<std::string> InstructionText(const ir::Program& program, ir::Stmt stmt, CudaScope& scope,
                                      CudaExprs& exprs) {
  const std::string& name = program.instructions[static_cast<size_t>(stmt->instruction)];
  const instructions::InstructionBody* const body = instructions::FindInstruction(name);
  if (body == nullptr) return InvalidArgument("there is no instruction '{}'", name);
  const ir::Stmt loop = stmt->body();
  const bool is_loop = loop->kind == ir::StmtKind::kFor && loop->extent == body->loop->extent &&
                       loop->body()->kind == ir::StmtKind::kStore;
  const auto operands = is_loop ? instructions::MatchStore(*body, loop->body()) : std::nullopt;
  if (!operands)
    return InvalidArgument("instruction '{}' does not compute what its statement says", name);
  const ir::Stmt store = operands->store;
  scope.SetValue(loop->var, arith::Constant(0));
  std::vector<std::pair<std::string, std::string>> elements;
  const auto add = [&](size_t slot, std::string element) {
    elements.emplace_back("$" + body->program.buffers[slot].name, std::move(element));
  };
  add(static_cast<size_t>(body->store->slot),
      exprs.Element(store->slot, exprs.PlaceOf(store->slot, store->indices())));
  for (size_t slot = operands->loads.size(); slot-- > 0;) {
    const ir::Expr load = operands->loads[slot];
    if (load != nullptr) add(slot, exprs.Element(load->id, exprs.PlaceOf(load->id, load->args())));
  }
  scope.ResetValue(loop->var);
  return absl::StrReplaceAll({body->row->text.data(), body->row->text.size()}, elements);
}

}  // namespace kiln::codegen
