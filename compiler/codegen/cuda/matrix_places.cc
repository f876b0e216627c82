#include "compiler/codegen/cuda/matrix_places.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using instructions::kWarpgroupThreads;
using instructions::kWarpgroupWarps;
using instructions::kWarpThreads;
using ir::Expr;
using ir::Stmt;

// Threads of a warp that hold different rows, and different columns.
constexpr int64_t kRows = instructions::kThreadRows, kColumns = instructions::kThreadColumns;

}  // namespace

MatrixPlaces::MatrixPlaces(const ir::Program& program, const Swizzles& swizzles, CudaScope& scope,
                           const MatrixTile& tile)
    : program_(program), swizzles_(swizzles), scope_(scope), tile_(tile) {
  warp_ = tile.is_warpgroup ? scope.OwnVar("warpgroup", tile.num_threads / kWarpgroupThreads)
                            : scope.OwnVar("warp", tile.num_threads / kWarpThreads);
  member_ = scope.OwnVar("warp", kWarpgroupWarps);
  row_ = scope.OwnVar("row", kRows);
  column_ = scope.OwnVar("column", kColumns);
  lane_ = scope.OwnVar("lane", kWarpThreads);
  step_ = scope.OwnVar("step", tile.steps());
  k_ = scope.OwnVar("k", tile.depth());
  // Quotients of its own: it needs few of those of other tiles.
  if (tile.is_held()) lane_ = scope.OwnVar("lane beside held", kWarpThreads);
}

void MatrixPlaces::SetElement(size_t element) {
  int64_t rest = static_cast<int64_t>(element);
  for (size_t i = tile_.inside.size(); i-- > 0;) {
    scope_.SetValue(tile_.inside[i]->var, arith::Constant(rest % tile_.inside[i]->extent));
    rest /= tile_.inside[i]->extent;
  }
}

void MatrixPlaces::Reset() {
  for (const Stmt loop : tile_.inside) scope_.ResetValue(loop->var);
  scope_.ResetValue(tile_.thread);
  scope_.ResetValue(tile_.k_loop->var);
}

Linear MatrixPlaces::PlaceOf(Expr load, size_t element, const Linear& row, const Linear& column,
                             const Linear& k) {
  SetPlace(element, row, column, k);
  return PlaceIn(scope_, program_, swizzles_, load->id, load->args()).offset;
}

void MatrixPlaces::SetPlace(size_t element, const Linear& row, const Linear& column,
                            const Linear& k) {
  SetElement(element);
  scope_.SetValue(tile_.thread, ThreadOf(row, column));
  const Linear step = known_step_ >= 0    ? arith::Constant(known_step_)
                      : tile_.steps() > 1 ? scope_.simplifier().Var(step_)
                                          : arith::Constant(0);
  scope_.SetValue(tile_.k_loop->var, step * tile_.depth() + k);
}

// A register has two neighbouring terms of the lower or of the upper half of a step.
void MatrixPlaces::SetComputed(size_t first, int register_of_tile, int half) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(lane_), zero = arith::Constant(0);
  const Linear k = simplifier.FloorMod(lane, kColumns) * 2 +
                   arith::Constant(register_of_tile * tile_.unit->row_elements() + half);
  const MatrixOperand& computed = tile_.computed();
  if (tile_.is_first_computed()) {
    SetPlace(computed.elements[first], simplifier.FloorDiv(lane, kColumns), zero, k);
  } else {
    SetPlace(computed.elements[first], zero, simplifier.FloorDiv(lane, 2 * kColumns), k);
  }
  scope_.SetValue(computed.neighbours->var, FirstOfComputed());
}

Linear MatrixPlaces::FirstOfComputed() {
  if (tile_.is_first_computed()) return arith::Constant(0);
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(lane_);
  return simplifier.FloorMod(simplifier.FloorDiv(lane, kColumns), 2) *
         static_cast<int64_t>(tile_.b.group / 2);
}

// The thread of the program that has these rows and columns.
Linear MatrixPlaces::ThreadOf(const Linear& row, const Linear& column) {
  arith::Simplifier& simplifier = scope_.simplifier();
  if (tile_.order.columns > 1) {
    const Linear warp = simplifier.Var(warp_);
    const Linear warp_row = simplifier.FloorDiv(warp, tile_.order.columns),
                 warp_column = simplifier.FloorMod(warp, tile_.order.columns);
    return (warp_row * kRows + row) * (kColumns * tile_.order.columns) + warp_column * kColumns +
           column;
  }
  Linear rows = row;  // of all warps
  if (tile_.is_warpgroup) rows = rows + simplifier.Var(member_) * kRows;
  if (tile_.has_warps())
    rows = rows + simplifier.Var(warp_) * (tile_.is_warpgroup ? kWarpgroupWarps * kRows : kRows);
  return tile_.order.is_by_column() ? InColumns(rows, column) : rows * kColumns + column;
}

