#include "compiler/lower/warp_registers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/arith/simplify.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

using instructions::kThreadColumns;

constexpr int64_t kWarp = instructions::kWarpThreads, kPair = instructions::kThreadNeighbours;
// Terms that one register of a factor of 16 bits is apart from the next one of its row.
constexpr int64_t kHalf = 8;
constexpr int64_t kMaxRegisters = 256;

bool IsBound(Stmt loop) { return loop->loop_kind >= ir::LoopKind::kBlockX; }

bool HasWarpBarrier(Stmt stmt) {
  return (stmt->kind == StmtKind::kBarrier && stmt->is_of_warp) ||
         std::ranges::any_of(stmt->children(), HasWarpBarrier);
}

// A store with the statements around it.
struct Use {
  Stmt store = nullptr;
  // Outermost first.
  std::vector<Stmt> loops, conditions;
};

// Sums by constant part. Most of the sums that are looked up differ only in that part.
class Places {
 public:
  void Add(const Linear& place, int64_t number) {
    all_[place.constant].emplace_back(place, number);
  }
  std::optional<int64_t> Find(const Linear& place) const {
    const auto same = all_.find(place.constant);
    if (same == all_.end()) return std::nullopt;
    const auto found =
        std::ranges::find(same->second, place, [](const auto& e) { return e.first; });
    return found == same->second.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<int64_t, std::vector<std::pair<Linear, int64_t>>> all_;
};

class Finder {
 public:
  Finder(const ir::Program& program, const ir::Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  WarpRegisters Run() {
    if (!HasWarpBarrier(kernel_.body)) return {};
    Collect(kernel_.body, {});
    if (!DeclareVars()) return {};
    WarpRegisters found;
    found.is_all = true;
    for (const auto& [slot, stores] : stores_) {
      const auto is_async = [](const Use& use) { return use.store->is_async; };
      if (std::ranges::none_of(stores, is_async)) {
        if (auto pairs = FindPairs(slot, stores, reads_[slot])) {
          found.pairs.emplace(slot, *std::move(pairs));
        } else if (auto rows = FindRows(slot, stores, reads_[slot])) {
          found.rows.emplace(slot, *std::move(rows));
        }
      }
      found.is_all &= found.Holds(slot) || std::ranges::all_of(stores, is_async);
    }
    return found;
  }

 private:
  bool IsShared(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)].scope == ir::Scope::kShared;
  }

  void Collect(Stmt stmt, Use around) {
    if (stmt->kind == StmtKind::kFor) {
      if (stmt->loop_kind == ir::LoopKind::kThreadX) thread_ = stmt;
      around.loops.push_back(stmt);
    }
    if (stmt->kind == StmtKind::kIf) around.conditions.push_back(stmt);
    if (stmt->kind == StmtKind::kStore) {
      around.store = stmt;
      if (IsShared(stmt->slot)) stores_[stmt->slot].push_back(around);
      std::set<int32_t> read;
      for (Expr e : stmt->exprs()) {
        ir::Visit(e, [&](Expr node) {
          if (node->op == Op::kLoad && IsShared(node->id)) read.insert(node->id);
        });
      }
      for (const int32_t slot : read) reads_[slot].push_back(around);
    }
    for (Stmt child : stmt->children()) Collect(child, around);
  }

  // A thread is number 4*row + column of its warp.
  bool DeclareVars() {
    if (thread_ == nullptr || thread_->extent % kWarp != 0 || kernel_.block[1] != 1 ||
        kernel_.block[2] != 1)
      return false;
    for (const ir::LoopVar& var : program_.vars)
      env_.push_back(simplifier_.Var(simplifier_.AddVar(var.extent)));
    const Linear warp = simplifier_.Var(simplifier_.AddVar(thread_->extent / kWarp));
    const Linear row = simplifier_.Var(simplifier_.AddVar(kWarp / kThreadColumns));
    column_ = simplifier_.Var(simplifier_.AddVar(kThreadColumns));
    env_[static_cast<size_t>(thread_->var)] = warp * kWarp + row * kThreadColumns + column_;
    return true;
  }

  void Set(int32_t var, const Linear& value) { env_[static_cast<size_t>(var)] = value; }
  void Reset(int32_t var) { Set(var, simplifier_.Var(var)); }

  Linear ValueOf(Expr index) { return simplifier_.ToLinear(index, &env_); }
  Linear PlaceOf(int32_t slot, std::span<const Expr> indices) {
    std::vector<Linear> values;
    for (Expr index : indices) values.push_back(ValueOf(index));
    return arith::Flatten(simplifier_, values, program_.buffers[static_cast<size_t>(slot)].shape);
  }

  // Returns the thread's loops whose variables are in the indices, except for one variable.
  static std::vector<Stmt> LoopsIn(std::span<const Expr> indices, const Use& use,
                                   int32_t but = -1) {
    std::vector<Stmt> loops;
    for (Stmt loop : use.loops) {
      const bool is_used =
          std::ranges::any_of(indices, [&](Expr index) { return ir::UsesVar(index, loop->var); });
      if (is_used && !IsBound(loop) && loop->var != but) loops.push_back(loop);
    }
    return loops;
  }

