// Reductions over the threads of a block. Internal to this folder.
//
// A program reduces over threads by a tree in shared memory:
//
//   tree[t] = mine; barrier; if (t < n/2) tree[t] = tree[t] op tree[t + n/2]; barrier; ...
//   if (t == 0) ... tree[0] ...
//
// Where nothing else reads the tree, the threads of a warp exchange their values through shuffles
// of registers, and only warps among each other through shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

inline constexpr int64_t kWarpThreads = instructions::kWarpThreads;

// Several values may be reduced together: a tree for each.
struct WarpReduction {
  std::vector<ir::Stmt> first;  // the stores of the threads' own values
  std::vector<ir::Stmt> level;  // those of the first level, as the others are
  int32_t thread = -1;          // variable
  int64_t threads = 0;          // a power of 2
  size_t count = 0;             // statements
};

struct WarpReductions {
  std::map<ir::Stmt, WarpReduction> by_first;  // [its first statement]

  // Is the shared buffer a tree that needs no memory, because its threads are in one warp?
  bool IsInRegisters(int32_t slot) const;
};

WarpReductions FindWarpReductions(const ir::Program& program, const ir::Kernel& kernel);

// Every distinct load of each expression in the statement.
void VisitLoads(ir::Stmt stmt, absl::FunctionRef<void(ir::Expr)> visit);

}  // namespace kiln::codegen
