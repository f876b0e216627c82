#include "search/templates/loop_touches.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace kiln::search {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Op;

bool IsBound(LoopKind kind) { return kind >= LoopKind::kVThread; }

// Finds the factors and moduli that apply to a variable in an index. The innermost ones count.
void FindPatterns(Expr e, double stride, double mod, std::map<int32_t, Touch>& patterns) {
  switch (e->op) {
    case Op::kVar: {
      Touch& touch = patterns[e->id];
      touch.stride = stride;
      touch.mod = mod;
      return;
    }
    case Op::kMul:
      if (e->arg(1)->is_const_int())
        return FindPatterns(e->arg(0), stride * static_cast<double>(e->arg(1)->int_value), mod,
                            patterns);
      break;
    case Op::kFloorMod:
      if (e->arg(1)->is_const_int())
        return FindPatterns(e->arg(0), stride, static_cast<double>(e->arg(1)->int_value), patterns);
      break;
    default:
      break;
  }
  for (const Expr arg : e->args()) FindPatterns(arg, stride, mod, patterns);
}

class Extractor {
 public:
  explicit Extractor(const ir::Program& program) : program_(program) {}

  LoopTouches Run() {
    for (const ir::Kernel& kernel : program_.kernels) Walk(kernel.body);
    return std::move(result_);
  }

 private:
  void Walk(ir::Stmt stmt) {
    if (stmt->kind == ir::StmtKind::kFor) return WalkLoop(stmt);
    if (stmt->kind == ir::StmtKind::kStore) {
      Access(stmt->slot, stmt->indices());
      Count(stmt->value());
    }
    for (const ir::Stmt child : stmt->children()) Walk(child);
  }

  void WalkLoop(ir::Stmt stmt) {
    topdown_ *= static_cast<double>(stmt->extent);
    const size_t number = result_.loops.size();
    TouchedLoop& loop = result_.loops.emplace_back();
    loop.extent = static_cast<double>(stmt->extent);
    loop.topdown = topdown_;
    loop.depth = static_cast<int>(stack_.size());
    loop.kind = stmt->loop_kind;
    stack_.push_back({number, stmt->var});
    Walk(stmt->body());
    Leave(number);
    stack_.pop_back();
    topdown_ /= result_.loops[number].extent;
  }

  // Inner loops have been left before, so their touches are known.
  void Leave(size_t number) {
    TouchedLoop& loop = result_.loops[number];
    for (const auto& [access, touch] : loop.touches) {
      const bool moves = touch.stride != 0;
      for (const Open& open : stack_) {
        Touch& outer = result_.loops[open.loop].touches[access];
        (moves ? outer.count : outer.reuse) *= loop.extent;
      }
    }
    for (auto& [access, touch] : loop.touches) {
      if (touch.thread_count >= 0) continue;
      touch.thread_count = touch.count / -touch.thread_count;
      touch.thread_reuse = touch.reuse / -touch.thread_reuse;
    }
    for (const auto& [access, touch] : loop.touches)
      loop.bottomup = std::max(loop.bottomup, touch.count * touch.reuse);
    if (!IsBound(loop.kind)) return;
    for (const auto& [access, touch] : loop.touches) {
      for (const Open& open : stack_) {
        if (open.loop == number || !IsBound(result_.loops[open.loop].kind)) continue;
        Touch& outer = result_.loops[open.loop].touches[access];
        outer.thread_count = -touch.count;
        outer.thread_reuse = -touch.reuse;
      }
    }
  }

  void Access(int32_t slot, std::span<const Expr> indices) {
    const ir::Buffer& buffer = program_.buffers[static_cast<size_t>(slot)];
    std::map<int32_t, Touch> patterns;
    double stride = 1;
    for (size_t i = indices.size(); i-- > 0;) {
      FindPatterns(indices[i], stride, -1, patterns);
      stride *= static_cast<double>(buffer.shape[i]);
    }
    const std::string name = fmt::format("{}_{}", buffer.name, accesses_[buffer.name]++);
    const int order = static_cast<int>(result_.accesses.size());
    result_.accesses[name] = {.buffer = slot, .order = order};
    for (const Open& open : stack_) {
      const auto found = patterns.find(open.var);
      result_.loops[open.loop].touches[name] = found == patterns.end() ? Touch() : found->second;
    }
  }

  void Count(Expr e) {
    if (e->op == Op::kLoad) Access(e->id, e->args());
    if (stack_.empty()) return;
    TouchedLoop& loop = result_.loops[stack_.back().loop];
    loop.adds += e->op == Op::kAdd || e->op == Op::kSub ? 1 : 0;
    loop.multiplies += e->op == Op::kMul ? 1 : 0;
    loop.divides += e->op == Op::kDiv || e->op == Op::kFloorDiv || e->op == Op::kFloorMod ? 1 : 0;
    if (e->op == Op::kLoad) return;  // index arithmetic is not counted
    for (const Expr arg : e->args()) Count(arg);
  }

  struct Open {
    size_t loop;
    int32_t var;
  };
  const ir::Program& program_;
  LoopTouches result_;
  std::vector<Open> stack_;
  std::map<std::string, int> accesses_;  // accesses of each buffer so far
  double topdown_ = 1;
};

}  // namespace

LoopTouches FindTouches(const ir::Program& program) { return Extractor(program).Run(); }

}  // namespace kiln::search
