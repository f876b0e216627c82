#include "search/templates/loop_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace kiln::search {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Op;

constexpr int kKinds = 11;

// Its place among autotvm's 11 kinds of loops.
int PlaceOf(LoopKind kind) {
  switch (kind) {
    case LoopKind::kBlockX:
      return 0;
    case LoopKind::kBlockY:
      return 1;
    case LoopKind::kBlockZ:
      return 2;
    case LoopKind::kThreadX:
      return 3;
    case LoopKind::kThreadY:
      return 4;
    case LoopKind::kThreadZ:
      return 5;
    case LoopKind::kUnrolled:
      return 6;
    case LoopKind::kVectorized:
      return 7;
    case LoopKind::kParallel:
      return 8;
    case LoopKind::kSerial:
    case LoopKind::kCluster:
      return 9;
    case LoopKind::kVThread:
      return 10;
  }
  return 9;
}

bool IsBound(LoopKind kind) { return kind >= LoopKind::kVThread; }

float SignedLog(double x) {
  return static_cast<float>(std::copysign(std::log2(std::abs(x) + 1), x));
}

// How one loop moves one access.
struct Touch {
  double stride = 0, mod = -1;
  double count = 1, reuse = 1;
  // Of the next bound loop inside, while it is negative; then this loop's share per thread.
  double thread_count = 0, thread_reuse = 0;
};

struct Loop {
  double extent = 1, topdown = 1, bottomup = -1;
  int depth = 0;
  LoopKind kind = LoopKind::kSerial;
  int adds = 0, multiplies = 0, divides = 0;
  std::map<std::string, Touch> touches;  // by access
};

// The factors and moduli that stand above a variable in an index, innermost ones last.
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

  std::vector<Loop> Run() {
    for (const ir::Kernel& kernel : program_.kernels) Walk(kernel.body);
    return std::move(loops_);
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
    const size_t number = loops_.size();
    Loop& loop = loops_.emplace_back();
    loop.extent = static_cast<double>(stmt->extent);
    loop.topdown = topdown_;
    loop.depth = static_cast<int>(stack_.size());
    loop.kind = stmt->loop_kind;
    stack_.push_back({number, stmt->var});
    Walk(stmt->body());
    Leave(number);
    stack_.pop_back();
    topdown_ /= loops_[number].extent;
  }

  // Inner loops have been left: what they touch is known.
  void Leave(size_t number) {
    Loop& loop = loops_[number];
    for (const auto& [access, touch] : loop.touches) {
      const bool moves = touch.stride != 0;
      for (const Open& open : stack_) {
        Touch& outer = loops_[open.loop].touches[access];
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
        if (open.loop == number || !IsBound(loops_[open.loop].kind)) continue;
        Touch& outer = loops_[open.loop].touches[access];
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
    for (const Open& open : stack_) {
      const auto found = patterns.find(open.var);
      loops_[open.loop].touches[name] = found == patterns.end() ? Touch() : found->second;
    }
  }

  void Count(Expr e) {
    if (e->op == Op::kLoad) Access(e->id, e->args());
    if (stack_.empty()) return;
    Loop& loop = loops_[stack_.back().loop];
    loop.adds += e->op == Op::kAdd || e->op == Op::kSub ? 1 : 0;
    loop.multiplies += e->op == Op::kMul ? 1 : 0;
    loop.divides += e->op == Op::kDiv || e->op == Op::kFloorDiv || e->op == Op::kFloorMod ? 1 : 0;
    if (e->op == Op::kLoad) return;  // index arithmetic is none of the program's
    for (const Expr arg : e->args()) Count(arg);
  }

  struct Open {
    size_t loop;
    int32_t var;
  };
  const ir::Program& program_;
  std::vector<Loop> loops_;
  std::vector<Open> stack_;
  std::map<std::string, int> accesses_;  // of a buffer so far
  double topdown_ = 1;
};

}  // namespace

std::vector<float> LoopFeatures(const ir::Program& program) {
  std::vector<float> row;
  const auto log = [](double x) { return static_cast<float>(std::log2(x + 1)); };
  for (const Loop& loop : Extractor(program).Run()) {
    row.insert(row.end(), {log(loop.extent), static_cast<float>(loop.depth), log(loop.topdown),
                           SignedLog(loop.bottomup)});
    for (int place = 0; place < kKinds; ++place)
      row.push_back(place == PlaceOf(loop.kind) ? 1.0F : 0.0F);
    for (const int count : {loop.adds, loop.multiplies, loop.divides}) row.push_back(log(count));
    for (const auto& [access, t] : loop.touches) {
      for (const double number :
           {t.stride, t.mod, t.count, t.reuse, t.thread_count, t.thread_reuse})
        row.push_back(SignedLog(number));
    }
  }
  return row;
}

}  // namespace kiln::search
