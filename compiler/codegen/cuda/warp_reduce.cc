#include "compiler/codegen/cuda/warp_reduce.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

// The stores of a statement that is nothing else.
std::vector<Stmt> OnlyStores(Stmt stmt) {
  if (stmt->kind == StmtKind::kStore) return {stmt};
  if (stmt->kind != StmtKind::kSeq) return {};
  for (Stmt child : stmt->children()) {
    if (child->kind != StmtKind::kStore) return {};
  }
  return {stmt->children().begin(), stmt->children().end()};
}

bool IsVar(Expr e, int32_t var) { return e->op == Op::kVar && e->id == var; }

bool IsThreadZero(Stmt stmt, int32_t thread) {
  if (stmt->kind != StmtKind::kIf) return false;
  const Expr condition = stmt->condition();
  return condition->op == Op::kEq && IsVar(condition->arg(0), thread) &&
         condition->arg(1)->is_const_int(0);
}

// How far the element that `load` reads is from the thread's own; -1: something else.
int64_t Distance(Expr load, std::span<const Expr> own, int32_t thread) {
  if (load->args().size() != own.size()) return -1;
  for (size_t i = 0; i + 1 < own.size(); ++i) {
    if (load->arg(static_cast<int>(i)) != own[i]) return -1;
  }
  const Expr last = load->args().back();
  if (IsVar(last, thread)) return 0;
  if (last->op != Op::kAdd || !IsVar(last->arg(0), thread) || !last->arg(1)->is_const_int())
    return -1;
  return last->arg(1)->int_value;
}

