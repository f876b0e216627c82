#include "compiler/codegen/cuda/matrix_tile.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using instructions::kWarpgroupThreads;
using instructions::kWarpgroupWarps;
using ir::Expr;
using ir::Op;
using ir::Stmt;

// Of an instruction: threads.
constexpr int64_t kRows = instructions::kThreadRows, kColumns = instructions::kThreadColumns;
// Accumulators of a thread: more than the registers that it can have.
constexpr int64_t kMaxElements = 256;

std::optional<instructions::MatrixFactors> FactorsOf(Stmt store) {
  const Expr product = instructions::AddedBy(store);
  return product == nullptr ? std::nullopt : instructions::MatrixFactorsOf(product);
}

// "float16 in float32, ..."
std::string UnitNames() {
  std::string names;
  for (const instructions::MatrixUnit& unit : instructions::MatrixUnits()) {
    names += fmt::format("{}{} in {}", names.empty() ? "" : ", ", ir::TypeName(unit.factor),
                         ir::TypeName(unit.sum));
  }
  return names;
}

bool HasVar(const Linear& e, int32_t var) {
  return std::ranges::any_of(e.terms,
                             [&](const arith::Term& t) { return ir::UsesVar(t.atom, var); });
}

// Of the variable where it is a term by itself and in no other.
std::optional<int64_t> CoefficientOf(const Linear& e, int32_t var) {
  int64_t coefficient = 0;
  for (const arith::Term& term : e.terms) {
    if (term.atom->op == Op::kVar && term.atom->id == var) {
      coefficient = term.coefficient;
    } else if (ir::UsesVar(term.atom, var)) {
      return std::nullopt;
    }
  }
  return coefficient;
}

Linear WithoutVar(const Linear& e, int32_t var) {
  Linear result = arith::Constant(e.constant);
  for (const arith::Term& term : e.terms) {
    if (term.atom->op != Op::kVar || term.atom->id != var)
      result.AddTerm(term.atom, term.coefficient);
  }
  return result;
}

// Sorts the places by where they are, and gives the new number of each. Those that are not a constant
// apart keep their order.
std::vector<size_t> SortPlaces(std::vector<Linear>& places, std::vector<size_t>& elements) {
  std::vector<size_t> order(places.size()), numbers(places.size());
  std::iota(order.begin(), order.end(), 0);
  const bool is_sortable = std::ranges::all_of(
      places, [&](const Linear& place) { return (place - places[0]).is_constant(); });
  if (is_sortable) {
    std::ranges::stable_sort(order, {}, [&](size_t i) { return (places[i] - places[0]).constant; });
  }
  std::vector<Linear> sorted;
  std::vector<size_t> first;
  for (size_t i = 0; i < order.size(); ++i) {
    numbers[order[i]] = i;
    sorted.push_back(places[order[i]]);
    first.push_back(elements[order[i]]);
  }
  places = std::move(sorted);
  elements = std::move(first);
  return numbers;
}

// The number of the place among those seen, which it joins.
size_t PositionOf(std::vector<Linear>& places, const Linear& place) {
  const auto found = std::ranges::find(places, place);
  const size_t position = static_cast<size_t>(found - places.begin());
  if (found == places.end()) places.push_back(place);
  return position;
}

// Are so many places, and so many again, side by side?
bool AreNeighbours(const std::vector<Linear>& places, int64_t count) {
  if (static_cast<int64_t>(places.size()) % count != 0) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t in_group = static_cast<int64_t>(i) % count;
    if (places[i] - places[i - static_cast<size_t>(in_group)] != arith::Constant(in_group))
      return false;
  }
  return true;
}

}  // namespace

bool IsCopies(Stmt stmt) {
  if (stmt->kind == ir::StmtKind::kStore) return stmt->is_async;
  return stmt->kind != ir::StmtKind::kBarrier && std::ranges::all_of(stmt->children(), IsCopies);
}

bool IsForMatrixUnits(const ir::Program& program, Stmt store) {
  return program.stages[static_cast<size_t>(store->stage)].hints[ir::Hint::kMatrixUnit] != 0 &&
         instructions::AddedBy(store) != nullptr;
}

