// Tiles of which each thread computes a factor (MatrixOperand::Reading::kComputed): the second one,
// or the first one of units of four warps.
#include <algorithm>
#include <utility>

#include "compiler/codegen/cuda/matrix_tile.h"
#include "compiler/instructions/computed_factor.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;

// Neighbours of a thread, at most.
constexpr int64_t kMostNeighbours = 16;

bool UsesAny(Expr load, const std::vector<Stmt>& loops) {
  return std::ranges::any_of(load->args(), [&](Expr index) {
    return std::ranges::any_of(loops, [&](Stmt loop) { return ir::UsesVar(index, loop->var); });
  });
}

// Returns the load that tells the neighbours of a computed factor apart: it depends on the term of the
// sum, and on which elements of a thread they are. Null: there is none.
Expr NeighbourLoadOf(Expr computed, const RegisterTile& nest) {
  for (const Expr load : instructions::LoadsOf(computed)) {
    if (UsesAny(load, nest.outside) && UsesAny(load, nest.inside)) return load;
  }
  return nullptr;
}

// Does the value depend on which element of which thread it is other than by its loads?
bool UsesOutsideOfLoads(Expr e, const MatrixTile& tile) {
  if (e->op == Op::kLoad) return false;
  if (e->op == Op::kVar) {
    return e->id == tile.thread ||
           std::ranges::any_of(tile.inside, [&](Stmt loop) { return loop->var == e->id; });
  }
  return std::ranges::any_of(e->args(), [&](Expr arg) { return UsesOutsideOfLoads(arg, tile); });
}

bool HasVar(const Linear& e, int32_t var) {
  return std::ranges::any_of(e.terms,
                             [&](const arith::Term& t) { return ir::UsesVar(t.atom, var); });
}

}  // namespace

// Returns false if the factors of the product are elements, or no unit multiplies them.
bool MatrixTileMatcher::TakeComputedFactor(const RegisterTile& nest, MatrixTile& tile) const {
  const Expr product = instructions::AddedBy(nest.store);
  if (product == nullptr) return false;
  const std::optional<instructions::ComputedFactor> factors =
      instructions::ComputedFactorOf(product);
  if (!factors || buffer(nest.store->slot).type != factors->unit->sum) return false;
  const Expr load = NeighbourLoadOf(factors->computed, nest);
  if (load == nullptr) return false;
  tile.unit = factors->unit;
  // Units of four warps read the second factor from shared memory.
  MatrixOperand& computed = tile.is_warpgroup ? tile.a : tile.b;
  (tile.is_warpgroup ? tile.b : tile.a).load = factors->load;
  computed.load = load;
  computed.computed = factors->computed;
  return true;
}

Status MatrixTileMatcher::CheckComputed(Match& match) {
  MatrixTile& tile = match.tile;
  const bool is_first = tile.is_first_computed();
  MatrixOperand& operand = is_first ? tile.a : tile.b;
  operand.reading = MatrixOperand::Reading::kComputed;
  if (UsesOutsideOfLoads(operand.computed, tile)) {
    return InvalidArgument("a factor is computed of {} and of the number of its {}",
                           buffer(operand.load->id).name, is_first ? "row" : "column");
  }
  KILN_RETURN_IF_ERROR(FindNeighbourLoop(match));
  arith::Simplifier& simplifier = scope_.simplifier();
  MatrixPlaces& places = *match.places;
  for (const Expr load : instructions::LoadsOf(operand.computed)) {
    const std::string& name = buffer(load->id).name;
    if (buffer(load->id).scope != ir::Scope::kShared)
      return InvalidArgument("{} is not in shared memory", name);
    const Linear place =
        places.PlaceOf(load, 0, simplifier.Var(places.row()), simplifier.Var(places.column()),
                       simplifier.Var(places.k()));
    if (HasVar(place, is_first ? places.column() : places.row()))
      return InvalidArgument("{}, of which a factor is computed, is not the same for all {}", name,
                             is_first ? "columns" : "rows");
  }
  return OkStatus();
}

// Finds the loop over the neighbours of a thread, each group of which is a whole run of it.
Status MatrixTileMatcher::FindNeighbourLoop(Match& match) const {
  MatrixTile& tile = match.tile;
  const bool is_first = tile.is_first_computed();
  MatrixOperand& operand = is_first ? tile.a : tile.b;
  const std::vector<Linear>& places = is_first ? match.a : match.b;
  size_t stride = 1;
  for (size_t i = tile.inside.size(); i-- > 0;
       stride *= static_cast<size_t>(tile.inside[i]->extent)) {
    const Stmt loop = tile.inside[i];
    const int64_t count = loop->extent;
    if (count < 2 || count > kMostNeighbours || (count & (count - 1)) != 0 ||
        static_cast<int64_t>(places.size()) % count != 0)
      continue;
    const Linear apart = places[1] - places[0];
    bool is_it = apart.is_constant() && apart.constant != 0;
    for (size_t j = 0; j < places.size(); ++j) {
      const auto number = static_cast<int64_t>(j) % count;
      is_it &= places[j] - places[j - static_cast<size_t>(number)] == apart * number &&
               static_cast<int64_t>(operand.elements[j] / stride) % count == number;
    }
    if (!is_it) continue;
    operand.neighbours = loop;
    operand.group = static_cast<size_t>(count);
    return OkStatus();
  }
  return InvalidArgument(
      "the {} of a thread of {}, of which a factor is computed, are no groups of 2, 4, 8 or 16 "
      "neighbours",
      is_first ? "rows" : "columns", buffer(operand.load->id).name);
}

}  // namespace kiln::codegen