class Matcher {
 public:
  Matcher(const ir::Program& program, const ir::Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  WarpReductions Run() {
    Find(kernel_.body);
    return std::move(found_);
  }

 private:
  void Find(Stmt stmt);
  std::optional<WarpReduction> Match(std::span<const Stmt> stmts) const;
  bool MatchLevel(Stmt stmt, int64_t half, WarpReduction& match) const;
  bool HasOtherUses(const WarpReduction& match, Stmt reader) const;

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  std::set<int32_t> thread_x_;  // variables of the loops so far
  WarpReductions found_;
};

void Matcher::Find(Stmt stmt) {
  if (stmt->kind == StmtKind::kFor && stmt->loop_kind == ir::LoopKind::kThreadX)
    thread_x_.insert(stmt->var);
  if (stmt->kind == StmtKind::kSeq) {
    for (size_t i = 0; i < stmt->children().size(); ++i) {
      const auto match = Match(stmt->children().subspan(i));
      if (match) found_.by_first[stmt->children()[i]] = *match;
    }
  }
  for (Stmt child : stmt->children()) Find(child);
}

std::optional<WarpReduction> Matcher::Match(std::span<const Stmt> stmts) const {
  WarpReduction match;
  size_t i = 0;
  for (; i < stmts.size() && stmts[i]->kind == StmtKind::kStore; ++i) {
    const Stmt store = stmts[i];
    const Expr last = store->indices().empty() ? nullptr : store->indices().back();
    if (program_.buffers[static_cast<size_t>(store->slot)].scope != ir::Scope::kShared ||
        last == nullptr || last->op != Op::kVar)
      break;
    match.first.push_back(store);
  }
  if (match.first.empty()) return std::nullopt;
  match.thread = match.first[0]->indices().back()->id;
  match.threads = program_.vars[static_cast<size_t>(match.thread)].extent;
  if (!thread_x_.contains(match.thread) || kernel_.block[0] != match.threads || match.threads < 2 ||
      !std::has_single_bit(static_cast<uint64_t>(match.threads)))
    return std::nullopt;
  const int64_t all = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  if (match.threads > kWarpThreads ? all != match.threads || match.first[0]->indices().size() > 1
                                   : all > kWarpThreads && all % kWarpThreads != 0)
    return std::nullopt;
  const auto is_barrier = [&] {
    return i < stmts.size() && stmts[i]->kind == StmtKind::kBarrier && !stmts[i++]->is_of_warp;
  };
  if (!is_barrier()) return std::nullopt;
  for (int64_t half = match.threads / 2; half > 0; half /= 2) {
    if (i >= stmts.size() || !MatchLevel(stmts[i], half, match)) return std::nullopt;
    ++i;
    if (!is_barrier()) return std::nullopt;
  }
  match.count = i;
  if (i >= stmts.size() || !IsThreadZero(stmts[i], match.thread)) return std::nullopt;
  return HasOtherUses(match, stmts[i]) ? std::nullopt : std::optional(match);
}

bool Matcher::MatchLevel(Stmt stmt, int64_t half, WarpReduction& match) const {
  if (stmt->kind != StmtKind::kIf) return false;
  const Expr condition = stmt->condition();
  if (condition->op != Op::kLt || !IsVar(condition->arg(0), match.thread) ||
      !condition->arg(1)->is_const_int(half))
    return false;
  const std::vector<Stmt> stores = OnlyStores(stmt->body());
  if (stores.size() != match.first.size()) return false;
  for (size_t k = 0; k < stores.size(); ++k) {
    // In any order: one that another one reads is stored after that.
    const auto own =
        std::ranges::find(match.first, stores[k]->slot, [](Stmt s) { return s->slot; });
    if (own == match.first.end() || !std::ranges::equal(stores[k]->indices(), (*own)->indices()))
      return false;
    // All values are computed before any is stored: nothing may read what was just stored.
    bool fits = true;
    const std::span<const Stmt> before(stores.data(), k);
    ir::Visit(stores[k]->value(), [&](Expr node) {
      if (node->op != Op::kLoad) return;
      const auto tree = std::ranges::find(match.first, node->id, [](Stmt s) { return s->slot; });
      const int64_t distance =
          tree == match.first.end() ? -1 : Distance(node, (*tree)->indices(), match.thread);
      fits &= distance == 0 || distance == half;
      fits &= std::ranges::find(before, node->id, [](Stmt s) { return s->slot; }) == before.end();
    });
    if (!fits) return false;
  }
  if (match.level.empty()) match.level = stores;
  return true;
}

// Is the tree used outside of its reduction and the statement that reads the result?
bool Matcher::HasOtherUses(const WarpReduction& match, Stmt reader) const {
  int64_t inside = 0, all = 0;
  bool is_result = true;
  const auto is_tree = [&](int32_t slot) {
    return std::ranges::any_of(match.first, [&](Stmt s) { return s->slot == slot; });
  };
  VisitLoads(reader, [&](Expr load) {
    if (!is_tree(load->id)) return;
    ++inside;
    const std::span<const Expr> own = match.first[0]->indices();
    is_result &= load->args().size() == own.size() && load->args().back()->is_const_int(0) &&
                 std::equal(own.begin(), own.end() - 1, load->args().begin());
  });
  VisitLoads(kernel_.body, [&](Expr load) { all += is_tree(load->id); });
  int64_t levels = 0;
  for (Stmt store : match.level) VisitLoads(store, [&](Expr load) { levels += is_tree(load->id); });
  return !is_result || all != inside + levels * std::countr_zero(uint64_t(match.threads));
}

}  // namespace

bool WarpReductions::IsInRegisters(int32_t slot) const {
  return std::ranges::any_of(by_first, [&](const auto& entry) {
    return entry.second.threads <= kWarpThreads &&
           std::ranges::any_of(entry.second.first, [&](Stmt s) { return s->slot == slot; });
  });
}

WarpReductions FindWarpReductions(const ir::Program& program, const ir::Kernel& kernel) {
  return Matcher(program, kernel).Run();
}

void VisitLoads(Stmt stmt, absl::FunctionRef<void(Expr)> visit) {
  for (Expr e : stmt->exprs()) {
    ir::Visit(e, [&](Expr node) {
      if (node->op == Op::kLoad) visit(node);
    });
  }
  for (Stmt child : stmt->children()) VisitLoads(child, visit);
}

}  // namespace kiln::codegen