// ---- matching

std::vector<WarpOrder> CudaMatrixTiles::OrdersOf(const ThreadsAround& threads) {
  std::vector<WarpOrder> orders = {WarpOrder()};
  const int64_t warps = threads.count / kWarpThreads;
  for (const int64_t columns : {2, 4, 8}) {
    if (warps % columns == 0) orders.push_back({.columns = columns});
  }
  for (int64_t groups = 1; groups <= warps; ++groups) {
    if (warps % groups == 0) orders.push_back({.rows = warps / groups * kRows});
  }
  return orders;
}

// All tiles of a kernel have their threads in one order.
StatusOr<CudaMatrixTiles::Tile> CudaMatrixTiles::Find(const RegisterTile& nest,
                                                      const ThreadsAround& threads) {
  Status refused;
  for (const WarpOrder& order : OrdersOf(threads)) {
    if (order_ && order != *order_) continue;
    StatusOr<Tile> tile = Match(nest, threads, order);
    if (tile.ok()) {
      order_ = order;
      return tile;
    }
    if (refused.ok()) refused = tile.status();
  }
  return refused;
}

StatusOr<CudaMatrixTiles::Tile> CudaMatrixTiles::Match(const RegisterTile& nest,
                                                       const ThreadsAround& threads,
                                                       WarpOrder order) {
  Tile tile;
  tile.store = nest.store;
  tile.order = order;
  if (nest.body != nest.store) return InvalidArgument("conditions stand inside of the tile");
  const std::optional<instructions::MatrixFactors> factors = FactorsOf(nest.store);
  if (!factors || exprs_.buffer(nest.store->slot).type != factors->unit->sum) {
    return InvalidArgument(
        "it is no sum of products of two elements of one type, each converted to that of the sum, "
        "that a unit multiplies: {}",
        UnitNames());
  }
  tile.unit = factors->unit;
  tile.a.load = factors->a;
  tile.b.load = factors->b;
  for (const Expr load : {tile.a.load, tile.b.load}) {
    if (exprs_.buffer(load->id).scope == ir::Scope::kShared) continue;
    return InvalidArgument("{} is not in shared memory", exprs_.buffer(load->id).name);
  }
  if (threads.var < 0 || !threads.is_all || threads.count % kWarpThreads != 0) {
    return InvalidArgument(
        "not all threads of a block compute it, numbered by threadIdx.x alone, a multiple of {}",
        kWarpThreads);
  }
  tile.is_warpgroup = exprs_.HintOf(nest.store->stage, ir::Hint::kMatrixUnit) ==
                      static_cast<int32_t>(ir::MatrixUnitScope::kWarpgroup);
  if (tile.is_warpgroup) KILN_RETURN_IF_ERROR(CheckWarpgroups(tile, threads));
  // The innermost one that is deep enough goes inside of the others.
  const auto deep = std::find_if(nest.outside.rbegin(), nest.outside.rend(),
                                 [&](Stmt loop) { return loop->extent % tile.depth() == 0; });
  if (deep == nest.outside.rend())
    return InvalidArgument("no loop of the sum has a multiple of {} iterations", tile.depth());
  tile.k_loop = *deep;
  tile.around = nest.outside;
  std::erase(tile.around, tile.k_loop);
  tile.inside = nest.inside;
  tile.thread = threads.var;
  tile.num_threads = threads.count;
  tile.warp = tile.is_warpgroup ? scope_.OwnVar("warpgroup", threads.count / kWarpgroupThreads)
                                : scope_.OwnVar("warp", threads.count / kWarpThreads);
  tile.member = scope_.OwnVar("warp", kWarpgroupWarps);
  tile.row = scope_.OwnVar("row", kRows);
  tile.column = scope_.OwnVar("column", kColumns);
  tile.lane = scope_.OwnVar("lane", kWarpThreads);
  tile.step = scope_.OwnVar("step", tile.steps());
  tile.k = scope_.OwnVar("k", tile.depth());
  // The second one is that of the columns.
  if (DependsOnColumn(tile, tile.a.load) && !DependsOnColumn(tile, tile.b.load))
    std::swap(tile.a.load, tile.b.load);
  Status status = FindPositions(nest, tile);
  if (status.ok()) status = CheckOperand("first", tile.row, tile.column, tile, tile.a);
  if (status.ok()) status = CheckOperand("second", tile.column, tile.row, tile, tile.b);
  if (status.ok()) status = CheckHeld(tile);
  for (Operand* operand : {&tile.a, &tile.b}) {
    if (status.ok()) status = CheckRows(tile, *operand);
  }
  if (status.ok() && tile.is_warpgroup) status = MatchWarpgroup(tile);
  Reset(tile);
  KILN_RETURN_IF_ERROR(status);
  return tile;
}

