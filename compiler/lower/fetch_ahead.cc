#include "compiler/lower/fetch_ahead.h"

#include <algorithm>
#include <string>

#include "absl/container/inlined_vector.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

class Transform {
 public:
  Transform(Program& program, const std::vector<FetchLoop>& loops,
            const std::vector<FetchedSlot>& slots, FetchWay way, const CopyVar& copy_var)
      : program_(program),
        pool_(*program.pool),
        loops_(loops),
        slots_(slots),
        copy_var_(copy_var),
        asynchronous_(way.asynchronous) {
    for (const FetchLoop& loop : loops) total_ *= loop.extent;
    depth_ = std::min<int64_t>(way.depth, total_);
  }

  Stmt Run(Stmt fetch, Stmt work) {
    Stmt result = asynchronous_ ? InRing(fetch, work) : ThroughRegisters(fetch, work);
    for (const FetchedSlot& fetched : slots_) {
      std::vector<int64_t>& shape = program_.buffers[static_cast<size_t>(fetched.slot)].shape;
      shape.insert(shape.begin(), depth_);
    }
    return result;
  }

 private:
  Stmt ThroughRegisters(Stmt fetch, Stmt work) {
    const int32_t var = copy_var_(loops_.back().var, total_);
    const Expr t = pool_.Var(var), next = pool_.Add(t, pool_.Int(1));
    const Expr more = pool_.Lt(t, pool_.Int(total_ - 1));

    SetIteration(pool_.Int(0));
    const Stmt first = Rewrite(fetch);
    const Stmt current = Work(work, t);

    SetIteration(next);
    part_ = kLoad;
    const Stmt load = Rewrite(fetch);
    part_ = kStore;
    next_register_ = 0;
    const Stmt keep[] = {Rewrite(fetch), ir::MakeBarrier(pool_)};

    const Stmt body[] = {ir::MakeIf(pool_, more, load), current,
                         ir::MakeIf(pool_, more, ir::MakeSeq(pool_, keep))};
    Stmt loop = ir::MakeFor(pool_, var, total_, LoopKind::kSerial, ir::MakeSeq(pool_, body));
    for (int32_t slot : registers_) loop = ir::MakeAlloc(pool_, slot, loop);
    const Stmt all[] = {first, ir::MakeBarrier(pool_), loop};
    return ir::MakeSeq(pool_, all);
  }

  Stmt InRing(Stmt fetch, Stmt work) {
    const int64_t ahead = depth_ - 1;
    const Stmt commit = ir::MakeCommit(pool_);
    const int32_t first_var = ahead > 1 ? copy_var_(loops_.back().var, ahead) : -1;
    SetIteration(ahead > 1 ? pool_.Var(first_var) : pool_.Int(0));
    part_ = kWhole;
    const Stmt filled[] = {Rewrite(fetch), commit};
    Stmt first = ir::MakeSeq(pool_, filled);
    if (ahead > 1) first = ir::MakeFor(pool_, first_var, ahead, LoopKind::kSerial, first);

    const int32_t var = copy_var_(loops_.back().var, total_);
    const Expr t = pool_.Var(var);
    const Expr more = pool_.Lt(t, pool_.Int(total_ - ahead));
    const Stmt current = Work(work, t);
    SetIteration(pool_.Add(t, pool_.Int(ahead)));
    part_ = kLoad;
    const Stmt load = Rewrite(fetch);
    std::vector<Stmt> body = {ir::MakeBarrier(pool_, static_cast<int>(ahead) - 1),
                              ir::MakeIf(pool_, more, load), commit, current};
    if (!registers_.empty()) {
      part_ = kStore;
      next_register_ = 0;
      body.push_back(ir::MakeIf(pool_, more, Rewrite(fetch)));
    }
    Stmt loop = ir::MakeFor(pool_, var, total_, LoopKind::kSerial, ir::MakeSeq(pool_, body));
    for (int32_t slot : registers_) loop = ir::MakeAlloc(pool_, slot, loop);
    const Stmt all[] = {first, loop};
    return ir::MakeSeq(pool_, all);
  }

  Stmt Work(Stmt work, Expr t) {
    SetIteration(t);
    part_ = kWhole;
    copy_loops_ = false;
    const Stmt result = Rewrite(work);
    copy_loops_ = true;
    return result;
  }

  // The loops' variables, given the number of the iteration, and its buffer.
  void SetIteration(Expr t) {
    buffer_ = t->is_const_int() ? t : pool_.FloorMod(t, pool_.Int(depth_));
    int64_t inner = 1;
    for (size_t i = loops_.size(); i-- > 0;) {
      Expr value = inner == 1 ? t : pool_.FloorDiv(t, pool_.Int(inner));
      if (i > 0) value = pool_.FloorMod(value, pool_.Int(loops_[i].extent));
      Set(loops_[i].var, value);
      inner *= loops_[i].extent;
    }
  }

  void Set(int32_t var, Expr value) {
    if (static_cast<size_t>(var) >= values_.size()) values_.resize(var + 1, nullptr);
    values_[static_cast<size_t>(var)] = value;
  }

  bool IsFetched(int32_t slot) const {
    return std::ranges::find(slots_, slot, &FetchedSlot::slot) != slots_.end();
  }

  bool IsCopied(Stmt store) const {
    const auto fetched = std::ranges::find(slots_, store->slot, &FetchedSlot::slot);
    return asynchronous_ && fetched != slots_.end() && fetched->may_copy &&
           ir::IsCopyable(program_, store->value());
  }

