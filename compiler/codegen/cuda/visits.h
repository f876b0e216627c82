// Kernels of Hint::kBulkCopies in which a loop visits tiles of keys and values (bulk_visits.h), and
// the threads that copy for a kernel with the hint. Internal to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Returns true if the loop is bound to threads.
inline bool IsThread(ir::LoopKind kind) { return kind >= ir::LoopKind::kThreadX; }

struct Visits {
  ir::Stmt loop = nullptr;       // over tiles; null: the kernel has none, or not the hint
  std::vector<ir::Stmt> around;  // loops around it, outermost first
  // Threads that copy, on top of those that compute. 0: a lone group copies for itself.
  int64_t copying_threads = 0;
};

// Cost: that of lower::FindWarpRegisters if the kernel has the hint.
Visits FindVisits(const ir::Program& program, const ir::Kernel& kernel);

// Returns the statements of a visit, which a condition may stand around.
std::vector<ir::Stmt> StatementsOf(const Visits& visits);

// Returns the number of groups of four warps that compute.
int64_t GroupsOf(const ir::Kernel& kernel);

// Returns the number of threads that copy, on top of those that compute. 0: there is no hint.
int64_t CopyingThreads(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace kiln::codegen