void CudaMatrixTiles::SetPosition(const Tile& tile, size_t element) {
  int64_t rest = static_cast<int64_t>(element);
  for (size_t i = tile.inside.size(); i-- > 0;) {
    scope_.SetValue(tile.inside[i]->var, arith::Constant(rest % tile.inside[i]->extent));
    rest /= tile.inside[i]->extent;
  }
}

Linear CudaMatrixTiles::PlaceWith(const Tile& tile, Expr load, size_t element, const Linear& row,
                                  const Linear& column, const Linear& k) {
  SetPosition(tile, element);
  arith::Simplifier& simplifier = scope_.simplifier();
  if (tile.order.columns > 1) {
    const Linear warp = simplifier.Var(tile.warp);
    const Linear warp_row = simplifier.FloorDiv(warp, tile.order.columns),
                 warp_column = simplifier.FloorMod(warp, tile.order.columns);
    return PlaceOfThread(tile, load,
                         (warp_row * kRows + row) * (kColumns * tile.order.columns) +
                             warp_column * kColumns + column,
                         k);
  }
  Linear rows = row;  // of all warps
  if (tile.is_warpgroup) rows = rows + simplifier.Var(tile.member) * kRows;
  if (tile.has_warps())
    rows = rows + simplifier.Var(tile.warp) * (tile.is_warpgroup ? kWarpgroupWarps * kRows : kRows);
  return PlaceOfThread(tile, load,
                       tile.order.is_by_column() ? InColumns(tile.order.rows, rows, column)
                                                 : rows * kColumns + column,
                       k);
}

// Groups of threads that share a sum out follow each other: each has four columns of so many threads.
Linear CudaMatrixTiles::InColumns(int64_t of_column, const Linear& row, const Linear& column) {
  arith::Simplifier& simplifier = scope_.simplifier();
  return simplifier.FloorDiv(row, of_column) * (kColumns * of_column) + column * of_column +
         simplifier.FloorMod(row, of_column);
}

Linear CudaMatrixTiles::PlaceOfThread(const Tile& tile, Expr load, const Linear& thread,
                                      const Linear& k) {
  arith::Simplifier& simplifier = scope_.simplifier();
  scope_.SetValue(tile.thread, thread);
  const Linear step = tile.known_step >= 0 ? arith::Constant(tile.known_step)
                      : tile.steps() > 1   ? simplifier.Var(tile.step)
                                           : arith::Constant(0);
  scope_.SetValue(tile.k_loop->var, step * tile.depth() + k);
  return exprs_.PlaceOf(load->id, load->args()).offset;
}

bool CudaMatrixTiles::DependsOnColumn(const Tile& tile, Expr load) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear place = PlaceWith(tile, load, 0, simplifier.Var(tile.row),
                                 simplifier.Var(tile.column), simplifier.Var(tile.k));
  return HasVar(place, tile.column);
}

void CudaMatrixTiles::Reset(const Tile& tile) {
  for (Stmt loop : tile.inside) scope_.ResetValue(loop->var);
  scope_.ResetValue(tile.thread);
  scope_.ResetValue(tile.k_loop->var);
}