  Expr Rewrite(Expr e) {
    if (e->op == ir::Op::kVar) {
      const auto var = static_cast<size_t>(e->id);
      return var < values_.size() && values_[var] != nullptr ? values_[var] : e;
    }
    if (e->num_args == 0 && e->op != ir::Op::kLoad) return e;
    absl::InlinedVector<Expr, 6> args;
    if (e->op == ir::Op::kLoad && IsFetched(e->id)) args.push_back(buffer_);
    bool changed = !args.empty();
    for (Expr a : e->args()) {
      args.push_back(Rewrite(a));
      changed |= args.back() != a;
    }
    if (!changed) return e;
    return e->op == ir::Op::kLoad ? pool_.Load(e->id, args, e->type) : pool_.WithArgs(e, args);
  }

  Stmt Rewrite(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore:
        return RewriteStore(s);
      case StmtKind::kIf: {
        const Expr condition = Rewrite(s->condition());
        return If(condition, Rewrite(s->body()));
      }
      case StmtKind::kFor: {
        // A variable is bound by one loop: copies have their own.
        const int32_t var = copy_loops_ ? copy_var_(s->var, s->extent) : s->var;
        Set(s->var, pool_.Var(var));
        inner_.push_back({var, s->extent});
        const Stmt body = Rewrite(s->body());
        inner_.pop_back();
        if (IsNothing(body)) return body;
        return ir::MakeFor(pool_, var, s->extent, s->loop_kind, body);
      }
      case StmtKind::kSeq: {
        std::vector<Stmt> children;
        for (Stmt child : s->children()) {
          const Stmt part = Rewrite(child);
          if (!IsNothing(part)) children.push_back(part);
        }
        return ir::MakeSeq(pool_, children);
      }
      case StmtKind::kAlloc:
        return ir::MakeAlloc(pool_, s->slot, Rewrite(s->body()));
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        return s;
    }
    return s;
  }

  Stmt RewriteStore(Stmt s) {
    std::vector<Expr> mine;  // the iteration of the fetch, as a place in the registers
    for (const FetchLoop& loop : inner_) mine.push_back(pool_.Var(loop.var));
    if (mine.empty()) mine.push_back(pool_.Int(0));
    const bool fetched = IsFetched(s->slot), copied = IsCopied(s);
    if (copied && part_ == kStore) return ir::MakeSeq(pool_, {});
    if (fetched && !copied && part_ == kLoad) {
      registers_.push_back(NewRegisters(s->slot));
      return ir::MakeStore(pool_, registers_.back(), s->stage, mine, Rewrite(s->value()));
    }
    absl::InlinedVector<Expr, 6> indices;
    if (fetched) indices.push_back(buffer_);
    for (Expr index : s->indices()) indices.push_back(Rewrite(index));
    const Expr value = fetched && part_ == kStore
                           ? pool_.Load(registers_[next_register_++], mine, s->value()->type)
                           : Rewrite(s->value());
    return ir::MakeStore(pool_, s->slot, s->stage, indices, value, copied || s->is_async);
  }

  static bool IsNothing(Stmt s) { return s->kind == StmtKind::kSeq && s->num_children == 0; }
  Stmt If(Expr condition, Stmt then) {
    return IsNothing(then) ? then : ir::MakeIf(pool_, condition, then);
  }

  int32_t NewRegisters(int32_t slot) {
    const ir::Buffer& fetched = program_.buffers[static_cast<size_t>(slot)];
    std::vector<int64_t> shape;
    for (const FetchLoop& loop : inner_) shape.push_back(loop.extent);
    if (shape.empty()) shape.push_back(1);
    program_.buffers.push_back({UniqueName(fetched.name + "_ahead"), fetched.type, std::move(shape),
                                ir::Scope::kLocal, 0});
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }

  std::string UniqueName(const std::string& name) const {
    const auto taken = [&](const std::string& candidate) {
      return std::any_of(program_.buffers.begin(), program_.buffers.end(),
                         [&](const ir::Buffer& b) { return b.name == candidate; });
    };
    std::string candidate = name;
    for (int i = 1; taken(candidate); ++i) candidate = name + "_" + std::to_string(i);
    return candidate;
  }

  Program& program_;
  ir::ExprPool& pool_;
  const std::vector<FetchLoop>& loops_;
  const std::vector<FetchedSlot>& slots_;
  const CopyVar& copy_var_;
  const bool asynchronous_;
  int64_t total_ = 1, depth_ = 1;

  // What the rewriting of a statement depends on.
  std::vector<Expr> values_;  // of variables that are replaced, else null
  Expr buffer_ = nullptr;     // of the iteration
  // Of a fetch: all of it; what is copied, and what is not into registers; from there into the
  // buffers.
  enum { kWhole, kLoad, kStore } part_ = kWhole;
  bool copy_loops_ = true;
  std::vector<FetchLoop> inner_;    // around the statement, inside the fetch
  std::vector<int32_t> registers_;  // of each store of the fetch, in order
  size_t next_register_ = 0;
};

}  // namespace

Stmt FetchAhead(Program& program, const std::vector<FetchLoop>& loops,
                const std::vector<FetchedSlot>& slots, FetchWay way, Stmt fetch, Stmt work,
                const CopyVar& copy_var) {
  return Transform(program, loops, slots, way, copy_var).Run(fetch, work);
}

}  // namespace kiln::lower
