#include "compiler/features/row_stages.h"

namespace kiln::features {
namespace {

void Walk(const ir::Program& program, const ir::Kernel& kernel, ir::Stmt stmt,
          std::vector<RowStage>& rows) {
  if (stmt->kind == ir::StmtKind::kStore) {
    const bool has_stage = stmt->stage >= 0;
    rows.push_back({.kernel = kernel.name,
                    .stage = has_stage ? program.stages[static_cast<size_t>(stmt->stage)].name : "",
                    .buffer = program.buffers[static_cast<size_t>(stmt->slot)].name});
  }
  for (const ir::Stmt child : stmt->children()) Walk(program, kernel, child, rows);
}

}  // namespace

std::vector<RowStage> RowStages(const ir::Program& program) {
  std::vector<RowStage> rows;
  for (const ir::Kernel& kernel : program.kernels) Walk(program, kernel, kernel.body, rows);
  return rows;
}

}  // namespace kiln::features