// The elements of a thread are all pairs of a position of a and one of b.
Status CudaMatrixTiles::FindPositions(const RegisterTile& nest, Tile& tile) {
  int64_t elements = 1;
  for (Stmt loop : nest.inside) elements *= loop->extent;
  if (elements > kMaxElements) {
    return InvalidArgument("a thread has {} elements of the tile, at most {} can be", elements,
                           kMaxElements);
  }
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear row = simplifier.Var(tile.row), column = simplifier.Var(tile.column),
               k = simplifier.Var(tile.k);
  std::vector<std::pair<size_t, size_t>> positions;
  std::vector<Place> sums;
  for (size_t element = 0; element < static_cast<size_t>(elements); ++element) {
    const size_t known_a = tile.a.places.size(), known_b = tile.b.places.size();
    const size_t at_a =
        PositionOf(tile.a.places, PlaceWith(tile, tile.a.load, element, row, column, k));
    const size_t at_b =
        PositionOf(tile.b.places, PlaceWith(tile, tile.b.load, element, row, column, k));
    if (at_a == known_a) tile.a_elements.push_back(element);
    if (at_b == known_b) tile.b_elements.push_back(element);
    positions.emplace_back(at_a, at_b);
    sums.push_back(exprs_.PlaceOf(tile.store->slot, tile.store->indices()));
    if (!sums.back().offset.is_constant())
      return InvalidArgument("the place of a sum is not known when it is compiled");
  }
  const size_t rows = tile.a.places.size(), columns = tile.b.places.size();
  if (rows % 2 != 0 || columns % 2 != 0 || rows * columns != positions.size()) {
    return InvalidArgument(
        "a thread has {} elements in {} rows and {} columns, expected an even number of each, and "
        "one element for each pair",
        positions.size(), rows, columns);
  }
  const std::vector<size_t> row_numbers = SortPlaces(tile.a.places, tile.a_elements),
                            column_numbers = SortPlaces(tile.b.places, tile.b_elements);
  for (auto& [at_a, at_b] : positions) {
    at_a = row_numbers[at_a];
    at_b = column_numbers[at_b];
  }
  tile.sums.assign(rows, std::vector<Place>(columns));
  std::vector<bool> is_there(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto [at_a, at_b] = positions[i];
    if (is_there[at_a * columns + at_b])
      return InvalidArgument("two elements of a thread are in one row and column");
    is_there[at_a * columns + at_b] = true;
    tile.sums[at_a][at_b] = sums[i];
  }
  return OkStatus();
}

Status CudaMatrixTiles::CheckOperand(std::string_view what, int own, int other, Tile& tile,
                                     Operand& operand) {
  const std::string& name = exprs_.buffer(operand.load->id).name;
  for (const Linear& place : operand.places) {
    if (!HasVar(place, other)) continue;
    return InvalidArgument("the {} factor, {}, is not the same for the threads of a {} of {} x {}",
                           what, name, own == tile.row ? "row" : "column", kRows, kColumns);
  }
  for (size_t i = 0; i < operand.places.size(); i += 2) {
    const Linear apart = operand.places[i + 1] - operand.places[i];
    if (!apart.is_constant() || (i > 0 && apart.constant != operand.pair_stride)) {
      return InvalidArgument("the {} of {} are not equally far apart",
                             own == tile.row ? "rows" : "columns", name);
    }
    operand.pair_stride = apart.constant;
  }
  const std::optional<int64_t> along_k = CoefficientOf(operand.places[0], tile.k);
  if (!along_k) return InvalidArgument("{} is not read at equal distances along the sum", name);
  operand.k_stride = *along_k;
  if (operand.k_stride != 1) return CheckNeighbours(own == tile.row, tile, operand);
  operand.reading = Operand::Reading::kRows;
  return OkStatus();
}

