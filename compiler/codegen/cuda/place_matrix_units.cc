#include "compiler/codegen/cuda/place_matrix_units.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/codegen/cuda/matrix_tile.h"
#include "compiler/instructions/matrix_instruction.h"
#include "compiler/ir/rewrite.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {
namespace {
using instructions::MatrixInstruction;
using ir::MatrixUnitScope;
using ir::Stmt;
using ir::StmtKind;

MatrixUnitScope ScopeOf(const ir::Program& program, int32_t stage) {
  return ir::MatrixUnitScopeOf(program.stages[static_cast<size_t>(stage)].hints);
}

void CollectStages(Stmt stmt, std::set<int32_t>& stages) {
  if (stmt->kind == StmtKind::kStore) stages.insert(stmt->stage);
  for (Stmt child : stmt->children()) CollectStages(child, stages);
}

// One walk through a kernel.
class Placer {
 public:
  Placer(ir::Program& program, CudaScope& scope, MatrixTileMatcher& matcher,
         std::map<Stmt, MatrixTile>& tiles)
      : program_(program), scope_(scope), matcher_(matcher), tiles_(tiles) {}

  StatusOr<Stmt> Run(const ir::Kernel& kernel) {
    const Stmt body = Rewrite(kernel.body, ThreadsAround());
    KILN_RETURN_IF_ERROR(status_);
    KILN_RETURN_IF_ERROR(CheckHints(kernel.body));
    return body;
  }

 private:
  Stmt Rewrite(Stmt s, const ThreadsAround& threads) {
    if (!status_.ok()) return s;
    if (s->kind == StmtKind::kInstruction) return RewriteInstruction(s, threads);
    if (s->kind == StmtKind::kIf) return RewriteIf(s, threads);
    if (s->kind != StmtKind::kFor) return RewriteChildren(s, threads);
    if (const std::optional<RegisterTile> nest = MatchRegisterTile(program_, s)) {
      const MatrixUnitScope of = ScopeOf(program_, nest->store->stage);
      const bool is_sum = instructions::AddedBy(nest->store) != nullptr;
      if (of != MatrixUnitScope::kNone && is_sum) return Place(s, *nest, of, threads);
    }
    return RewriteChildren(s, threads.In(s));
  }

  Stmt RewriteChildren(Stmt s, const ThreadsAround& threads) {
    return ir::RewriteChildren(*program_.pool, s,
                               [&](Stmt child) { return Rewrite(child, threads); });
  }

  // A statement that never runs needs no instruction.
  Stmt RewriteIf(Stmt s, const ThreadsAround& threads) {
    const ir::Expr condition = scope_.simplifier().Simplify(s->condition(), &scope_.values());
    if (condition->is_const_int(0)) return s;
    if (condition->is_const_int()) return RewriteChildren(s, threads.In(s));
    const arith::FactScope facts(scope_.simplifier(), condition);
    return RewriteChildren(s, threads.In(s));
  }

  Stmt Place(Stmt loop, const RegisterTile& nest, MatrixUnitScope of,
             const ThreadsAround& threads) {
    StatusOr<MatrixTile> tile = matcher_.Find(nest, of, threads);
    if (!tile.ok()) return Refuse(loop, nest.store->stage, tile.status());
    const MatrixInstruction instruction = {tile->unit, of};
    const Stmt placed = ir::MakeInstruction(
        *program_.pool, ir::AddInstruction(program_, instructions::NameOf(instruction)), loop);
    Add(placed, *std::move(tile));
    return placed;
  }

  // The program has the instruction already.
  Stmt RewriteInstruction(Stmt s, const ThreadsAround& threads) {
    const std::string& name = program_.instructions[static_cast<size_t>(s->instruction)];
    const std::optional<MatrixInstruction> of = instructions::FindMatrixInstruction(name);
    if (!of) return s;
    const std::optional<RegisterTile> nest = MatchRegisterTile(program_, s->body());
    if (!nest) {
      status_ = InvalidArgument("the body of instruction '{}' is no sum into registers", name);
      return s;
    }
    StatusOr<MatrixTile> tile = matcher_.Find(*nest, of->scope, threads);
    if (!tile.ok()) return Refuse(s, nest->store->stage, tile.status());
    if (tile->unit != of->unit) {
      status_ = InvalidArgument("instruction '{}' does not compute what its statement says", name);
      return s;
    }
    Add(s, *std::move(tile));
    return s;
  }

  void Add(Stmt instruction, MatrixTile tile) {
    placed_.insert(tile.store->stage);
    tiles_.emplace(instruction, std::move(tile));
  }

  Stmt Refuse(Stmt s, int32_t stage, const Status& why) {
    status_ = InvalidArgument("matrix units can't compute stage '{}': {}",
                              program_.stages[static_cast<size_t>(stage)].name, Message(why));
    return s;
  }

  // A hint that was passed over would be a kernel that is slower by an order, and no error.
  Status CheckHints(Stmt body) {
    std::set<int32_t> here;
    CollectStages(body, here);
    for (const int32_t stage : here) {
      const bool is_wanted = ScopeOf(program_, stage) != MatrixUnitScope::kNone;
      if (!is_wanted || placed_.contains(stage)) continue;
      Refuse(body, stage,
             InvalidArgument("it is no sum into registers in loops of its own, innermost"));
      return status_;
    }
    return OkStatus();
  }

  ir::Program& program_;
  CudaScope& scope_;
  MatrixTileMatcher& matcher_;
  std::map<Stmt, MatrixTile>& tiles_;
  std::set<int32_t> placed_;  // stages
  Status status_;
};

bool IsOfMatrixUnit(const std::string& name) {
  return instructions::FindMatrixInstruction(name).has_value();
}

bool HasInterleavedRows(const Swizzles& swizzles) {
  return std::ranges::any_of(swizzles,
                             [](const auto& of) { return of.second.interleaved_rows > 0; });
}

Status PlaceInKernel(ir::Program& program, ir::Kernel& kernel, CudaScope& scope,
                     MatrixUnitPlan& plan) {
  KILN_RETURN_IF_ERROR(CheckSwizzles(program, kernel));
  Swizzles swizzles = FindSwizzles(program, kernel);
  if (!instructions::UsesMatrixUnits(program, kernel.body) &&
      std::ranges::none_of(program.instructions, IsOfMatrixUnit)) {
    plan.swizzles.merge(swizzles);
    return OkStatus();
  }
  const lower::WarpRegisters held = lower::FindWarpRegisters(program, kernel);
  MatrixTileMatcher matcher(program, scope, swizzles, held);
  std::map<Stmt, MatrixTile> tiles;
  KILN_ASSIGN_OR_RETURN(Stmt body, Placer(program, scope, matcher, tiles).Run(kernel));
  // Places in interleaved rows are others than those before they were known to be so.
  if (HasInterleavedRows(swizzles)) {
    tiles.clear();
    KILN_ASSIGN_OR_RETURN(body, Placer(program, scope, matcher, tiles).Run(kernel));
  }
  kernel.body = body;
  plan.tiles.merge(tiles);
  plan.swizzles.merge(swizzles);
  return OkStatus();
}

}  // namespace

StatusOr<MatrixUnitPlan> PlaceMatrixUnits(ir::Program& program) {
  MatrixUnitPlan plan;
  CudaScope scope(program, {});
  for (ir::Kernel& kernel : program.kernels)
    KILN_RETURN_IF_ERROR(PlaceInKernel(program, kernel, scope, plan));
  return plan;
}

}  // namespace kiln::codegen
