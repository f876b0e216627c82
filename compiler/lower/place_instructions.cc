#include "compiler/lower/place_instructions.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/multiple.h"
#include "compiler/arith/simplify.h"
#include "compiler/instructions/match.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

using arith::Linear;
using instructions::InstructionBody;
using instructions::Operands;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

bool IsOfThread(Stmt loop) {
  return loop->kind == StmtKind::kFor && loop->loop_kind < ir::LoopKind::kBlockX;
}

// Returns the store if nothing but loops, and conditions that do not depend on the loop, stand
// between the loop and the store. Null: other statements do.
Stmt OnlyStore(Stmt loop) {
  Stmt s = loop->body();
  for (; s->kind != StmtKind::kStore; s = s->body()) {
    const bool is_same_for_all =
        s->kind == StmtKind::kIf && !ir::UsesVar(s->condition(), loop->var);
    if (!is_same_for_all && !IsOfThread(s)) return nullptr;
  }
  return s;
}

using Bodies = std::span<const InstructionBody* const>;

std::vector<const InstructionBody*> BodiesFor(int arch) {
  std::vector<const InstructionBody*> bodies;
  for (const InstructionBody& body : instructions::InstructionBodies()) {
    if (body.row->first_arch <= arch) bodies.push_back(&body);
  }
  return bodies;
}

// Returns true if some store in the statement has the form of what an instruction computes.
bool MayHoldInstructions(Bodies bodies, Stmt s) {
  if (s->kind == StmtKind::kStore) {
    return std::ranges::any_of(bodies, [&](const InstructionBody* body) {
      return instructions::MatchStore(*body, s).has_value();
    });
  }
  return std::ranges::any_of(s->children(),
                             [&](Stmt child) { return MayHoldInstructions(bodies, child); });
}

class Placer {
 public:
  Placer(ir::Program& program, Bodies bodies)
      : program_(program), bodies_(bodies), pool_(*program.pool) {
    for (const ir::LoopVar& var : program.vars)
      values_.push_back(simplifier_.Var(simplifier_.AddVar(var.extent)));
  }

  Stmt Rewrite(Stmt s) {
    if (s->kind == StmtKind::kInstruction) return s;
    if (IsOfThread(s) && s->extent > 1) {
      if (const Stmt placed = PlaceInOrNull(s)) return placed;
    }
    if (s->kind != StmtKind::kIf) return RewriteChildren(s);
    const Expr condition = simplifier_.Simplify(s->condition(), &values_);
    if (condition->is_const_int()) return RewriteChildren(s);
    const arith::FactScope facts(simplifier_, condition);
    return RewriteChildren(s);
  }

 private:
  Stmt RewriteChildren(Stmt s) {
    return ir::RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
  }

  // Returns the loop with an instruction inside. Null: no instruction computes its iterations.
  Stmt PlaceInOrNull(Stmt loop) {
    const Stmt store = OnlyStore(loop);
    if (store == nullptr || !store->value()->type.is_int()) return nullptr;
    const ir::ProgramStage& stage = program_.stages[static_cast<size_t>(store->stage)];
    if (stage.hints[ir::Hint::kMatrixUnit] != 0) return nullptr;
    for (const InstructionBody* body : bodies_) {
      if (loop->extent % body->loop->extent != 0) continue;
      const std::optional<Operands> operands = instructions::MatchStore(*body, store);
      if (operands && HasPlaces(*body, *operands, loop)) return Place(*body, loop, store);
    }
    return nullptr;
  }

  // Returns true if the operands lie where the instruction reads them.
  bool HasPlaces(const InstructionBody& body, const Operands& operands, Stmt loop) {
    const auto uses_loop = [&](Expr e) { return ir::UsesVar(e, loop->var); };
    if (std::ranges::any_of(operands.store->indices(), uses_loop)) return false;
    for (size_t slot = 0; slot < operands.loads.size(); ++slot) {
      const Expr load = operands.loads[slot];
      if (load == nullptr) continue;
      if (!instructions::IsVector(body, static_cast<int32_t>(slot))) {
        if (uses_loop(load)) return false;
      } else if (!AreNeighbours(load, loop, body.loop->extent)) {
        return false;
      }
    }
    return true;
  }