// Of an operand whose neighbours are not along the sum: are they what is read at once?
Status CudaMatrixTiles::CheckNeighbours(bool is_row, const Tile& tile, Operand& operand) {
  if (tile.unit->factor.bytes() == 4) {
    operand.reading = Operand::Reading::kElements;
    return OkStatus();
  }
  // 16 bytes: of a one or two rows of each thread, of b two or four columns.
  const bool is_byte = tile.unit->factor.bytes() == 1;
  operand.reading = is_byte ? Operand::Reading::kPairs : Operand::Reading::kColumns;
  const int64_t of_thread = (is_row ? 1 : 2) * (is_byte ? 2 : 1);
  if (is_byte && !is_row) operand.group = 4;
  const std::optional<int64_t> along =
      CoefficientOf(operand.places[0], is_row ? tile.row : tile.column);
  if (along == of_thread && AreNeighbours(operand.places, of_thread)) return OkStatus();
  return InvalidArgument("{} has neighbours neither along the sum nor along the {}, {} of a thread",
                         exprs_.buffer(operand.load->id).name, is_row ? "rows" : "columns",
                         of_thread);
}

// Are there 8 columns more, a constant away, to be read at once with these?
bool CudaMatrixTiles::HasNext(const Operand& operand, size_t position) {
  return position + 2 < operand.places.size() &&
         (operand.places[position + 2] - operand.places[position]).is_constant();
}

// Where the row of 16 bytes is that the thread names to ldmatrix.
Linear CudaMatrixTiles::RowOf(const Tile& tile, const Operand& operand, size_t position) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(tile.lane), zero = arith::Constant(0);
  const Linear in_tile = simplifier.FloorMod(lane, 8);
  const Linear second = simplifier.FloorMod(simplifier.FloorDiv(lane, 8), 2);
  const Linear third = simplifier.FloorDiv(lane, 16);
  const bool is_a = &operand == &tile.a, is_transposed = operand.reading != Operand::Reading::kRows;
  const int64_t half = tile.unit->row_elements();  // of the terms
  const size_t element = is_a ? tile.a_elements[position] : tile.b_elements[position];
  if (operand.reading == Operand::Reading::kPairs) {
    // Tiles: of thread t of four the terms 4t and 4t + 1, then the two after; the same of the upper
    // half. Of the upper two threads the two after come first: with rows an odd number of 16 bytes
    // apart all eight are in banks of their own.
    const Linear after = simplifier.FloorMod(second + simplifier.FloorDiv(in_tile, 4), 2);
    const Linear k = simplifier.FloorDiv(in_tile, 2) * 4 + simplifier.FloorMod(in_tile, 2) +
                     after * 2 + third * half;
    return PlaceWith(tile, operand.load, element, zero, zero, zero) + k * operand.k_stride;
  }
  if (is_a) {
    // Tiles: rows 0 to 7, 8 to 15; then those of the upper half of the sum.
    if (is_transposed) {
      const Linear place = PlaceWith(tile, operand.load, element, zero, zero, zero);
      return place + (in_tile + third * half) * operand.k_stride + second * operand.pair_stride;
    }
    const Linear place = PlaceWith(tile, operand.load, element, in_tile, zero, zero);
    return place + second * operand.pair_stride + third * half;
  }
  // Tiles: the lower and the upper half of the sum; then those of the next 8 columns.
  Linear next = zero;
  if (HasNext(operand, position))
    next = third * (operand.places[position + 2] - operand.places[position]).constant;
  if (is_transposed) {
    const Linear place = PlaceWith(tile, operand.load, element, zero, zero, zero);
    return place + (in_tile + second * half) * operand.k_stride + next;
  }
  const Linear place =
      PlaceWith(tile, operand.load, element, zero, simplifier.FloorDiv(in_tile, 2), zero);
  return place + simplifier.FloorMod(in_tile, 2) * operand.pair_stride + second * half + next;
}

// Where the thread's own element is for register `part` of a fragment.
Linear CudaMatrixTiles::ElementOf(const Tile& tile, const Operand& operand, size_t position,
                                  int part) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear lane = simplifier.Var(tile.lane), zero = arith::Constant(0);
  const Linear k = simplifier.FloorMod(lane, kColumns);
  if (&operand == &tile.a) {
    return PlaceWith(tile, operand.load, tile.a_elements[position + part % 2],
                     simplifier.FloorDiv(lane, kColumns), zero,
                     k + arith::Constant(part / 2 * kColumns));
  }
  const Linear place =
      PlaceWith(tile, operand.load, tile.b_elements[position], zero,
                simplifier.FloorDiv(lane, 2 * kColumns), k + arith::Constant(part * kColumns));
  return place + simplifier.FloorMod(simplifier.FloorDiv(lane, kColumns), 2) * operand.pair_stride;
}

