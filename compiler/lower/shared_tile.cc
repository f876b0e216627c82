#include "compiler/lower/shared_tile.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

constexpr int64_t kPieceBytes = 16;

bool IsVar(ir::Expr e, int32_t var) { return e->op == ir::Op::kVar && e->id == var; }

// Returns the offset of the element in a row of the input, without the variable itself. None:
// neighbours along the variable are not neighbours in a row.
std::optional<arith::Linear> OffsetInRow(ir::Expr load, int32_t var) {
  for (size_t i = 0; i + 1 < load->num_args; ++i) {
    if (ir::UsesVar(load->arg(static_cast<int>(i)), var)) return std::nullopt;
  }
  arith::Linear offset = arith::Linearize(load->args().back());
  if (offset.overflow) return std::nullopt;
  const auto own =
      std::ranges::find_if(offset.terms, [&](const arith::Term& t) { return IsVar(t.atom, var); });
  if (own == offset.terms.end() || own->coefficient != 1) return std::nullopt;
  offset.terms.erase(own);
  const bool uses_var = std::ranges::any_of(
      offset.terms, [&](const arith::Term& t) { return ir::UsesVar(t.atom, var); });
  return uses_var ? std::nullopt : std::optional(offset);
}

bool IsMultiple(const arith::Linear& offset, int64_t factor) {
  return offset.constant % factor == 0 &&
         std::ranges::all_of(offset.terms,
                             [&](const arith::Term& t) { return t.coefficient % factor == 0; });
}

ir::Expr Zero(ir::ExprPool& pool, ir::Type type) {
  return type.is_float() ? pool.Float(0, type) : pool.Int(0, type);
}

// Returns the number of elements that are copied at once. They are aligned, and all or none are
// inside.
int64_t LanesOf(ir::Expr load, const std::vector<int64_t>& shape, const TileAxis& inner) {
  const std::optional<arith::Linear> offset = OffsetInRow(load, inner.var);
  if (!offset) return 1;
  int64_t lanes = kPieceBytes / load->type.bytes();
  while (shape.back() % lanes != 0 || inner.limit % lanes != 0 || inner.extent % lanes != 0 ||
         !IsMultiple(*offset, lanes))
    lanes /= 2;
  return lanes;
}

}  // namespace

SharedTile MakeSharedTile(ir::Expr load, const std::vector<int64_t>& shape, TileAxis a,
                          TileAxis b) {
  SharedTile tile;
  tile.load = load;
  if (OffsetInRow(load, a.var)) std::swap(a, b);
  tile.outer = a;
  tile.inner = b;
  tile.lanes = LanesOf(load, shape, b);
  return tile;
}

std::vector<int64_t> ShapeOf(const SharedTile& tile) {
  const int64_t piece = kPieceBytes / tile.load->type.bytes();
  const int64_t row = RoundUp(tile.inner.extent, piece);
  if (tile.is_swizzled) return {tile.outer.extent, row};
  return {tile.outer.extent, row / piece % 2 == 0 ? row + piece : row};
}

std::vector<ir::Expr> PlaceIn(const SharedTile& tile, int32_t a_var, ir::Expr a, ir::Expr b) {
  if (tile.outer.var == a_var) return {a, b};
  return {b, a};
}

ir::Stmt CopyTile(LoopWriter& write, const SharedTile& tile, ir::Expr thread, int64_t threads,
                  bool is_async, absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> element,
                  absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> inside, ir::ExprPool& pool) {
  const int64_t vectors = tile.outer.extent * tile.inner.extent / tile.lanes;
  const int64_t turns = CeilDiv(vectors, threads);
  return write.Loop("turn", turns, [&](ir::Expr turn) {
    const ir::Expr vector = write.Add(write.Mul(turn, threads), thread);
    const ir::Expr more = turns * threads == vectors ? nullptr : write.Less(vector, vectors);
    const auto lane_body = [&](ir::Expr lane) {
      const ir::Expr number = write.Add(write.Mul(vector, tile.lanes), lane);
      const ir::Expr outer = write.Div(number, tile.inner.extent),
                     inner = write.Mod(number, tile.inner.extent);
      ir::Expr value = element(outer, inner);
      if (const ir::Expr condition = inside(outer, inner); condition != nullptr)
        value = pool.If(condition, value, Zero(pool, value->type));
      return write.Store(tile.slot, tile.stage, std::vector<ir::Expr>{outer, inner}, value,
                         is_async);
    };
    return write.If(more, write.Loop("lane", tile.lanes, ir::LoopKind::kVectorized, lane_body));
  });
}

}  // namespace kiln::lower
