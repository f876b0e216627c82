#include "compiler/lower/early_loads.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/linear.h"
#include "compiler/arith/simplify.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/traverse.h"
#include "compiler/lower/whole_tiles.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::LoopKind;
using ir::Program;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMaxWords = 16, kWordBytes = 4, kVectorBytes = 16, kMaxIterations = 1024;

bool IsOfWarpgroups(const ir::ProgramStage& stage) {
  return ir::MatrixUnitScopeOf(stage.hints) == ir::MatrixUnitScope::kWarpgroup;
}

bool IsBound(Stmt loop) { return loop->loop_kind >= LoopKind::kBlockX; }

class Hoister {
 public:
  explicit Hoister(Program& program) : program_(program), pool_(*program.pool), simplifier_(pool_) {
    for (const ir::LoopVar& var : program.vars) simplifier_.AddVar(var.extent);
  }

  // `is_of_thread`: each thread runs the statement, and has registers there.
  Stmt Rewrite(Stmt s, bool is_of_thread) {
    is_of_thread |= s->kind == StmtKind::kFor && s->loop_kind == LoopKind::kThreadX;
    if (s->kind == StmtKind::kSeq && is_of_thread) {
      const std::span<const Stmt> statements = s->children();
      const auto has = [&](Stmt child) { return HasProducts(child); };
      const auto first = std::ranges::find_if(statements, has);
      const auto end = std::find_if(statements.rbegin(), statements.rend(), has).base();
      if (first < end && end < statements.end())
        return WithLoads({statements.begin(), first}, {first, end}, {end, statements.end()});
    }
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child, is_of_thread); });
  }

 private:
  bool HasProducts(Stmt s) const {
    if (s->kind == StmtKind::kStore)
      return IsOfWarpgroups(program_.stages[static_cast<size_t>(s->stage)]);
    return std::ranges::any_of(s->children(), [&](Stmt child) { return HasProducts(child); });
  }

  // Puts the loads for `results` in front of the products.
  Stmt WithLoads(std::span<const Stmt> before, std::span<const Stmt> products,
                 std::span<const Stmt> results) {
    std::vector<Stmt> early;
    for (const Stmt result : results) early.push_back(WithEarlyLoads(result));
    std::vector<Stmt> statements;
    for (const std::span<const Stmt> part :
         {before, std::span<const Stmt>(loads_), products, std::span<const Stmt>(early)})
      statements.insert(statements.end(), part.begin(), part.end());
    Stmt whole = ir::MakeSeq(pool_, statements);
    for (const int32_t slot : slots_) whole = ir::MakeAlloc(pool_, slot, whole);
    loads_.clear();
    slots_.clear();
    return whole;
  }

  Stmt WithEarlyLoads(Stmt s) {
    if (s->kind == StmtKind::kFor) {
      path_.push_back(s);
      const Stmt body = WithEarlyLoads(s->body());
      path_.pop_back();
      return ir::WithBody(pool_, s, body);
    }
    // A store to shared memory writes a factor of the next products.
    if (s->kind != StmtKind::kStore || HasProducts(s) ||
        program_.buffers[static_cast<size_t>(s->slot)].scope == ir::Scope::kShared)
      return s;
    std::vector<Expr> exprs(s->exprs().begin(), s->exprs().end());
    rewritten_.clear();
    exprs.back() = WithEarlyLoads(exprs.back(), s->stage);
    if (exprs.back() == s->value()) return s;
    return ir::MakeStore(pool_, s->slot, s->stage, std::span(exprs).first(exprs.size() - 1),
                         exprs.back());
  }

  // Rewrites a value that is always computed.
  Expr WithEarlyLoads(Expr e, int32_t stage) {
    if (e->op == ir::Op::kIf) return e;
    if (const auto known = rewritten_.find(e); known != rewritten_.end()) return known->second;
    Expr result = e;
    if (e->op == ir::Op::kLoad) {
      result = EarlyLoad(e, stage);
    } else {
      std::vector<Expr> args;
      for (const Expr arg : e->args()) args.push_back(WithEarlyLoads(arg, stage));
      if (!std::ranges::equal(args, e->args())) result = pool_.WithArgs(e, args);
    }
    rewritten_[e] = result;
    return result;
  }

  // Returns the load itself if it stays at its place.
  Expr EarlyLoad(Expr load, int32_t stage) {
    const ir::Buffer& input = program_.buffers[static_cast<size_t>(load->id)];
    if (input.scope != ir::Scope::kInput || std::ranges::any_of(load->args(), ir::HasLoad))
      return load;
    const std::vector<Stmt> loops = LoopsOf(load, input.type);
    const int64_t bytes = DistinctElements(load, input, loops) * input.type.bytes(),
                  words = (bytes + kWordBytes - 1) / kWordBytes;
    if (words_ + words > kMaxWords) return load;
    words_ += words;
    ir::Buffer early{
        .name = input.name + "_early", .type = input.type, .shape = {}, .scope = ir::Scope::kLocal};
    std::vector<Expr> at;
    for (const Stmt loop : loops) {
      early.shape.push_back(loop->extent);
      at.push_back(pool_.Var(loop->var));
    }
    if (at.empty()) {
      early.shape.push_back(1);
      at.push_back(pool_.Int(0));
    }
    const ir::Type type = early.type;
    slots_.push_back(ir::AddBuffer(program_, std::move(early)));
    loads_.push_back(Nest(loops, ir::MakeStore(pool_, slots_.back(), stage, at, load)));
    return pool_.Load(slots_.back(), at, type);
  }

  // Returns the loops of the path that number the elements that a thread loads. If there is one
  // loop over neighbours, it comes last and may become a vector.
  std::vector<Stmt> LoopsOf(Expr load, ir::Type type) {
    std::vector<Stmt> loops;
    for (const Stmt loop : path_) {
      const auto uses = [&](Expr e) { return ir::UsesVar(e, loop->var); };
      if (!IsBound(loop) && std::ranges::any_of(load->args(), uses)) loops.push_back(loop);
    }
    const auto neighbours = std::ranges::stable_partition(
        loops, [&](Stmt loop) { return !IsOverNeighbours(load, loop); });
    if (neighbours.size() == 1 &&
        std::has_single_bit(static_cast<uint64_t>(loops.back()->extent)) &&
        loops.back()->extent * type.bytes() <= kVectorBytes)
      loops.back() = ir::WithKind(pool_, loops.back(), LoopKind::kVectorized, loops.back()->body());
    return loops;
  }

  bool IsOverNeighbours(Expr load, Stmt loop) {
    const arith::Linear var = simplifier_.Var(loop->var);
    if (var.is_constant()) return false;
    return simplifier_.ToLinear(load->args().back()).Coefficient(var.terms[0].atom) == 1;
  }

  // Counts the distinct elements that the loops load. Returns any number above the limit if there
  // are more.
  int64_t DistinctElements(Expr load, const ir::Buffer& input, std::span<const Stmt> loops) {
    int64_t iterations = 1;
    for (const Stmt loop : loops) iterations *= loop->extent;
    if (iterations > kMaxIterations) return iterations;
    std::vector<std::optional<int64_t>> known(program_.vars.size());
    std::vector<arith::Linear> found;
    for (int64_t i = 0; i < iterations && std::ssize(found) <= kMaxWords * kWordBytes; ++i) {
      int64_t rest = i;
      for (const Stmt loop : loops) {
        known[static_cast<size_t>(loop->var)] = rest % loop->extent;
        rest /= loop->extent;
      }
      arith::Linear address = arith::Flatten(load->args(), input.shape, known);
      if (std::ranges::find(found, address) == found.end()) found.push_back(std::move(address));
    }
    return std::ssize(found);
  }

  // Puts the loops around the store, with variables of their own, and the loops over threads that
  // are around the load.
  Stmt Nest(std::span<const Stmt> loops, Stmt store) {
    for (size_t i = loops.size(); i-- > 0;) store = ir::WithBody(pool_, loops[i], store);
    for (size_t i = path_.size(); i-- > 0;) {
      if (IsBound(path_[i])) store = ir::WithBody(pool_, path_[i], store);
    }
    return CopyWithOwnNames(program_, store, [&](int32_t var) {
      const ir::LoopVar like = program_.vars[static_cast<size_t>(var)];
      simplifier_.AddVar(like.extent);
      return ir::AddVar(program_, like.name, like.extent);
    });
  }

  Program& program_;
  ir::ExprPool& pool_;
  arith::Simplifier simplifier_;
  // Loops around the rewritten statement, behind the products.
  std::vector<Stmt> path_;
  // Expressions of the store.
  absl::flat_hash_map<Expr, Expr> rewritten_;
  // Loads for the results behind the products.
  std::vector<Stmt> loads_;
  // Buffers of the loads.
  std::vector<int32_t> slots_;
  // Words of the kernel so far.
  int64_t words_ = 0;
};

}  // namespace

void LoadBeforeSums(Program& program) {
  if (std::ranges::none_of(program.stages, IsOfWarpgroups)) return;
  for (ir::Kernel& kernel : program.kernels)
    kernel.body = Hoister(program).Rewrite(kernel.body, /*is_of_thread=*/false);
}

}  // namespace kiln::lower
