#include "compiler/codegen/cuda/unroll.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kRegistersPerBlock = 65536;
constexpr int64_t kMaxRegisters = 255;  // per thread
// The budget for loops over register tiles.
constexpr int64_t kMaxRegisterCost = 6000;
// Stores, a vector is one, of a loop that only moves data. All its loads are in flight at once, and
// so are the addresses, in registers.
constexpr int64_t kMaxMoves = 32;
// A loop that is too long for all of it is written out so often, if that is no more than ...
constexpr int64_t kPart = 4;
constexpr int64_t kMaxPartCost = 64;
// Loops of more stay loops unless asked for.
constexpr int64_t kLongCost = 1000;
// Of a loop over an array in local memory: the compiler compares every access with every other.
constexpr int64_t kMaxMemoryCost = 48;
constexpr int64_t kMany = int64_t{1} << 30;

bool IsBound(Stmt loop) { return loop->loop_kind >= LoopKind::kBlockX; }

bool IsAsked(Stmt loop) {
  return loop->loop_kind == LoopKind::kUnrolled || loop->loop_kind == LoopKind::kVectorized ||
         loop->loop_kind == LoopKind::kVThread;
}

bool HasBarrier(Stmt stmt) {
  return stmt->kind == StmtKind::kBarrier || std::ranges::any_of(stmt->children(), HasBarrier);
}

bool HasCondition(Stmt stmt) {
  return stmt->kind == StmtKind::kIf || std::ranges::any_of(stmt->children(), HasCondition);
}

class Planner {
 public:
  Planner(const ir::Program& program, Stmt body, int64_t threads)
      : program_(program), body_(body), max_words_(MaxRegisterWords(threads)) {}

  UnrollPlan Run() {
    Collect(body_, {});
    ChooseArrays();
    AddAsked(body_);
    plan_.cost = Cost(body_);
    KeepLongLoops(body_, 1);
    return std::move(plan_);
  }