  // Returns true if each `lanes` iterations of the loop read elements that follow each other, the
  // first of which is at a multiple of `lanes`. Registers have no addresses, and places of other
  // blocks of a cluster are no plain ones.
  bool AreNeighbours(Expr load, Stmt loop, int64_t lanes) {
    const ir::Scope scope = program_.buffers[static_cast<size_t>(load->id)].scope;
    if (scope == ir::Scope::kLocal || scope == ir::Scope::kCluster) return false;
    Linear first = arith::Constant(0);
    if (loop->extent > lanes)
      first = simplifier_.Var(simplifier_.AddVar(loop->extent / lanes)) * lanes;
    const auto place = [&](int64_t lane) {
      values_[static_cast<size_t>(loop->var)] = first + arith::Constant(lane);
      return PlaceOf(load);
    };
    const Linear begin = place(0);
    bool result = arith::MultipleOf(simplifier_, begin) % lanes == 0;
    for (int64_t lane = 1; result && lane < lanes; ++lane)
      result = place(lane) - begin == arith::Constant(lane);
    values_[static_cast<size_t>(loop->var)] = simplifier_.Var(loop->var);
    return result;
  }

  Linear PlaceOf(Expr load) {
    std::vector<Linear> indices;
    for (Expr index : load->args()) indices.push_back(simplifier_.ToLinear(index, &values_));
    return arith::Flatten(simplifier_, indices,
                          program_.buffers[static_cast<size_t>(load->id)].shape);
  }

  // Cuts the loop into the instruction's iterations, which go innermost, and what counts them.
  Stmt Place(const InstructionBody& body, Stmt loop, Stmt store) {
    const int64_t lanes = body.loop->extent, vectors = loop->extent / lanes;
    const std::string name = program_.vars[static_cast<size_t>(loop->var)].name;
    const int32_t lane = ir::AddVar(program_, name + "_lane", lanes);
    Expr value = pool_.Var(lane);
    int32_t vector = -1;
    if (vectors > 1) {
      vector = ir::AddVar(program_, name + "_vec", vectors);
      value = pool_.Add(pool_.Mul(pool_.Var(vector), pool_.Int(lanes)), value);
    }
    ir::Substitution names;
    names.SetVar(loop->var, value);
    // The plan of unrolling finds these iterations asked for if the loop was.
    const bool is_unrolled =
        loop->loop_kind == ir::LoopKind::kUnrolled || loop->loop_kind == ir::LoopKind::kVectorized;
    const Stmt iterations = ir::MakeFor(
        pool_, lane, lanes, is_unrolled ? ir::LoopKind::kUnrolled : ir::LoopKind::kSerial,
        ir::Substitute(pool_, store, names));
    const Stmt instruction =
        ir::MakeInstruction(pool_, ir::AddInstruction(program_, body.row->name), iterations);
    const Stmt inside = InPlaceOf(store, loop->body(), instruction);
    return vectors > 1 ? ir::MakeFor(pool_, vector, vectors, loop->loop_kind, inside) : inside;
  }

  Stmt InPlaceOf(Stmt store, Stmt s, Stmt instruction) {
    if (s == store) return instruction;
    return ir::WithBody(pool_, s, InPlaceOf(store, s->body(), instruction));
  }

  ir::Program& program_;
  const Bodies bodies_;
  ir::ExprPool& pool_;
  ir::ExprPool simplified_;
  arith::Simplifier simplifier_{simplified_};
  // Value of each variable of the program, for the simplifier.
  std::vector<Linear> values_;
};

}  // namespace

void PlaceInstructions(ir::Program& program, int arch) {
  const std::vector<const InstructionBody*> bodies = BodiesFor(arch);
  const auto may_hold = [&](const ir::Kernel& kernel) {
    return MayHoldInstructions(bodies, kernel.body);
  };
  if (std::ranges::none_of(program.kernels, may_hold)) return;
  Placer placer(program, bodies);
  for (ir::Kernel& kernel : program.kernels) {
    if (may_hold(kernel)) kernel.body = placer.Rewrite(kernel.body);
  }
}

}  // namespace kiln::lower
