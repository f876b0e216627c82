#include "compiler/lower/summing_threads.h"

#include <array>

#include "base/numbers/integers.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::array kThreadLoops = {LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ};

bool ReadsWhatItWrites(Stmt store) {
  bool reads = false;
  ir::Visit(store->value(),
            [&](ir::Expr e) { reads = reads || (e->op == ir::Op::kLoad && e->id == store->slot); });
  return reads;
}

class Walk {
 public:
  Walk(const ir::Program& program, const ir::Kernel& kernel) : program_(program), kernel_(kernel) {}

  // `bound` marks the dimensions of the block whose loops are around the statement.
  Status Visit(Stmt s, std::array<bool, 3> bound) const {
    if (s->kind == StmtKind::kStore) return CheckStore(s, bound);
    for (size_t d = 0; d < bound.size(); ++d) {
      if (s->kind == StmtKind::kFor && s->loop_kind == kThreadLoops[d]) bound[d] = true;
    }
    for (Stmt child : s->children()) KILN_RETURN_IF_ERROR(Visit(child, bound));
    return OkStatus();
  }

 private:
  Status CheckStore(Stmt s, const std::array<bool, 3>& bound) const {
    const ir::Buffer& buffer = program_.buffers[static_cast<size_t>(s->slot)];
    for (size_t d = 0; d < bound.size(); ++d) {
      if (bound[d] || kernel_.block[d] == 1 || buffer.scope == ir::Scope::kLocal ||
          !ReadsWhatItWrites(s))
        continue;
      return InvalidArgument(
          "stage {} sums into {}, which the {} threads of a block share along {}, outside of their "
          "loops: each thread would add to the same elements; bind a loop of it to {}, or compute "
          "it inside of one",
          program_.stages[static_cast<size_t>(s->stage)].name, buffer.name, kernel_.block[d],
          ir::LoopKindName(kThreadLoops[d]), ir::LoopKindName(kThreadLoops[d]));
    }
    return OkStatus();
  }

  const ir::Program& program_;
  const ir::Kernel& kernel_;
};

}  // namespace

Status CheckSummingThreads(const ir::Program& program) {
  for (const ir::Kernel& kernel : program.kernels) {
    if (ProductOfCounts(kernel.block) == 1) continue;
    KILN_RETURN_IF_ERROR(Walk(program, kernel).Visit(kernel.body, {}));
  }
  return OkStatus();
}

}  // namespace kiln::lower
