#include "compiler/lower/early_loads.h"

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <vector>

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

constexpr int64_t kMostWords = 16, kWordBytes = 4, kVectorBytes = 16;

bool IsBound(Stmt loop) { return loop->loop_kind >= LoopKind::kBlockX; }

class Hoister {
 public:
  explicit Hoister(Program& program) : program_(program), pool_(*program.pool), simplifier_(pool_) {
    for (const ir::LoopVar& var : program.vars) simplifier_.AddVar(var.extent);
  }

  Stmt Rewrite(Stmt s) {
    if (s->kind == StmtKind::kFor && s->loop_kind == LoopKind::kThreadX) is_of_thread_ = true;
    if (s->kind == StmtKind::kSeq && is_of_thread_) {
      const auto statements = s->children();
      const auto has = [&](Stmt child) { return HasProducts(child); };
      const auto first = std::ranges::find_if(statements, has);
      const auto end = std::find_if(statements.rbegin(), statements.rend(), has).base();
      if (first < end && end < statements.end()) {
        const auto size = [](auto length) { return static_cast<size_t>(length); };
        return WithLoads(statements.first(size(first - statements.begin())),
                         statements.subspan(size(first - statements.begin()), size(end - first)),
                         statements.last(size(statements.end() - end)));
      }
    }
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  bool HasProducts(Stmt s) const {
    if (s->kind == StmtKind::kStore) {
      const ir::Hints& hints = program_.stages[static_cast<size_t>(s->stage)].hints;
      return hints[ir::Hint::kMatrixUnit] == static_cast<int32_t>(ir::MatrixUnitScope::kWarpgroup);
    }
    return std::ranges::any_of(s->children(), [&](Stmt child) { return HasProducts(child); });
  }

  // Loads for `results` stand in front of the products.
  Stmt WithLoads(std::span<const Stmt> before, std::span<const Stmt> products,
                 std::span<const Stmt> results) {
    std::vector<Stmt> early, loads;
    std::vector<int32_t> slots;
    for (const Stmt result : results) {
      std::vector<Stmt> path;
      early.push_back(WithEarlyLoads(result, path, loads, slots));
    }
    std::vector<Stmt> statements;
    for (const std::span<const Stmt> part :
         {before, std::span<const Stmt>(loads), products, std::span<const Stmt>(early)})
      statements.insert(statements.end(), part.begin(), part.end());
    Stmt whole = ir::MakeSeq(pool_, statements);
    for (const int32_t slot : slots) whole = ir::MakeAlloc(pool_, slot, whole);
    return whole;
  }

  // `path`: the loops around it.
  Stmt WithEarlyLoads(Stmt s, std::vector<Stmt>& path, std::vector<Stmt>& loads,
                      std::vector<int32_t>& slots) {
    if (s->kind == StmtKind::kFor) {
      path.push_back(s);
      const Stmt body = WithEarlyLoads(s->body(), path, loads, slots);
      path.pop_back();
      return ir::WithBody(pool_, s, body);
    }
    // What goes to shared memory is a factor of the next products.
    if (s->kind != StmtKind::kStore || HasProducts(s) ||
        program_.buffers[static_cast<size_t>(s->slot)].scope == ir::Scope::kShared)
      return s;
    std::vector<Expr> exprs(s->exprs().begin(), s->exprs().end());
    exprs.back() = WithEarlyLoads(exprs.back(), s->stage, path, loads, slots);
    if (exprs.back() == s->value()) return s;
    return ir::MakeStore(pool_, s->slot, s->stage, std::span(exprs).first(exprs.size() - 1),
                         exprs.back());
  }

  // A value that is computed always.
  Expr WithEarlyLoads(Expr e, int32_t stage, std::span<const Stmt> path, std::vector<Stmt>& loads,
                      std::vector<int32_t>& slots) {
    if (e->op == ir::Op::kIf) return e;
    if (e->op == ir::Op::kLoad) return EarlyLoad(e, stage, path, loads, slots);
    std::vector<Expr> args;
    for (const Expr arg : e->args()) args.push_back(WithEarlyLoads(arg, stage, path, loads, slots));
    return std::ranges::equal(args, e->args()) ? e : pool_.WithArgs(e, args);
  }

  Expr EarlyLoad(Expr load, int32_t stage, std::span<const Stmt> path, std::vector<Stmt>& loads,
                 std::vector<int32_t>& slots) {
    const ir::Buffer& input = program_.buffers[static_cast<size_t>(load->id)];
    if (input.scope != ir::Scope::kInput || std::ranges::any_of(load->args(), ir::HasLoad))
      return load;
    std::vector<Stmt> loops;  // that number the elements of a thread
    for (const Stmt loop : path) {
      const auto uses = [&](Expr e) { return ir::UsesVar(e, loop->var); };
      if (!IsBound(loop) && std::ranges::any_of(load->args(), uses)) loops.push_back(loop);
    }
    // Neighbours are loaded together.
    const auto neighbours = std::ranges::stable_partition(
        loops, [&](Stmt loop) { return !IsOverNeighbours(load, loop); });
    if (neighbours.size() == 1 &&
        std::has_single_bit(static_cast<uint64_t>(loops.back()->extent)) &&
        loops.back()->extent * input.type.bytes() <= kVectorBytes)
      loops.back() = ir::WithKind(pool_, loops.back(), LoopKind::kVectorized, loops.back()->body());
    const int64_t bytes = DistinctElements(load, loops) * input.type.bytes(),
                  words = (bytes + kWordBytes - 1) / kWordBytes;
    if (words_ + words > kMostWords) return load;
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
    const int32_t slot = ir::AddBuffer(program_, std::move(early));
    slots.push_back(slot);
    Stmt nest = ir::MakeStore(pool_, slot, stage, at, load);
    for (size_t i = loops.size(); i-- > 0;) nest = ir::WithBody(pool_, loops[i], nest);
    for (size_t i = path.size(); i-- > 0;) {
      if (IsBound(path[i])) nest = ir::WithBody(pool_, path[i], nest);
    }
    loads.push_back(CopyWithOwnNames(program_, nest, [&](int32_t var) {
      const ir::LoopVar like = program_.vars[static_cast<size_t>(var)];
      simplifier_.AddVar(like.extent);
      return ir::AddVar(program_, like.name, like.extent);
    }));
    return pool_.Load(slot, at, type);
  }

  bool IsOverNeighbours(Expr load, Stmt loop) {
    const arith::Linear var = simplifier_.Var(loop->var);
    if (var.is_constant()) return false;
    return simplifier_.ToLinear(load->args().back()).Coefficient(var.terms[0].atom) == 1;
  }

  // Of those that the loops load.
  int64_t DistinctElements(Expr load, std::span<const Stmt> loops) {
    constexpr int64_t kMostIterations = 1024;
    int64_t iterations = 1;
    for (const Stmt loop : loops) iterations *= loop->extent;
    if (iterations > kMostIterations) return iterations;
    std::vector<arith::Linear> env;
    for (int32_t var = 0; var < simplifier_.num_vars(); ++var) env.push_back(simplifier_.Var(var));
    std::vector<std::vector<arith::Linear>> found;
    for (int64_t i = 0; i < iterations; ++i) {
      int64_t rest = i;
      for (const Stmt loop : loops) {
        env[static_cast<size_t>(loop->var)] = arith::Constant(rest % loop->extent);
        rest /= loop->extent;
      }
      std::vector<arith::Linear> place;
      for (const Expr index : load->args()) place.push_back(simplifier_.ToLinear(index, &env));
      if (std::ranges::find(found, place) == found.end()) found.push_back(std::move(place));
      if (std::ssize(found) > kMostWords * kWordBytes) break;  // of one byte each
    }
    return std::ssize(found);
  }

  Program& program_;
  ir::ExprPool& pool_;
  arith::Simplifier simplifier_;
  bool is_of_thread_ = false;  // what is rewritten, each thread does
  int64_t words_ = 0;          // of the kernel, so far
};

}  // namespace

void LoadBeforeSums(Program& program) {
  for (ir::Kernel& kernel : program.kernels) kernel.body = Hoister(program).Rewrite(kernel.body);
}

}  // namespace kiln::lower
