#include "compiler/lower/loops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/instructions/computed_factor.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/partial_sums.h"

namespace kiln::lower {
namespace {

using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

// Rewrites the kinds of loops. `kind_of(loop, enclosing kinds)` returns the new kind.
template <typename KindOf>
Stmt MapKinds(ir::ExprPool& pool, Stmt s, std::vector<LoopKind>& outer, const KindOf& kind_of) {
  const auto map = [&](Stmt child) { return MapKinds(pool, child, outer, kind_of); };
  if (s->kind != StmtKind::kFor) return ir::RewriteChildren(pool, s, map);
  const LoopKind kind = kind_of(s, outer);
  outer.push_back(kind);
  const Stmt body = map(s->body());
  outer.pop_back();
  return ir::WithKind(pool, s, kind, body);
}

template <typename KindOf>
void MapKinds(Program& program, const KindOf& kind_of) {
  std::vector<LoopKind> outer;
  for (ir::Kernel& kernel : program.kernels)
    kernel.body = MapKinds(*program.pool, kernel.body, outer, kind_of);
}

bool FitsInVectorLoop(Stmt s) {
  if (s->kind == StmtKind::kAlloc || s->kind == StmtKind::kBarrier || s->kind == StmtKind::kCommit)
    return false;
  if (s->kind == StmtKind::kFor && s->loop_kind != LoopKind::kSerial &&
      s->loop_kind != LoopKind::kUnrolled)
    return false;
  return std::all_of(s->children().begin(), s->children().end(), FitsInVectorLoop);
}

bool Contains(const std::vector<LoopKind>& kinds, LoopKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Returns the coefficient of the variable in e. None: e is not linear in it with a constant factor.
std::optional<int64_t> Coefficient(ir::Expr e, int32_t var) {
  if (!ir::UsesVar(e, var)) return 0;
  if (e->op == ir::Op::kVar) return 1;
  if (e->op != ir::Op::kAdd && e->op != ir::Op::kSub && e->op != ir::Op::kMul) return std::nullopt;
  const std::optional<int64_t> a = Coefficient(e->arg(0), var), b = Coefficient(e->arg(1), var);
  if (!a || !b) return std::nullopt;
  if (e->op == ir::Op::kAdd) return *a + *b;
  if (e->op == ir::Op::kSub) return *a - *b;
  if (e->arg(1)->is_const_int()) return *a * e->arg(1)->int_value;
  if (e->arg(0)->is_const_int()) return *b * e->arg(0)->int_value;
  return std::nullopt;
}

bool IsPlain(Stmt s) {
  return s->kind == StmtKind::kFor &&
         (s->loop_kind == LoopKind::kSerial || s->loop_kind == LoopKind::kUnrolled);
}

// Finds the plain loop around one statement that has the most lanes, and makes it the innermost
// one, and vectorized.
class NestVectorizer {
 public:
  NestVectorizer(Program& program, int64_t max_lanes) : program_(program), max_lanes_(max_lanes) {}
  virtual ~NestVectorizer() = default;

  Stmt Rewrite(Stmt s) {
    std::vector<Stmt> loops;
    Stmt inner = s;
    for (; IsPlain(inner); inner = inner->body()) loops.push_back(inner);
    const auto lanes = [&](Stmt loop) {
      if (loop->extent % 2 != 0 || loop->extent > max_lanes_) return int64_t{1};
      return Allows(loop, inner, loop == loops.back()) ? loop->extent : int64_t{1};
    };
    const auto best = std::ranges::max_element(loops, {}, lanes);
    if (best != loops.end() && lanes(*best) > 1) {
      std::rotate(best, best + 1, loops.end());
      for (size_t i = loops.size(); i-- > 0;) {
        const LoopKind kind = i + 1 == loops.size() ? LoopKind::kVectorized : loops[i]->loop_kind;
        inner = ir::WithKind(*program_.pool, loops[i], kind, inner);
      }
      return inner;
    }
    return ir::RewriteChildren(*program_.pool, s, [&](Stmt child) { return Rewrite(child); });
  }

 protected:
  using Stores = absl::InlinedVector<Stmt, 2>;

  // Returns true if the iterations of `loop` may be the lanes of vectors, inside of all other loops
  // around the body.
  virtual bool Allows(Stmt loop, Stmt body, bool is_innermost) const = 0;

  ir::Scope ScopeOf(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)].scope;
  }