 private:
  struct Array {
    int64_t words = 0;
    bool is_memory = false;
    std::vector<Stmt> loops;  // that index it
  };

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }

  // Finds the loops that index local arrays.
  void Collect(Stmt stmt, std::vector<Stmt> around) {
    if (stmt->kind == StmtKind::kFor && !IsBound(stmt) && stmt->extent > 1) around.push_back(stmt);
    if (stmt->kind == StmtKind::kStore) Access(stmt->slot, stmt->indices(), around);
    for (Expr e : stmt->exprs()) {
      ir::Visit(e, [&](Expr node) {
        if (node->op == Op::kLoad) Access(node->id, node->args(), around);
      });
    }
    for (Stmt child : stmt->children()) Collect(child, around);
  }

  void Access(int32_t slot, std::span<const Expr> indices, const std::vector<Stmt>& around) {
    if (buffer(slot).scope != ir::Scope::kLocal) return;
    Array& array = arrays_[slot];
    array.words = (buffer(slot).bytes() + 3) / 4;
    if (array.words > max_words_ || std::ranges::any_of(indices, ir::HasLoad))
      array.is_memory = true;
    for (Stmt loop : around) {
      const bool is_indexing =
          std::ranges::any_of(indices, [&](Expr e) { return ir::UsesVar(e, loop->var); });
      if (!is_indexing) continue;
      if (HasBarrier(loop)) array.is_memory = true;
      if (std::ranges::find(array.loops, loop) == array.loops.end()) array.loops.push_back(loop);
    }
  }

  // Keeps as many arrays in registers as the budget allows; the largest go first.
  void ChooseArrays() {
    for (;;) {
      plan_.copies.clear();
      Array* largest = nullptr;
      for (auto& [slot, array] : arrays_) {
        if (array.is_memory) continue;
        for (Stmt loop : array.loops) plan_.copies[loop] = loop->extent;
        if (largest == nullptr || array.words > largest->words) largest = &array;
      }
      if (largest == nullptr || Cost(body_) <= kMaxRegisterCost) break;
      largest->is_memory = true;
    }
    // A loop over two arrays goes by the one in registers.
    for (const auto& [slot, array] : arrays_) {
      if (!array.is_memory) continue;
      for (Stmt loop : array.loops) {
        if (!plan_.copies.contains(loop)) over_memory_.insert(loop);
      }
    }
  }

  // Innermost loops first. False: a long loop in it stays one, those around it need no copies.
  bool AddAsked(Stmt stmt) {
    bool is_all = true;
    for (Stmt child : stmt->children()) is_all = AddAsked(child) && is_all;
    if (stmt->kind != StmtKind::kFor || IsBound(stmt) || stmt->extent <= 1) return is_all;
    if (plan_.copies.contains(stmt)) return is_all;
    if (!is_all) return false;
    if (!IsAsked(stmt)) return !IsLong(stmt);
    // Of a loop that only moves data. It needs no divisor: what is left over becomes a loop.
    const int64_t stores = std::max<int64_t>(MemoryStores(stmt->body()), 1);
    const int64_t most = stores < kMany ? std::max<int64_t>(kMaxMoves / stores, 1) : stmt->extent;
    const bool any = stmt->extent > most;
    for (int64_t copies = std::min(stmt->extent, most); copies > 1; --copies) {
      if (stmt->extent % copies != 0 && !(any && copies * stores <= kMaxMoves / 2)) continue;
      plan_.copies[stmt] = copies;
      const int64_t own = Cost(stmt);
      if (own <= (over_memory_.contains(stmt) ? kMaxMemoryCost : kMaxUnrolledCost) &&
          Cost(body_) <= kMaxUnrolledCost)
        return copies == stmt->extent;
    }
    plan_.copies.erase(stmt);
    return false;
  }

  // The compiler has limits of its own, but counts less than all that it will write out: not the
  // copies that the loop is in. Those each decide where there are conditions inside (a guarded tile
  // of a convolution took 11 s, and 0.6 s with its reduction kept a loop). around: copies.
  void KeepLongLoops(Stmt stmt, int64_t around) {
    const auto copies = plan_.copies.find(stmt);
    const int64_t inside =
        copies == plan_.copies.end() ? around : std::min(around * copies->second, kMany);
    for (Stmt child : stmt->children()) KeepLongLoops(child, inside);
    if (stmt->kind != StmtKind::kFor || IsBound(stmt) || stmt->extent <= 1) return;
    if (plan_.copies.contains(stmt)) return;
    const bool is_much =
        CostWrittenOut(stmt) * std::min(around, kMaxUnrolledCost) > kMaxUnrolledCost;
    if (is_much && HasCondition(stmt)) {
      plan_.copies[stmt] = 1;
    } else if (is_much || IsLong(stmt)) {
      plan_.copies[stmt] = PartOf(stmt, around);
    }
  }

  // One that is not written out in full.
  bool HasLoopLeft(Stmt stmt) const {
    if (stmt->kind == StmtKind::kFor && !IsBound(stmt) && stmt->extent > 1) {
      const auto copies = plan_.copies.find(stmt);
      if (copies != plan_.copies.end() && copies->second < stmt->extent) return true;
    }
    return std::ranges::any_of(stmt->children(), [this](Stmt child) { return HasLoopLeft(child); });
  }

  // More than one, so that several loads are in flight.
  int64_t PartOf(Stmt loop, int64_t around) const {
    if (HasBarrier(loop) || over_memory_.contains(loop) || HasLoopLeft(loop->body())) return 1;
    const int64_t cost = Cost(loop->body());
    const auto is_too_much = [&](int64_t part) {
      return cost * part > kMaxPartCost ||
             cost * part * std::min(around, kMaxUnrolledCost) > kMaxUnrolledCost;
    };
    int64_t part = kPart;
    while (part > 1 && (part > loop->extent || is_too_much(part))) part /= 2;
    return part;
  }

  bool IsLong(Stmt loop) const {
    const int64_t most = over_memory_.contains(loop) ? kMaxMemoryCost : kLongCost;
    return CostWrittenOut(loop) > most;
  }

  int64_t Cost(Stmt stmt) const {
    int64_t cost = 0;
    for (Expr e : stmt->exprs()) cost += CostOf(e);
    if (stmt->kind == StmtKind::kStore) ++cost;
    for (Stmt child : stmt->children()) cost = std::min(cost + Cost(child), kMany);
    const auto copies = plan_.copies.find(stmt);
    if (copies != plan_.copies.end())
      cost = std::min(cost * std::min(copies->second, kMany), kMany);
    return cost;
  }

  // With all of its loops unrolled, as the compiler may do on its own.
  int64_t CostWrittenOut(Stmt stmt) const {
    int64_t cost = stmt->kind == StmtKind::kStore ? 1 : 0;
    for (Expr e : stmt->exprs()) cost += CostOf(e);
    for (Stmt child : stmt->children()) cost = std::min(cost + CostWrittenOut(child), kMany);
    if (stmt->kind != StmtKind::kFor || IsBound(stmt)) return cost;
    return std::min(cost * std::min(stmt->extent, kMany), kMany);
  }

  // Stores in the text; kMany where one is to registers.
  int64_t MemoryStores(Stmt stmt) const {
    if (stmt->kind == StmtKind::kStore)
      return buffer(stmt->slot).scope == ir::Scope::kLocal ? kMany : 1;
    int64_t stores = 0;
    for (Stmt child : stmt->children()) stores = std::min(stores + MemoryStores(child), kMany);
    if (stmt->kind == StmtKind::kFor && stmt->loop_kind == LoopKind::kVectorized) return stores;
    const auto copies = plan_.copies.find(stmt);
    return copies == plan_.copies.end() ? stores : std::min(stores * copies->second, kMany);
  }

  // Reads of memory, decisions and calls; arithmetic and registers cost little.
  int64_t CostOf(Expr e) const {
    int64_t cost = 0;
    ir::Visit(e, [&](Expr node) {
      if (node->op == Op::kLoad) cost += buffer(node->id).scope == ir::Scope::kLocal ? 0 : 1;
      if (ir::IsComparison(node->op)) ++cost;
      if (node->op == Op::kCall) cost += 8;
    });
    return cost;
  }

  const ir::Program& program_;
  const Stmt body_;
  const int64_t max_words_;  // of an array in registers
  std::map<int32_t, Array> arrays_;
  absl::flat_hash_set<Stmt> over_memory_;
  UnrollPlan plan_;
};

}  // namespace

int64_t MaxRegisterWords(int64_t threads) {
  return std::min(kMaxRegisters, kRegistersPerBlock / threads) * 5 / 4;
}

UnrollPlan PlanUnrolling(const ir::Program& program, Stmt body, int64_t threads) {
  return Planner(program, body, threads).Run();
}

}  // namespace kiln::codegen