Status CudaMatrixTiles::CheckRows(const Tile& tile, Operand& operand) {
  if (operand.reading == Operand::Reading::kElements || operand.reading == Operand::Reading::kHeld)
    return OkStatus();
  const int64_t elements = tile.unit->row_elements();
  for (size_t i = 0; i < operand.places.size(); i += operand.group) {
    if (vectors_.MultipleOf(RowOf(tile, operand, i)) % elements == 0) continue;
    if (tile.unit->factor.bytes() == 4) {
      operand.reading = Operand::Reading::kElements;
      return OkStatus();
    }
    return InvalidArgument("{} neighbours of {} are not aligned to 16 bytes", elements,
                           exprs_.buffer(operand.load->id).name);
  }
  return OkStatus();
}

Status CudaMatrixTiles::CheckHeld(Tile& tile) {
  if (held_.pairs.contains(tile.b.load->id))
    return InvalidArgument("{} is held as if it were the first factor",
                           exprs_.buffer(tile.b.load->id).name);
  const auto pairs = held_.pairs.find(tile.a.load->id);
  if (pairs == held_.pairs.end()) return OkStatus();
  const lower::HeldPairs::Read* const held = pairs->second.ReadBy(tile.store);
  const bool is_in_loops =
      std::ranges::any_of(tile.around, [](Stmt loop) { return loop->extent > 1; });
  if (held == nullptr || held->term_var != tile.k_loop->var || tile.order.is_changed() ||
      (tile.is_warpgroup && is_in_loops)) {
    return InvalidArgument("{} is held for another tile", exprs_.buffer(tile.a.load->id).name);
  }
  tile.a.reading = Operand::Reading::kHeld;
  // Quotients of its own: it needs few of those of other tiles.
  tile.lane = scope_.OwnVar("lane beside held", kWarpThreads);
  return OkStatus();
}

// ---- of four warps together

Status CudaMatrixTiles::CheckWarpgroups(const Tile& tile, const ThreadsAround& threads) {
  if (tile.order.columns > 1)
    return InvalidArgument("warps stand beside each other along the columns");
  if (threads.count % kWarpgroupThreads == 0) return OkStatus();
  return InvalidArgument(
      "a block has {} threads, expected a multiple of {} for four warps together", threads.count,
      kWarpgroupThreads);
}

Status CudaMatrixTiles::MatchWarpgroup(Tile& tile) {
  KILN_RETURN_IF_ERROR(MatchColumns(tile));
  MatchRows(tile);
  return OkStatus();
}

// Rows that are no matrix's, as those of a window, come through registers.
void CudaMatrixTiles::MatchRows(Tile& tile) {
  const auto found = swizzles_.find(tile.a.load->id);
  if (found == swizzles_.end() || tile.a.reading != Operand::Reading::kRows) return;
  Swizzle& swizzle = found->second;
  const std::vector<int64_t>& shape = exprs_.buffer(tile.a.load->id).shape;
  const bool is_known = swizzle.interleaved_rows > 0;
  if (!is_known) {
    // Those of a warp may follow each other as they are.
    if (DescribeRowsOf(tile, swizzle).ok()) return;
    const int64_t rows = 2 * tile.a.pair_stride / swizzle.width;
    if (shape.size() < 2 || rows % (2 * kWarpgroupWarps * kRows) != 0 || rows == 0 ||
        shape[shape.size() - 2] % rows != 0)
      return;
    swizzle.interleaved_rows = rows;
  }
  if (DescribeRowsOf(tile, swizzle).ok() || is_known) return;
  swizzle.interleaved_rows = 0;
}