  // Returns the stores under conditions that are the same for all lanes. Empty: there are other
  // statements.
  static Stores UniformStores(Stmt loop, Stmt body) {
    for (; body->kind == StmtKind::kIf; body = body->body()) {
      if (ir::UsesVar(body->condition(), loop->var)) return {};
    }
    Stores stores = {body};
    if (body->kind == StmtKind::kSeq)
      stores.assign(body->children().begin(), body->children().end());
    const bool all = std::ranges::all_of(
        stores, [](Stmt s) { return s->kind == StmtKind::kStore && !s->indices().empty(); });
    return all ? stores : Stores();
  }

 protected:
  Program& program_;

 private:
  const int64_t max_lanes_;
};

class StoreVectorizer final : public NestVectorizer {
 public:
  StoreVectorizer(Program& program, int64_t max_lanes)
      : NestVectorizer(program, max_lanes), sums_(SumsOfMatrixUnits(program)) {}

 private:
  // True if the body stores registers to consecutive elements of global memory or of a cluster's
  // buffer: to one buffer, or to one buffer for each output of a stage. If a stage stores to an
  // element several times, it stores the same value. True also if the body stores sums of matrix
  // units to shared memory, where other threads add them to further sums.
  bool Allows(Stmt loop, Stmt body, bool) const override {
    const Stores stores = UniformStores(loop, body);
    return !stores.empty() && std::ranges::all_of(stores, [&](Stmt store) {
      return StoresRow(store, loop) && StoresRegisters(store, stores, loop);
    });
  }

  static bool StoresRow(Stmt store, Stmt loop) {
    for (size_t d = 0; d < store->indices().size(); ++d) {
      const int64_t wanted = d + 1 == store->indices().size() ? 1 : 0;
      if (Coefficient(store->indices()[d], loop->var) != wanted) return false;
    }
    return true;
  }

  bool StoresRegisters(Stmt store, const Stores& stores, Stmt loop) const {
    const ir::Scope to = ScopeOf(store->slot);
    if (to != ir::Scope::kOutput && to != ir::Scope::kWorkspace && to != ir::Scope::kCluster &&
        !IsPartialSum(program_, sums_, store))
      return false;
    bool from_registers = false, accumulates = false;
    ir::Visit(store->value(), [&](ir::Expr e) {
      if (e->op != ir::Op::kLoad) return;
      accumulates = accumulates || std::ranges::count(stores, e->id, &ir::StmtNode::slot) != 0;
      from_registers =
          from_registers || (ScopeOf(e->id) == ir::Scope::kLocal && ir::UsesVar(e, loop->var));
    });
    return from_registers && !accumulates &&
           std::ranges::count(stores, store->slot, &ir::StmtNode::slot) == 1;
  }

  const std::set<int32_t> sums_;
};

// The stages that read each buffer in shared memory.
using Readers = std::map<int32_t, std::set<int32_t>>;

void FindReaders(const Program& program, Stmt s, Readers& readers) {
  if (s->kind == StmtKind::kStore) {
    ir::Visit(s->value(), [&](ir::Expr e) {
      if (e->op == ir::Op::kLoad &&
          program.buffers[static_cast<size_t>(e->id)].scope == ir::Scope::kShared)
        readers[e->id].insert(s->stage);
    });
  }
  for (Stmt child : s->children()) FindReaders(program, child, readers);
}

class LoadVectorizer final : public NestVectorizer {
 public:
  LoadVectorizer(Program& program, int64_t max_lanes) : NestVectorizer(program, max_lanes) {
    for (const ir::Kernel& kernel : program.kernels) FindReaders(program, kernel.body, readers_);
  }

 private:
  // Longer loops over elements that may turn out not to be consecutive only make the code longer.
  static constexpr int64_t kMaxUnproven = 16;

