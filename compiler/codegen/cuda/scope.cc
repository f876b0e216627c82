#include "compiler/codegen/cuda/scope.h"

namespace kiln::codegen {

CudaScope::CudaScope(const ir::Program& program, const std::vector<std::string>& names)
    : names_(names) {
  for (const ir::LoopVar& var : program.vars)
    values_.push_back(simplifier_.Var(simplifier_.AddVar(var.extent)));
}

int32_t CudaScope::ChunkVar(int32_t var, int lanes, int64_t extent) {
  const auto [at, is_new] = chunk_vars_[var].try_emplace(lanes, -1);
  if (is_new) at->second = AddVar(extent);
  return at->second;
}

int32_t CudaScope::OwnVar(std::string_view key, int64_t extent) {
  const auto [at, is_new] = own_vars_.try_emplace({std::string(key), extent}, -1);
  if (is_new) at->second = AddVar(extent);
  return at->second;
}

int32_t CudaScope::AddVar(int64_t extent) {
  const int32_t var = simplifier_.AddVar(extent);
  values_.push_back(simplifier_.Var(var));
  names_.emplace_back();
  return var;
}

}  // namespace kiln::codegen
