#include "compiler/codegen/cuda/scope.h"

namespace kiln::codegen {

CudaScope::CudaScope(const ir::Program& program, const std::vector<std::string>& names)
    : names_(names) {
  for (const ir::LoopVar& var : program.vars)
    values_.push_back(simplifier_.Var(simplifier_.AddVar(var.extent)));
}

int32_t CudaScope::ChunkVar(int32_t var, int lanes, int64_t extent) {
  const auto [at, is_new] = chunk_vars_[var].try_emplace(lanes, -1);
  if (is_new) {
    at->second = simplifier_.AddVar(extent);
    values_.push_back(simplifier_.Var(at->second));
    names_.emplace_back();
  }
  return at->second;
}

}  // namespace kiln::codegen
