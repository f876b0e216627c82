#include "search/space/online_copies.h"

#include <algorithm>

#include "compiler/arith/linear.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::search {
namespace {

using ir::Expr;

// Terms and columns of a tile are rounded up to this number.
constexpr int64_t kPadded = 16;
constexpr int kMostWarps = 12, kMostDepth = 4;

// A variable of the rows of a tile or of the elements of a row, and what is known of its tiles.
struct TileVar {
  int32_t var = -1;
  int64_t extent = 0, of_tile = 0;
};

// Does the index move as the variable does? Where tiles reach beyond its extent, the array has to
// end there.
bool MovesWith(Expr index, const TileVar& of, int64_t extent) {
  const bool is_whole = of.extent % of.of_tile == 0;
  if (index->op == ir::Op::kVar && index->id == of.var) return is_whole || extent == of.extent;
  const arith::Linear form = arith::Linearize(index);
  int found = 0;
  for (const arith::Term& term : form.terms) {
    const bool is_own = term.atom->op == ir::Op::kVar && term.atom->id == of.var;
    if (is_own ? term.coefficient != 1 : ir::UsesVar(term.atom, of.var)) return false;
    found += is_own;
  }
  return is_whole && found == 1 && form.constant == 0;
}

// Is a tile of the load a box of its array?
bool IsBox(const dag::Dag& dag, Expr load, const TileVar& key, const TileVar& other) {
  const std::vector<int64_t>& shape = dag.op(load->id).shape();
  const size_t last = shape.size() - 1;
  if (shape.size() < 2 || shape.size() > instructions::kMostBoxDimensions ||
      shape[last] * load->type.bytes() % instructions::kBoxPieceBytes != 0)
    return false;
  const bool is_key_last = ir::UsesVar(load->arg(last), key.var);
  const TileVar &row = is_key_last ? other : key, &element = is_key_last ? key : other;
  if (!MovesWith(load->arg(last), element, shape[last]) || ir::UsesVar(load->arg(last), row.var))
    return false;
  int rows = 0;
  for (size_t d = 0; d < last; ++d) {
    if (ir::UsesVar(load->arg(d), element.var) || ir::HasLoad(load->arg(d))) return false;
    if (!ir::UsesVar(load->arg(d), row.var)) continue;
    if (!MovesWith(load->arg(d), row, shape[d])) return false;
    ++rows;
  }
  return rows == 1;
}

}  // namespace

bool CanBringTiles(const schedule::State& state) {
  const schedule::OnlineTile* const tile = state.online();
  if (tile == nullptr || tile->matrix_unit != ir::MatrixUnitScope::kWarpgroup || tile->depth < 2 ||
      tile->depth > kMostDepth || tile->warps > kMostWarps)
    return false;
  const StatusOr<dag::SoftmaxChain> chain = dag::FindSoftmaxChain(*state.dag());
  if (!chain.ok() || chain->extent(chain->key) <= tile->keys) return false;
  const TileVar key{chain->key, chain->extent(chain->key), tile->keys},
      depth{chain->depth, chain->extent(chain->depth), kPadded},
      column{chain->column, chain->extent(chain->column), kPadded};
  return IsBox(*state.dag(), chain->keys, key, depth) &&
         IsBox(*state.dag(), chain->values, key, column);
}

int64_t CopyingThreads(const schedule::State& state) {
  const int stage = state.num_stages() - 1;
  if (state.stage(stage).hints[ir::Hint::kBulkCopies] == 0) return 0;
  const bool is_group = state.online()->warps > instructions::kWarpgroupWarps;
  if (is_group) return instructions::kWarpgroupThreads;
  return state.online()->keys < instructions::kKeysOfOwnCopies ? instructions::kCopyingThreads : 0;
}

}  // namespace kiln::search
