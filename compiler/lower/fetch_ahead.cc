#include "compiler/lower/fetch_ahead.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"

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
            const std::vector<FetchedSlot>& slots, PipelineMode mode, const CopyVar& copy_var)
      : program_(program),
        pool_(*program.pool),
        loops_(loops),
        slots_(slots),
        copy_var_(copy_var),
        asynchronous_(mode.asynchronous),
        work_first_(mode.work_first),
        spares_one_(mode.spares_one) {
    for (const FetchLoop& loop : loops) total_ *= loop.extent;
    depth_ = std::min<int64_t>(mode.depth, total_);
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
    const Stmt first = Fetch(kWhole, fetch);
    SetIteration(t);
    const Stmt current = ir::Substitute(pool_, work, names_);

    SetIteration(next);
    const Stmt load = Fetch(kLoad, fetch);
    const Stmt keep[] = {Fetch(kStore, fetch), ir::MakeBarrier(pool_)};

    const Stmt body[] = {ir::MakeIf(pool_, more, load), current,
                         ir::MakeIf(pool_, more, ir::MakeSeq(pool_, keep))};
    const Stmt all[] = {first, ir::MakeBarrier(pool_), Loop(var, body)};
    return ir::MakeSeq(pool_, all);
  }

  Stmt InRing(Stmt fetch, Stmt work) {
    const int64_t ahead = spares_one_ && depth_ > 2 ? depth_ - 2 : depth_ - 1;
    const Stmt commit = ir::MakeCommit(pool_);
    const int32_t first_var = ahead > 1 ? copy_var_(loops_.back().var, ahead) : -1;
    SetIteration(ahead > 1 ? pool_.Var(first_var) : pool_.Int(0));
    const Stmt filled[] = {Fetch(kWhole, fetch), commit};
    Stmt first = ir::MakeSeq(pool_, filled);
    if (ahead > 1) first = ir::MakeFor(pool_, first_var, ahead, LoopKind::kSerial, first);

    const int32_t var = copy_var_(loops_.back().var, total_);
    const Expr t = pool_.Var(var);
    const Expr more = pool_.Lt(t, pool_.Int(total_ - ahead));
    SetIteration(t);
    const Stmt current = ir::Substitute(pool_, work, names_);
    SetIteration(pool_.Add(t, pool_.Int(ahead)));
    const Stmt load = Fetch(kLoad, fetch);
    std::vector<Stmt> body = {ir::MakeBarrier(pool_, static_cast<int>(ahead) - 1),
                              ir::MakeIf(pool_, more, load), commit};
    body.insert(work_first_ ? body.begin() + 1 : body.end(), current);
    if (!registers_.empty()) body.push_back(ir::MakeIf(pool_, more, Fetch(kStore, fetch)));
    const Stmt all[] = {first, Loop(var, body)};
    return ir::MakeSeq(pool_, all);
  }

  // Makes the single loop of all iterations, and the registers that live through it.
  Stmt Loop(int32_t var, std::span<const Stmt> body) {
    Stmt loop = ir::MakeFor(pool_, var, total_, LoopKind::kSerial, ir::MakeSeq(pool_, body));
    for (int32_t slot : registers_) loop = ir::MakeAlloc(pool_, slot, loop);
    return loop;
  }

  // Sets the replacements of variables and fetched buffers for an iteration, given its number.
  void SetIteration(Expr t) {
    names_ = {};
    const Expr buffer = t->is_const_int() ? t : pool_.FloorMod(t, pool_.Int(depth_));
    for (const FetchedSlot& fetched : slots_) names_.SetFirstIndex(fetched.slot, buffer);
    int64_t inner = 1;
    for (size_t i = loops_.size(); i-- > 0;) {
      Expr value = inner == 1 ? t : pool_.FloorDiv(t, pool_.Int(inner));
      if (i > 0) value = pool_.FloorMod(value, pool_.Int(loops_[i].extent));
      names_.SetVar(loops_[i].var, value);
      inner *= loops_[i].extent;
    }
  }

  bool IsFetched(int32_t slot) const {
    return std::ranges::find(slots_, slot, &FetchedSlot::slot) != slots_.end();
  }

  bool IsCopied(Stmt store) const {
    const auto fetched = std::ranges::find(slots_, store->slot, &FetchedSlot::slot);
    return asynchronous_ && fetched != slots_.end() && fetched->may_copy &&
           ir::IsCopyable(program_, store->value());
  }

  // Part of a fetch. kWhole: all of it. kLoad: copies, and loads of other values into registers.
  // kStore: stores from the registers into the buffers.
  enum Part { kWhole, kLoad, kStore };

  Stmt Fetch(Part part, Stmt fetch) {
    part_ = part;
    next_register_ = 0;
    return Rewrite(fetch);
  }

  Stmt Rewrite(Stmt s) {
    switch (s->kind) {
      case StmtKind::kStore:
        return RewriteStore(s);
      case StmtKind::kIf: {
        const Stmt body = Rewrite(s->body());
        if (ir::IsEmpty(body)) return body;
        return ir::MakeIf(pool_, pool_.Substitute(s->condition(), names_), body);
      }
      case StmtKind::kFor:
        return RewriteLoop(s);
      default:
        return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
    }
  }

  // Copies have their own variables, because only one loop may bind a variable.
  Stmt RewriteLoop(Stmt s) {
    const int32_t var = copy_var_(s->var, s->extent);
    names_.SetVar(s->var, pool_.Var(var));
    inner_.push_back({var, s->extent});
    const Stmt body = Rewrite(s->body());
    inner_.pop_back();
    return ir::IsEmpty(body) ? body : ir::MakeFor(pool_, var, s->extent, s->loop_kind, body);
  }

  Stmt RewriteStore(Stmt s) {
    const bool fetched = IsFetched(s->slot), copied = IsCopied(s);
    if (copied && part_ == kStore) return ir::MakeSeq(pool_, {});
    if (fetched && !copied && part_ == kLoad) {
      registers_.push_back(NewRegisters(s->slot));
      return ir::MakeStore(pool_, registers_.back(), s->stage, PlaceInRegisters(),
                           pool_.Substitute(s->value(), names_));
    }
    const Stmt store = ir::Substitute(pool_, s, names_);
    const bool is_kept = fetched && part_ == kStore;
    if (!copied && !is_kept) return store;
    const Expr value =
        is_kept ? pool_.Load(registers_[next_register_++], PlaceInRegisters(), s->value()->type)
                : store->value();
    return ir::MakeStore(pool_, s->slot, s->stage, store->indices(), value, copied || s->is_async);
  }

  // Indices of registers for the current iteration of the fetch.
  absl::InlinedVector<Expr, 6> PlaceInRegisters() const {
    absl::InlinedVector<Expr, 6> place;
    for (const FetchLoop& loop : inner_) place.push_back(pool_.Var(loop.var));
    if (place.empty()) place.push_back(pool_.Int(0));
    return place;
  }

  int32_t NewRegisters(int32_t slot) {
    const ir::Buffer& fetched = program_.buffers[static_cast<size_t>(slot)];
    std::vector<int64_t> shape;
    for (const FetchLoop& loop : inner_) shape.push_back(loop.extent);
    if (shape.empty()) shape.push_back(1);
    return ir::AddBuffer(
        program_, {fetched.name + "_ahead", fetched.type, std::move(shape), ir::Scope::kLocal, 0});
  }

  Program& program_;
  ir::ExprPool& pool_;
  const std::vector<FetchLoop>& loops_;
  const std::vector<FetchedSlot>& slots_;
  const CopyVar& copy_var_;
  const bool asynchronous_, work_first_, spares_one_;
  int64_t total_ = 1, depth_ = 1;

  // The rewriting of a statement depends on these.
  ir::Substitution names_;
  Part part_ = kWhole;
  // Loops around the statement, inside the fetch.
  std::vector<FetchLoop> inner_;
  // Registers of each store of the fetch, in order.
  std::vector<int32_t> registers_;
  size_t next_register_ = 0;
};

}  // namespace

Stmt FetchAhead(Program& program, const std::vector<FetchLoop>& loops,
                const std::vector<FetchedSlot>& slots, PipelineMode mode, Stmt fetch, Stmt work,
                const CopyVar& copy_var) {
  return Transform(program, loops, slots, mode, copy_var).Run(fetch, work);
}

}  // namespace kiln::lower
