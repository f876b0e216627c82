// Chains of kernels, each of which reads the output of the previous kernel.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {

// y = x + 1 + 1 + ..., `length` times, over 16 elements. `kind` is the kind of each kernel's loop.
inline ir::Program MakeChain(int length, ir::LoopKind kind) {
  ProgramBuilder b;
  std::vector<int> slots = {b.Buffer("x", ir::Scope::kInput, {16})};
  const int y = b.Buffer("y", ir::Scope::kOutput, {16});
  for (int i = 1; i < length; ++i)
    slots.push_back(b.Buffer(fmt::format("w{}", i), ir::Scope::kWorkspace, {16}));
  slots.push_back(y);
  for (int i = 0; i < length; ++i) {
    const ir::Expr v = b.Var(fmt::format("v{}", i), 16);
    const ir::Expr sum =
        b.Add(b.Load(slots[static_cast<size_t>(i)], {v}), b.pool().Float(1, ir::kFloat32));
    b.Kernel(fmt::format("k{}", i),
             b.For(v, kind, b.Store(slots[static_cast<size_t>(i) + 1], {v}, sum)));
  }
  ir::Program program = b.program();
  if (kind == ir::LoopKind::kThreadX) {
    for (ir::Kernel& kernel : program.kernels) kernel.block = {16, 1, 1};
  }
  return program;
}

}  // namespace kiln::codegen