  // The stores are those of all values of a reduction. Each one adds to its own.
  bool Allows(Stmt loop, Stmt body, bool is_innermost) const override {
    const Stores stores = UniformStores(loop, body);
    bool reads_row = false;
    for (Stmt store : stores) {
      const bool is_spatial = std::ranges::any_of(
          store->indices(), [&](ir::Expr e) { return ir::UsesVar(e, loop->var); });
      if (ScopeOf(store->slot) != ir::Scope::kLocal || (!is_spatial && !is_innermost)) return false;
      bool accumulates = false;
      ir::Visit(store->value(), [&](ir::Expr e) {
        if (e->op != ir::Op::kLoad) return;
        accumulates = accumulates || e->id == store->slot;
        const bool is_in_place = IsInGlobalMemory(e) || IsKeptRow(e) || IsUnpacked(store, e);
        reads_row = reads_row || (is_in_place && ReadsRow(e, loop));
      });
      if (!accumulates) return false;
    }
    return reads_row;
  }

  bool IsInGlobalMemory(ir::Expr load) const {
    const ir::Scope from = ScopeOf(load->id);
    return from == ir::Scope::kInput || from == ir::Scope::kWorkspace;
  }

  // Returns true if a row in shared memory is read that several stages read, as the reductions of
  // log_softmax do. A tile of a product has one reader, and keeps its loops.
  bool IsKeptRow(ir::Expr load) const {
    const auto readers = readers_.find(load->id);
    return readers != readers_.end() && readers->second.size() > 1;
  }

  // Is it a byte in shared memory of which threads compute a factor? Compilers read such bytes one
  // by one.
  bool IsUnpacked(Stmt store, ir::Expr load) const {
    if (ScopeOf(load->id) != ir::Scope::kShared || load->type.bytes() != 1 ||
        instructions::UsesMatrixUnits(program_, store))
      return false;
    const ir::Expr product = instructions::AddedBy(store);
    return product != nullptr && instructions::ComputedFactorOf(product).has_value();
  }

  // Returns true if the iterations of the loop read consecutive elements. Also true if an index has
  // a quotient, in which case they may be consecutive.
  bool ReadsRow(ir::Expr load, Stmt loop) const {
    if (load->num_args == 0) return false;
    for (int d = 0; d < static_cast<int>(load->num_args); ++d) {
      const int64_t wanted = d + 1 == static_cast<int>(load->num_args) ? 1 : 0;
      const std::optional<int64_t> stride = Coefficient(load->arg(d), loop->var);
      if (stride ? *stride != wanted : loop->extent > kMaxUnproven) return false;
    }
    return true;
  }

  Readers readers_;
};

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
    const Stmt result = ir::RewriteChildren(*program_.pool, s, [&](Stmt child) {
      Shape inner;
      const Stmt visited = Visit(child, inner);
      shape.steps += inner.steps;
      shape.normal_depth = std::max(shape.normal_depth, inner.normal_depth);
      shape.unroll_depth = std::max(shape.unroll_depth, inner.unroll_depth);
      return visited;
    });
    if (s->kind != StmtKind::kFor || s->loop_kind == LoopKind::kVectorized) return result;
    // Loops that other passes added have no stage and are not unrolled.
    const auto var = static_cast<size_t>(s->var);
    const int32_t stage = var < stage_of_var_.size() ? stage_of_var_[var] : -1;
    const int64_t limit =
        stage < 0 ? 0 : program_.stages[static_cast<size_t>(stage)].hints[ir::Hint::kUnroll];
    const bool automatic = s->loop_kind == LoopKind::kSerial && shape.normal_depth == 0 &&
                           shape.unroll_depth <= 8 && s->extent * shape.steps <= limit;
    if (!automatic && s->loop_kind != LoopKind::kUnrolled) {
      ++shape.normal_depth;
      return result;
    }
    shape.steps *= s->extent;
    ++shape.unroll_depth;
    return ir::WithKind(*program_.pool, result, LoopKind::kUnrolled, result->body());
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

void VectorizeStores(Program& program, int64_t max_lanes) {
  StoreVectorizer vectorizer(program, max_lanes);
  for (ir::Kernel& kernel : program.kernels) kernel.body = vectorizer.Rewrite(kernel.body);
}

void VectorizeLoads(Program& program, int64_t max_lanes) {
  LoadVectorizer vectorizer(program, max_lanes);
  for (ir::Kernel& kernel : program.kernels) kernel.body = vectorizer.Rewrite(kernel.body);
}

void AutoUnroll(Program& program, std::span<const int32_t> stage_of_var) {
  Unroller unroller(program, stage_of_var);
  for (ir::Kernel& kernel : program.kernels) {
    Unroller::Shape shape;
    kernel.body = unroller.Visit(kernel.body, shape);
  }
}

}  // namespace kiln::lower