Status CudaMatrixTiles::DescribeRowsOf(Tile& tile, const Swizzle& swizzle) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear zero = arith::Constant(0), row = simplifier.Var(tile.row);
  std::vector<Linear> starts;
  std::optional<WarpgroupFactor> rows;
  for (size_t i = 0; i < tile.a_elements.size(); i += 2) {
    const auto place = [&](size_t element, const Linear& thread_row) {
      return PlaceWith(tile, tile.a.load, tile.a_elements[element], thread_row, zero, zero);
    };
    const Linear low = place(i, row), apart = place(i + 1, row) - low;
    const RowPlaces found = {.row_stride = CoefficientOf(low, tile.row).value_or(0),
                             .pair_stride = apart.is_constant() ? apart.constant : 0,
                             .member_stride = CoefficientOf(low, tile.member).value_or(0),
                             .k_stride = tile.a.k_stride,
                             .start = WithoutVar(place(i, zero), tile.member)};
    KILN_ASSIGN_OR_RETURN(rows, DescribeRows(scope_, swizzle, found));
    starts.push_back(found.start);
  }
  tile.rows = std::move(rows);
  tile.row_starts = std::move(starts);
  return OkStatus();
}

// Of the second factor, at the step.
Linear CudaMatrixTiles::StartOfColumns(const Tile& tile) {
  const Linear zero = arith::Constant(0);
  Linear start = PlaceWith(tile, tile.b.load, tile.b_elements[0], zero, zero, zero);
  Reset(tile);
  return start;
}

Status CudaMatrixTiles::MatchColumns(Tile& tile) {
  const Operand& b = tile.b;
  const std::string& name = exprs_.buffer(b.load->id).name;
  const Swizzle* const swizzle = exprs_.SwizzleOrNull(b.load->id);
  if (swizzle == nullptr)
    return InvalidArgument("{} is not swizzled, which the units of four warps need", name);
  for (const Linear& place : b.places) {
    if (!HasVar(place, tile.member)) continue;
    return InvalidArgument("the second factor, {}, is not the same for the four warps", name);
  }
  for (const std::vector<Place>& row : tile.sums) {
    tile.sums_apart.neighbours = row[1].offset.constant - row[0].offset.constant;
    if (row.size() > 2) tile.sums_apart.tiles = row[2].offset.constant - row[0].offset.constant;
    for (size_t j = 0; j < row.size(); ++j) {
      const int64_t place = static_cast<int64_t>(j) / 2 * tile.sums_apart.tiles +
                            static_cast<int64_t>(j) % 2 * tile.sums_apart.neighbours;
      if (row[j].offset - row[0].offset == arith::Constant(place)) continue;
      return InvalidArgument("the sums of a row are not pairs that are equally far apart");
    }
  }
  const ColumnPlaces found = {.places = b.places,
                              .column_stride = CoefficientOf(b.places[0], tile.column).value_or(0),
                              .pair_stride = b.pair_stride,
                              .k_stride = b.k_stride,
                              .start = StartOfColumns(tile)};
  if (tile.a.reading == Operand::Reading::kHeld && HasVar(found.start, tile.warp))
    return InvalidArgument("the second factor, {}, is not the same for all warps", name);
  StatusOr<WarpgroupFactor> columns = DescribeColumns(scope_, *swizzle, found);
  if (!columns.ok()) {
    return InvalidArgument("{} can't be read by the units of four warps: {}", name,
                           Message(columns.status()));
  }
  tile.columns = *std::move(columns);
  return OkStatus();
}

// Of a ring of buffers that are filled ahead of their use: those that no copy under way fills and no
// thread reads.
int64_t CudaMatrixTiles::SpareBuffers(const Tile& tile, const CudaExprs& exprs,
                                      int64_t copies_under_way) {
  if (copies_under_way == kNoCopies) return 0;
  int64_t spare = std::numeric_limits<int64_t>::max();
  for (const Expr load : {tile.a.load, tile.b.load}) {
    const int64_t ring = exprs.buffer(load->id).shape[0];
    const Expr which = load->arg(0);
    if (which->op != Op::kFloorMod || !which->arg(1)->is_const_int(ring)) return 0;
    // One is read, and one is filled behind this tile.
    spare = std::min(spare, ring - 2 - copies_under_way);
  }
  return std::max<int64_t>(0, spare);
}

}  // namespace kiln::codegen