// Groups of threads that share a sum out follow each other: each has four columns of so many threads.
Linear MatrixPlaces::InColumns(const Linear& row, const Linear& column) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const int64_t of_column = tile_.order.rows;
  return simplifier.FloorDiv(row, of_column) * (kColumns * of_column) + column * of_column +
         simplifier.FloorMod(row, of_column);
}

Linear MatrixPlaces::RowOf(const MatrixOperand& operand, size_t position) {
  using Reading = MatrixOperand::Reading;
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(lane_), zero = arith::Constant(0);
  const Linear in_tile = simplifier.FloorMod(lane, 8);
  const Linear second = simplifier.FloorMod(simplifier.FloorDiv(lane, 8), 2);
  const Linear third = simplifier.FloorDiv(lane, 16);
  const bool is_transposed = operand.reading != Reading::kRows;
  const int64_t half = tile_.unit->row_elements();  // of the terms
  const size_t element = operand.elements[position];
  const auto place = [&](const Linear& row, const Linear& column) {
    return PlaceOf(operand.load, element, row, column, zero);
  };
  if (operand.reading == Reading::kPairs) {
    // Tiles: of thread t of four the terms 4t and 4t + 1, then the two after; the same of the upper
    // half. Of the upper two threads the two after come first: with rows an odd number of 16 bytes
    // apart all eight are in banks of their own.
    const Linear after = simplifier.FloorMod(second + simplifier.FloorDiv(in_tile, 4), 2);
    const Linear k = simplifier.FloorDiv(in_tile, 2) * 4 + simplifier.FloorMod(in_tile, 2) +
                     after * 2 + third * half;
    return place(zero, zero) + k * operand.k_stride;
  }
  if (&operand == &tile_.a) {
    // Tiles: rows 0 to 7, 8 to 15; then those of the upper half of the sum.
    if (is_transposed) {
      const Linear first = place(zero, zero);
      return first + (in_tile + third * half) * operand.k_stride + second * operand.pair_stride;
    }
    return place(in_tile, zero) + second * operand.pair_stride + third * half;
  }
  // Tiles: the lower and the upper half of the sum; then those of the next 8 columns.
  const Linear next = third * operand.next[position];
  if (is_transposed) {
    const Linear first = place(zero, zero);
    return first + (in_tile + second * half) * operand.k_stride + next;
  }
  const Linear first = place(zero, simplifier.FloorDiv(in_tile, 2));
  return first + simplifier.FloorMod(in_tile, 2) * operand.pair_stride + second * half + next;
}

Linear MatrixPlaces::ElementOf(const MatrixOperand& operand, size_t position, int part) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(lane_), zero = arith::Constant(0);
  const Linear k = simplifier.FloorMod(lane, kColumns);
  if (&operand == &tile_.a) {
    return PlaceOf(operand.load, operand.elements[position + static_cast<size_t>(part % 2)],
                   simplifier.FloorDiv(lane, kColumns), zero,
                   k + arith::Constant(part / 2 * kColumns));
  }
  const Linear place =
      PlaceOf(operand.load, operand.elements[position], zero,
              simplifier.FloorDiv(lane, 2 * kColumns), k + arith::Constant(part * kColumns));
  return place + simplifier.FloorMod(simplifier.FloorDiv(lane, kColumns), 2) * operand.pair_stride;
}

Linear MatrixPlaces::StartOfColumns() {
  const Linear zero = arith::Constant(0);
  Linear start = PlaceOf(tile_.b.load, tile_.b.elements[0], zero, zero, zero);
  Reset();
  return start;
}

Linear MatrixPlaces::StartOfRows(size_t position) {
  const Linear zero = arith::Constant(0);
  const Linear start = PlaceOf(tile_.a.load, tile_.a.elements[position], zero, zero, zero);
  Reset();
  return WithoutVar(start, member_);
}

Linear WithoutVar(const Linear& e, int32_t var) {
  Linear result = arith::Constant(e.constant);
  for (const arith::Term& term : e.terms) {
    if (term.atom->op != ir::Op::kVar || term.atom->id != var)
      result.AddTerm(term.atom, term.coefficient);
  }
  return result;
}

}  // namespace kiln::codegen
