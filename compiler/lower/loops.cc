#include "compiler/lower/loops.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace kiln::lower {
namespace {

using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

// The same statement with other children.
Stmt Rebuild(ir::ExprPool& pool, Stmt s, const std::vector<Stmt>& children) {
  if (std::equal(children.begin(), children.end(), s->children().begin(), s->children().end()))
    return s;
  switch (s->kind) {
    case StmtKind::kFor:
      return ir::MakeFor(pool, s->var, s->extent, s->loop_kind, children[0]);
    case StmtKind::kIf:
      return ir::MakeIf(pool, s->condition(), children[0]);
    case StmtKind::kSeq:
      return ir::MakeSeq(pool, children);
    case StmtKind::kAlloc:
      return ir::MakeAlloc(pool, s->slot, children[0]);
    case StmtKind::kStore:
    case StmtKind::kBarrier:
      return s;
  }
  return s;
}

// Rewrites the kinds of loops: `kind_of(loop, enclosing kinds)` gives the new one.
template <typename KindOf>
Stmt MapKinds(ir::ExprPool& pool, Stmt s, std::vector<LoopKind>& outer, const KindOf& kind_of) {
  const LoopKind kind = s->kind == StmtKind::kFor ? kind_of(s, outer) : LoopKind::kSerial;
  if (s->kind == StmtKind::kFor) outer.push_back(kind);
  std::vector<Stmt> children;
  children.reserve(s->num_children);
  for (Stmt child : s->children()) children.push_back(MapKinds(pool, child, outer, kind_of));
  if (s->kind != StmtKind::kFor) return Rebuild(pool, s, children);
  outer.pop_back();
  if (kind == s->loop_kind) return Rebuild(pool, s, children);
  return ir::MakeFor(pool, s->var, s->extent, kind, children[0]);
}

template <typename KindOf>
void MapKinds(Program& program, const KindOf& kind_of) {
  std::vector<LoopKind> outer;
  for (ir::Kernel& kernel : program.kernels)
    kernel.body = MapKinds(*program.pool, kernel.body, outer, kind_of);
}

bool FitsInVectorLoop(Stmt s) {
  if (s->kind == StmtKind::kAlloc || s->kind == StmtKind::kBarrier) return false;
  if (s->kind == StmtKind::kFor && s->loop_kind != LoopKind::kSerial &&
      s->loop_kind != LoopKind::kUnrolled)
    return false;
  return std::all_of(s->children().begin(), s->children().end(), FitsInVectorLoop);
}

bool Contains(const std::vector<LoopKind>& kinds, LoopKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

class Unroller {
 public:
  Unroller(Program& program, std::span<const int32_t> stage_of_var)
      : program_(program), stage_of_var_(stage_of_var) {}

  struct Shape {
    int64_t steps = 0;
    int normal_depth = 0, unroll_depth = 0;
  };

  Stmt Visit(Stmt s, Shape& shape) {
    if (s->kind == StmtKind::kStore) {
      ++shape.steps;
      return s;
    }
    std::vector<Stmt> children;
    children.reserve(s->num_children);
    for (Stmt child : s->children()) {
      Shape inner;
      children.push_back(Visit(child, inner));
      shape.steps += inner.steps;
      shape.normal_depth = std::max(shape.normal_depth, inner.normal_depth);
      shape.unroll_depth = std::max(shape.unroll_depth, inner.unroll_depth);
    }
    if (s->kind != StmtKind::kFor || s->loop_kind == LoopKind::kVectorized)
      return Rebuild(*program_.pool, s, children);
    // Loops that other passes added have no stage and are not unrolled.
    const int64_t limit = static_cast<size_t>(s->var) < stage_of_var_.size()
                              ? program_.stages[stage_of_var_[s->var]].auto_unroll_max_step
                              : 0;
    const bool automatic = s->loop_kind == LoopKind::kSerial && shape.normal_depth == 0 &&
                           shape.unroll_depth <= 8 && s->extent * shape.steps <= limit;
    if (!automatic && s->loop_kind != LoopKind::kUnrolled) {
      ++shape.normal_depth;
      return Rebuild(*program_.pool, s, children);
    }
    shape.steps *= s->extent;
    ++shape.unroll_depth;
    if (s->loop_kind == LoopKind::kUnrolled) return Rebuild(*program_.pool, s, children);
    return ir::MakeFor(*program_.pool, s->var, s->extent, LoopKind::kUnrolled, children[0]);
  }

 private:
  Program& program_;
  std::span<const int32_t> stage_of_var_;
};

}  // namespace

void SerializeNestedParallel(Program& program) {
  MapKinds(program, [](Stmt loop, const std::vector<LoopKind>& outer) {
    if (loop->loop_kind != LoopKind::kParallel) return loop->loop_kind;
    const bool nested = Contains(outer, LoopKind::kParallel) ||
                        Contains(outer, LoopKind::kVectorized) ||
                        Contains(outer, LoopKind::kUnrolled);
    return nested ? LoopKind::kSerial : LoopKind::kParallel;
  });
}

void LegalizeVectorized(Program& program, int64_t max_lanes) {
  MapKinds(program, [max_lanes](Stmt loop, const std::vector<LoopKind>&) {
    if (loop->loop_kind != LoopKind::kVectorized) return loop->loop_kind;
    return loop->extent <= max_lanes && FitsInVectorLoop(loop->body()) ? LoopKind::kVectorized
                                                                       : LoopKind::kSerial;
  });
}

void AutoUnroll(Program& program, std::span<const int32_t> stage_of_var) {
  Unroller unroller(program, stage_of_var);
  for (ir::Kernel& kernel : program.kernels) {
    Unroller::Shape shape;
    kernel.body = unroller.Visit(kernel.body, shape);
  }
}

}  // namespace kiln::lower