  static int64_t CountOf(const std::vector<Stmt>& loops) {
    int64_t count = 1;
    for (Stmt loop : loops) count = std::min(count * loop->extent, kMaxRegisters + 1);
    return count;
  }

  static RegisterNumber NumberBy(const std::vector<Stmt>& loops) {
    RegisterNumber number;
    int64_t stride = 1;
    for (size_t i = loops.size(); i-- > 0; stride *= loops[i]->extent)
      number.emplace_back(loops[i]->var, stride);
    return number;
  }

  // Sets the variables of the loops to their values in the n-th iteration of all loops together.
  std::vector<int64_t> SetIteration(const std::vector<Stmt>& loops, int64_t n) {
    std::vector<int64_t> values(loops.size());
    for (size_t i = loops.size(); i-- > 0; n /= loops[i]->extent) {
      values[i] = n % loops[i]->extent;
      Set(loops[i]->var, arith::Constant(values[i]));
    }
    return values;
  }
  void ResetAll(const std::vector<Stmt>& loops) {
    for (Stmt loop : loops) Reset(loop->var);
  }

  // ---- pairs

  // All stores must have each register at the same place.
  std::optional<HeldPairs> FindPairs(int32_t slot, const std::vector<Use>& stores,
                                     const std::vector<Use>& reads) {
    HeldPairs held;
    std::vector<Linear> places;
    for (const Use& store : stores) {
      std::vector<Linear> of_store;
      auto stored = FindStored(slot, store, of_store);
      if (!stored || (!places.empty() && of_store != places)) return std::nullopt;
      held.stores.push_back(*std::move(stored));
      places = std::move(of_store);
    }
    held.registers = std::ssize(places);
    Places numbers;
    for (int64_t n = 0; n < held.registers; ++n) numbers.Add(places[static_cast<size_t>(n)], n);
    for (const Use& read : reads) {
      auto found = FindRead(slot, read, numbers);
      if (!found) return std::nullopt;
      held.reads.push_back(*std::move(found));
    }
    if (held.reads.empty()) return std::nullopt;
    return held;
  }

  // `places` are set to those of the registers, in their order.
  std::optional<HeldPairs::Stored> FindStored(int32_t slot, const Use& store,
                                              std::vector<Linear>& places) {
    HeldPairs::Stored held;
    held.store = store.store;
    const Expr value = store.store->value();
    const bool is_rounded = value->op == Op::kCast && value->type.bits == 16 &&
                            value->type.is_float() && value->arg(0)->type == ir::kFloat32;
    const Stmt pair = store.loops.back();
    if (!is_rounded || pair->extent != kPair || IsBound(pair) || pair->body() != store.store)
      return std::nullopt;
    held.pair_var = pair->var;
    const std::vector<Stmt> loops = LoopsIn(store.store->indices(), store, pair->var);
    const int64_t registers = CountOf(loops);
    if (registers > kMaxRegisters) return std::nullopt;
    held.number = NumberBy(loops);
    for (int64_t n = 0; n < registers; ++n) {
      SetIteration(loops, n);
      Set(pair->var, arith::Constant(0));
      const Linear first = PlaceOf(slot, store.store->indices());
      Set(pair->var, arith::Constant(1));
      if (PlaceOf(slot, store.store->indices()) - first != arith::Constant(1)) return std::nullopt;
      places.push_back(first);
    }
    ResetAll(loops);
    Reset(pair->var);
    return held;
  }

  std::optional<HeldPairs::Read> FindRead(int32_t slot, const Use& read, const Places& numbers) {
    HeldPairs::Read held;
    held.reader = read.store;
    const ir::Hints& hints = program_.stages[static_cast<size_t>(read.store->stage)].hints;
    const Expr product = instructions::AddedBy(read.store);
    if (product == nullptr || ir::MatrixUnitScopeOf(hints) == ir::MatrixUnitScope::kNone)
      return std::nullopt;
    const auto factors = instructions::MatrixFactorsOf(product);
    if (!factors || (factors->a->id == slot) == (factors->b->id == slot)) return std::nullopt;
    const Expr load = factors->a->id == slot ? factors->a : factors->b;
    std::vector<Stmt> rows;
    Stmt terms = nullptr;
    for (Stmt loop : LoopsIn(load->args(), read)) {
      const bool is_row = std::ranges::any_of(
          read.store->indices(), [&](Expr index) { return ir::UsesVar(index, loop->var); });
      if (is_row) {
        rows.push_back(loop);
      } else if (terms == nullptr) {
        terms = loop;
      } else {
        return std::nullopt;
      }
    }
    if (terms == nullptr || terms->extent % (2 * kHalf) != 0) return std::nullopt;
    held.term_var = terms->var;
    for (Stmt loop : rows) held.row_vars.push_back(loop->var);
    bool is_own = true;
    for (int64_t n = 0; n < CountOf(rows) && is_own; ++n) {
      const std::vector<int64_t> values = SetIteration(rows, n);
      for (int64_t term = 0; term < terms->extent && is_own; term += kHalf) {
        Set(terms->var, column_ * kPair + arith::Constant(term));
        const std::optional<int64_t> number = numbers.Find(PlaceOf(slot, load->args()));
        is_own = number.has_value();
        if (is_own) held.register_of[{values, term}] = *number;
      }
    }
    ResetAll(rows);
    Reset(terms->var);
    return is_own ? std::optional(std::move(held)) : std::nullopt;
  }

