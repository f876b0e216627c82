#include "compiler/codegen/cuda/swizzle.h"

#include <optional>

namespace kiln::codegen {
namespace {

constexpr int64_t kPieceBytes = 16, kGroupRows = 8;

std::optional<Swizzle> SwizzleOf(const ir::Buffer& buffer) {
  if (buffer.shape.empty() || buffer.num_elements() == 0) return std::nullopt;
  const int64_t element = buffer.type.bytes(), row = buffer.shape.back();
  for (const int64_t bytes : {int64_t{128}, int64_t{64}, int64_t{32}, kPieceBytes}) {
    const int64_t width = bytes / element;
    if (row % width == 0)
      return Swizzle{.bytes = bytes, .width = width, .panel = buffer.num_elements() / row * width};
  }
  return std::nullopt;
}

// fn(store) for every store of a stage with the hint.
template <typename Fn>
void VisitStores(const ir::Program& program, ir::Stmt stmt, Fn&& fn) {
  if (stmt->kind == ir::StmtKind::kStore &&
      program.stages[static_cast<size_t>(stmt->stage)].hints[ir::Hint::kSwizzle] != 0)
    fn(stmt);
  for (ir::Stmt child : stmt->children()) VisitStores(program, child, fn);
}

}  // namespace

std::pair<arith::Linear, arith::Linear> InPeriods(const Swizzle& swizzle,
                                                  const arith::Linear& offset) {
  const int64_t period = swizzle.period();  // a power of two
  arith::Linear rest = arith::Constant(offset.constant & (period - 1)),
                periods = arith::Constant(offset.constant - rest.constant);
  for (const arith::Term& term : offset.terms)
    (term.coefficient % period == 0 ? periods : rest).AddTerm(term.atom, term.coefficient);
  return {periods, rest};
}

arith::Linear Interleaved(arith::Simplifier& simplifier, const arith::Linear& row, int64_t rows) {
  const int64_t groups = rows / kGroupRows;
  const arith::Linear group = simplifier.FloorDiv(row, kGroupRows),
                      in_tile = simplifier.FloorMod(group, groups);
  const arith::Linear place = simplifier.FloorDiv(group, groups) * groups +
                              simplifier.FloorMod(in_tile, groups / 2) * 2 +
                              simplifier.FloorDiv(in_tile, groups / 2);
  return place * kGroupRows + simplifier.FloorMod(row, kGroupRows);
}

Swizzles FindSwizzles(const ir::Program& program, const ir::Kernel& kernel) {
  Swizzles swizzles;
  VisitStores(program, kernel.body, [&](ir::Stmt store) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(store->slot)];
    if (buffer.scope != ir::Scope::kShared) return;
    if (const std::optional<Swizzle> swizzle = SwizzleOf(buffer))
      swizzles.emplace(store->slot, *swizzle);
  });
  return swizzles;
}

Status CheckSwizzles(const ir::Program& program, const ir::Kernel& kernel) {
  const Swizzles swizzles = FindSwizzles(program, kernel);
  Status status;
  VisitStores(program, kernel.body, [&](ir::Stmt store) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(store->slot)];
    // On their way tiles may be in registers.
    if (!status.ok() || swizzles.contains(store->slot) || buffer.scope == ir::Scope::kLocal) return;
    const std::string& stage = program.stages[static_cast<size_t>(store->stage)].name;
    status =
        buffer.scope == ir::Scope::kShared
            ? InvalidArgument("stage '{}' can't be swizzled: its rows are no multiple of {} bytes",
                              stage, kPieceBytes)
            : InvalidArgument("stage '{}' can't be swizzled: it is not in shared memory", stage);
  });
  return status;
}

}  // namespace kiln::codegen