  // ---- rows

  // Returns the four loads of op(op(x, y), op(z, w)).
  static std::optional<std::vector<Expr>> FourOf(Expr value, int32_t slot) {
    if (value->num_args != 2 || !ir::IsBinary(value->op)) return std::nullopt;
    std::vector<Expr> loads;
    for (Expr half : value->args()) {
      if (half->op != value->op) return std::nullopt;
      for (Expr load : half->args()) {
        if (load->op != Op::kLoad || load->id != slot) return std::nullopt;
        loads.push_back(load);
      }
    }
    return loads;
  }

  static bool CombinesInAnyOrder(Op op) {
    return op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin;
  }

  // Returns true if all threads of a warp agree on the conditions.
  bool IsUniform(const Use& use) const {
    return std::ranges::none_of(use.conditions, [&](Stmt s) {
      return ir::UsesVar(s->condition(), thread_->var) || ir::HasLoad(s->condition());
    });
  }

  // Pairs each store with the read behind it.
  std::optional<HeldRows> FindRows(int32_t slot, const std::vector<Use>& stores,
                                   const std::vector<Use>& reads) {
    if (stores.size() != reads.size()) return std::nullopt;
    HeldRows held;
    for (size_t i = 0; i < stores.size(); ++i) {
      int64_t registers = 0;
      auto exchange = FindExchange(slot, stores[i], reads[i], registers);
      if (!exchange || (i > 0 && registers != held.registers)) return std::nullopt;
      held.registers = registers;
      held.exchanges.push_back(*std::move(exchange));
    }
    return held;
  }

  std::optional<HeldRows::Exchange> FindExchange(int32_t slot, const Use& store, const Use& read,
                                                 int64_t& registers) {
    const auto loads = FourOf(read.store->value(), slot);
    const std::span<const Expr> own = store.store->indices();
    if (!loads || own.empty() || store.store->value()->type != ir::kFloat32 ||
        !CombinesInAnyOrder(read.store->value()->op) || !IsUniform(store) || !IsUniform(read))
      return std::nullopt;
    const std::vector<Stmt> stored = LoopsIn(own, store),
                            read_by = LoopsIn(loads->front()->args(), read);
    HeldRows::Exchange held{.store = store.store,
                            .reader = read.store,
                            .stored = NumberBy(stored),
                            .read = NumberBy(read_by),
                            .combine = read.store->value()->op};
    registers = CountOf(stored);
    if (registers > kMaxRegisters || CountOf(read_by) != registers) return std::nullopt;
    bool fits = true;
    for (int64_t n = 0; n < registers && fits; ++n) {
      SetIteration(stored, n);
      const Linear place = PlaceOf(slot, own), number = ValueOf(own.back());
      SetIteration(read_by, n);
      // Compares places in the row, which does not depend on which of the four threads stores the
      // element.
      for (size_t i = 0; i < loads->size() && fits; ++i) {
        const Linear other = PlaceOf(slot, (*loads)[i]->args());
        fits = number == column_ &&
               other - arith::Constant(static_cast<int64_t>(i)) == place - column_;
      }
    }
    ResetAll(stored);
    ResetAll(read_by);
    return fits ? std::optional(std::move(held)) : std::nullopt;
  }

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  std::map<int32_t, std::vector<Use>> stores_, reads_;
  Stmt thread_ = nullptr;

  ir::ExprPool pool_;
  arith::Simplifier simplifier_{pool_};
  // Indexed by program variable.
  std::vector<Linear> env_;
  Linear column_;
};

}  // namespace

const HeldPairs::Stored* HeldPairs::StoredBy(ir::Stmt store) const {
  const auto found = std::ranges::find(stores, store, &Stored::store);
  return found == stores.end() ? nullptr : &*found;
}

const HeldPairs::Read* HeldPairs::ReadBy(ir::Stmt reader) const {
  const auto found = std::ranges::find(reads, reader, &Read::reader);
  return found == reads.end() ? nullptr : &*found;
}

WarpRegisters FindWarpRegisters(const ir::Program& program, const ir::Kernel& kernel) {
  return Finder(program, kernel).Run();
}

}  // namespace kiln::lower
