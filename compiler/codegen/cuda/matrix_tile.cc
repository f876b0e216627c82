#include "compiler/codegen/cuda/matrix_tile.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/arith/multiple.h"
#include "compiler/instructions/matrix_shape.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using instructions::kWarpgroupThreads;
using instructions::kWarpgroupWarps;
using instructions::kWarpThreads;
using ir::Expr;
using ir::MatrixUnitScope;
using ir::Op;
using ir::Stmt;
using Reading = MatrixOperand::Reading;

// Threads of a warp that hold different rows, and different columns.
constexpr int64_t kRows = instructions::kThreadRows, kColumns = instructions::kThreadColumns;

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

// Returns the variable's coefficient. None: it stands in other terms than one by itself.
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

Status Refused(const std::string& why) {
  return why.empty() ? OkStatus() : InvalidArgument("{}", why);
}

std::vector<WarpOrder> OrdersOf(const ThreadsAround& threads) {
  std::vector<WarpOrder> orders = {WarpOrder()};
  const int64_t warps = threads.count / kWarpThreads;
  for (int64_t columns = 2; columns <= instructions::kMostWarpColumns; columns *= 2) {
    if (warps % columns == 0) orders.push_back({.columns = columns});
  }
  for (int64_t groups = 1; groups <= warps; ++groups) {
    if (warps % groups == 0) orders.push_back({.rows = warps / groups * kRows});
  }
  return orders;
}

// Returns how far the position after the next one is, for each position. 0: no constant.
std::vector<int64_t> NextOf(const std::vector<Linear>& places) {
  std::vector<int64_t> next(places.size());
  for (size_t i = 0; i + 2 < places.size(); ++i) {
    const Linear apart = places[i + 2] - places[i];
    if (apart.is_constant()) next[i] = apart.constant;
  }
  return next;
}

}  // namespace

ThreadsAround ThreadsAround::In(Stmt stmt) const {
  ThreadsAround in = *this;
  if (stmt->kind == ir::StmtKind::kIf) {
    if (var >= 0) in.is_all &= !ir::UsesVar(stmt->condition(), var);
    return in;
  }
  if (stmt->loop_kind == ir::LoopKind::kThreadX) {
    in.var = stmt->var;
    in.count = stmt->extent;
  }
  if (stmt->loop_kind == ir::LoopKind::kThreadY || stmt->loop_kind == ir::LoopKind::kThreadZ)
    in.is_all &= stmt->extent == 1;
  return in;
}

StatusOr<MatrixTile> MatrixTileMatcher::Find(const RegisterTile& nest, MatrixUnitScope of,
                                             const ThreadsAround& threads) {
  Status refused;
  for (const WarpOrder& order : OrdersOf(threads)) {
    if (order_ && order != *order_) continue;
    StatusOr<MatrixTile> tile = MatchIn(nest, of, threads, order);
    if (tile.ok()) {
      order_ = order;
      return tile;
    }
    if (refused.ok()) refused = tile.status();
  }
  return refused;
}

StatusOr<MatrixTile> MatrixTileMatcher::MatchIn(const RegisterTile& nest, MatrixUnitScope of,
                                                const ThreadsAround& threads, WarpOrder order) {
  Match match;
  MatrixTile& tile = match.tile;
  tile.store = nest.store;
  tile.order = order;
  tile.inside = nest.inside;
  tile.thread = threads.var;
  tile.num_threads = threads.count;
  tile.is_warpgroup = of == MatrixUnitScope::kWarpgroup;
  KILN_RETURN_IF_ERROR(CheckFactors(nest, tile));
  if (threads.var < 0 || !threads.is_all || threads.count % kWarpThreads != 0) {
    return InvalidArgument(
        "not all threads of a block compute it, numbered by threadIdx.x alone, a multiple of {}",
        kWarpThreads);
  }
  const int64_t column_threads = kColumns * order.columns;
  KILN_RETURN_IF_ERROR(
      Refused(instructions::WhyNoThreads(of, threads.count / column_threads, column_threads)));
  KILN_RETURN_IF_ERROR(FindSumLoop(nest, tile));
  match.places.emplace(program_, swizzles_, scope_, tile);
  const Status status = MatchPlaces(match);
  match.places->Reset();
  KILN_RETURN_IF_ERROR(status);
  return std::move(tile);
}

Status MatrixTileMatcher::CheckFactors(const RegisterTile& nest, MatrixTile& tile) const {
  if (nest.body != nest.store) return InvalidArgument("conditions stand inside of the tile");
  if (TakeComputedFactor(nest, tile)) return CheckLoads(tile);
  const std::optional<instructions::MatrixFactors> factors = FactorsOf(nest.store);
  if (!factors || buffer(nest.store->slot).type != factors->unit->sum) {
    return InvalidArgument(
        "it is no sum of products of two elements of one type, each converted to that of the sum, "
        "that a unit multiplies: {}",
        UnitNames());
  }
  tile.unit = factors->unit;
  tile.a.load = factors->a;
  tile.b.load = factors->b;
  return CheckLoads(tile);
}

Status MatrixTileMatcher::CheckLoads(const MatrixTile& tile) const {
  for (const Expr load : {tile.a.load, tile.b.load}) {
    if (buffer(load->id).scope == ir::Scope::kShared) continue;
    return InvalidArgument("{} is not in shared memory", buffer(load->id).name);
  }
  return OkStatus();
}

// The innermost one that is deep enough goes inside of the others.
Status MatrixTileMatcher::FindSumLoop(const RegisterTile& nest, MatrixTile& tile) const {
  const auto deep = std::find_if(nest.outside.rbegin(), nest.outside.rend(),
                                 [&](Stmt loop) { return loop->extent % tile.depth() == 0; });
  if (deep == nest.outside.rend())
    return InvalidArgument("no loop of the sum has a multiple of {} iterations", tile.depth());
  tile.k_loop = *deep;
  tile.around = nest.outside;
  std::erase(tile.around, tile.k_loop);
  return OkStatus();
}

Status MatrixTileMatcher::MatchPlaces(Match& match) {
  MatrixTile& tile = match.tile;
  // The second one is that of the columns.
  if (tile.computed().computed == nullptr && DependsOnColumn(match, tile.a.load) &&
      !DependsOnColumn(match, tile.b.load))
    std::swap(tile.a.load, tile.b.load);
  KILN_RETURN_IF_ERROR(FindPositions(match));
  KILN_RETURN_IF_ERROR(CheckOperand(/*is_first=*/true, match));
  KILN_RETURN_IF_ERROR(CheckOperand(/*is_first=*/false, match));
  KILN_RETURN_IF_ERROR(CheckHeld(tile));
  for (MatrixOperand* operand : {&tile.a, &tile.b})
    KILN_RETURN_IF_ERROR(CheckRows(match, *operand));
  const int32_t warp = match.places->warp();
  tile.is_of_one_warp = tile.is_held() && std::ranges::none_of(match.b, [&](const Linear& place) {
                          return HasVar(place, warp);
                        });
  return tile.is_warpgroup ? MatchWarpgroup(match) : OkStatus();
}

bool MatrixTileMatcher::DependsOnColumn(Match& match, Expr load) {
  arith::Simplifier& simplifier = scope_.simplifier();
  MatrixPlaces& places = *match.places;
  const Linear place = places.PlaceOf(load, 0, simplifier.Var(places.row()),
                                      simplifier.Var(places.column()), simplifier.Var(places.k()));
  return HasVar(place, places.column());
}

// The elements of a thread are all pairs of a position of a and one of b.
Status MatrixTileMatcher::FindPositions(Match& match) {
  MatrixTile& tile = match.tile;
  int64_t elements = 1;
  for (Stmt loop : tile.inside) elements *= loop->extent;
  if (elements > instructions::kMostTileElements) {
    return InvalidArgument("a thread has {} elements of the tile, at most {} can be", elements,
                           instructions::kMostTileElements);
  }
  arith::Simplifier& simplifier = scope_.simplifier();
  MatrixPlaces& places = *match.places;
  const Linear row = simplifier.Var(places.row()), column = simplifier.Var(places.column()),
               k = simplifier.Var(places.k());
  std::vector<std::pair<size_t, size_t>> positions;
  std::vector<int64_t> sums;
  for (size_t element = 0; element < static_cast<size_t>(elements); ++element) {
    const size_t known_a = match.a.size(), known_b = match.b.size();
    const size_t at_a = PositionOf(match.a, places.PlaceOf(tile.a.load, element, row, column, k));
    const size_t at_b = PositionOf(match.b, places.PlaceOf(tile.b.load, element, row, column, k));
    if (at_a == known_a) tile.a.elements.push_back(element);
    if (at_b == known_b) tile.b.elements.push_back(element);
    positions.emplace_back(at_a, at_b);
    const Linear sum =
        PlaceIn(scope_, program_, swizzles_, tile.store->slot, tile.store->indices()).offset;
    if (!sum.is_constant())
      return InvalidArgument("the place of a sum is not known when it is compiled");
    sums.push_back(sum.constant);
  }
  return SortSums(match, positions, sums);
}

// `positions`: of each element those of its row and its column.
Status MatrixTileMatcher::SortSums(Match& match,
                                   const std::vector<std::pair<size_t, size_t>>& positions,
                                   const std::vector<int64_t>& sums) {
  MatrixTile& tile = match.tile;
  const size_t rows = match.a.size(), columns = match.b.size();
  KILN_RETURN_IF_ERROR(Refused(instructions::WhyNoElements(
      tile.is_warpgroup ? MatrixUnitScope::kWarpgroup : MatrixUnitScope::kWarp,
      static_cast<int64_t>(rows), static_cast<int64_t>(columns))));
  if (rows * columns != positions.size()) {
    return InvalidArgument(
        "a thread has {} elements in {} rows and {} columns, expected one for each pair",
        positions.size(), rows, columns);
  }
  const std::vector<size_t> row_numbers = SortPlaces(match.a, tile.a.elements),
                            column_numbers = SortPlaces(match.b, tile.b.elements);
  tile.a.next = NextOf(match.a);
  tile.b.next = NextOf(match.b);
  tile.sums.assign(rows, std::vector<int64_t>(columns));
  std::vector<bool> is_there(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const size_t at_a = row_numbers[positions[i].first], at_b = column_numbers[positions[i].second];
    if (is_there[at_a * columns + at_b])
      return InvalidArgument("two elements of a thread are in one row and column");
    is_there[at_a * columns + at_b] = true;
    tile.sums[at_a][at_b] = sums[i];
  }
  return OkStatus();
}

Status MatrixTileMatcher::CheckOperand(bool is_first, Match& match) {
  MatrixOperand& operand = is_first ? match.tile.a : match.tile.b;
  const std::vector<Linear>& places = is_first ? match.a : match.b;
  const int32_t other = is_first ? match.places->column() : match.places->row();
  const std::string& name = buffer(operand.load->id).name;
  for (const Linear& place : places) {
    if (!HasVar(place, other)) continue;
    return InvalidArgument("the {} factor, {}, is not the same for the threads of a {} of {} x {}",
                           is_first ? "first" : "second", name, is_first ? "row" : "column", kRows,
                           kColumns);
  }
  for (size_t i = 0; i < places.size(); i += 2) {
    const Linear apart = places[i + 1] - places[i];
    if (!apart.is_constant() || (i > 0 && apart.constant != operand.pair_stride)) {
      return InvalidArgument("the {} of {} are not equally far apart",
                             is_first ? "rows" : "columns", name);
    }
    operand.pair_stride = apart.constant;
  }
  if (operand.computed != nullptr) return CheckComputed(match);
  const std::optional<int64_t> along_k = CoefficientOf(places[0], match.places->k());
  if (!along_k) return InvalidArgument("{} is not read at equal distances along the sum", name);
  operand.k_stride = *along_k;
  if (operand.k_stride != 1) return CheckNeighbours(is_first, match, operand);
  operand.reading = Reading::kRows;
  return OkStatus();
}

// The neighbours are not along the sum. Checks that they are what is read at once.
Status MatrixTileMatcher::CheckNeighbours(bool is_first, const Match& match,
                                          MatrixOperand& operand) {
  const int64_t bytes = match.tile.unit->factor.bytes();
  if (bytes == 4) {
    operand.reading = Reading::kElements;
    return OkStatus();
  }
  // 16 bytes: of a one or two rows of each thread, of b two or four columns.
  const bool is_byte = bytes == 1;
  operand.reading = is_byte ? Reading::kPairs : Reading::kColumns;
  const int64_t of_thread = (is_first ? 1 : 2) * (is_byte ? 2 : 1);
  if (is_byte && !is_first) operand.group = 4;
  const std::vector<Linear>& places = is_first ? match.a : match.b;
  const std::optional<int64_t> along =
      CoefficientOf(places[0], is_first ? match.places->row() : match.places->column());
  if (along == of_thread && AreNeighbours(places, of_thread)) return OkStatus();
  return InvalidArgument("{} has neighbours neither along the sum nor along the {}, {} of a thread",
                         buffer(operand.load->id).name, is_first ? "rows" : "columns", of_thread);
}

Status MatrixTileMatcher::CheckRows(Match& match, MatrixOperand& operand) {
  if (operand.reading == Reading::kElements || operand.reading == Reading::kHeld ||
      operand.reading == Reading::kComputed)
    return OkStatus();
  const int64_t elements = match.tile.unit->row_elements();
  for (size_t i = 0; i < operand.elements.size(); i += operand.group) {
    const Linear row = match.places->RowOf(operand, i);
    if (arith::MultipleOf(scope_.simplifier(), row) % elements == 0) continue;
    if (match.tile.unit->factor.bytes() == 4) {
      operand.reading = Reading::kElements;
      return OkStatus();
    }
    return InvalidArgument("{} neighbours of {} are not aligned to 16 bytes", elements,
                           buffer(operand.load->id).name);
  }
  return OkStatus();
}

Status MatrixTileMatcher::CheckHeld(MatrixTile& tile) const {
  if (held_.pairs.contains(tile.b.load->id))
    return InvalidArgument("{} is held as if it were the first factor",
                           buffer(tile.b.load->id).name);
  const auto pairs = held_.pairs.find(tile.a.load->id);
  if (pairs == held_.pairs.end()) return OkStatus();
  const lower::HeldPairs::Read* const held = pairs->second.ReadBy(tile.store);
  const bool is_in_loops =
      std::ranges::any_of(tile.around, [](Stmt loop) { return loop->extent > 1; });
  if (held == nullptr || held->term_var != tile.k_loop->var || tile.order.is_changed() ||
      (tile.is_warpgroup && is_in_loops)) {
    return InvalidArgument("{} is held for another tile", buffer(tile.a.load->id).name);
  }
  tile.a.reading = Reading::kHeld;
  return OkStatus();
}

// ---- of four warps together

Status MatrixTileMatcher::MatchWarpgroup(Match& match) {
  KILN_RETURN_IF_ERROR(MatchColumns(match));
  MatchRows(match);
  return OkStatus();
}

// Rows that are no matrix's, as those of a window, come through registers.
void MatrixTileMatcher::MatchRows(Match& match) {
  const MatrixOperand& a = match.tile.a;
  const auto found = swizzles_.find(a.load->id);
  if (found == swizzles_.end() || a.reading != Reading::kRows) return;
  Swizzle& swizzle = found->second;
  const std::vector<int64_t>& shape = buffer(a.load->id).shape;
  const bool is_known = swizzle.interleaved_rows > 0;
  if (!is_known) {
    // The rows of a warp may follow each other as they are.
    if (DescribeRowsOf(match, swizzle).ok()) return;
    const int64_t rows = 2 * a.pair_stride / swizzle.width;
    if (shape.size() < 2 || rows % (2 * kWarpgroupWarps * kRows) != 0 || rows == 0 ||
        shape[shape.size() - 2] % rows != 0)
      return;
    swizzle.interleaved_rows = rows;
  }
  if (DescribeRowsOf(match, swizzle).ok() || is_known) return;
  swizzle.interleaved_rows = 0;
}

Status MatrixTileMatcher::DescribeRowsOf(Match& match, const Swizzle& swizzle) {
  const MatrixOperand& a = match.tile.a;
  MatrixPlaces& places = *match.places;
  const Linear zero = arith::Constant(0), row = scope_.simplifier().Var(places.row());
  std::optional<WarpgroupFactor> rows;
  for (size_t i = 0; i < a.elements.size(); i += 2) {
    const auto place = [&](size_t position) {
      return places.PlaceOf(a.load, a.elements[position], row, zero, zero);
    };
    const Linear low = place(i), apart = place(i + 1) - low;
    KILN_ASSIGN_OR_RETURN(
        rows, DescribeRows(scope_, swizzle,
                           {.row_stride = CoefficientOf(low, places.row()).value_or(0),
                            .pair_stride = apart.is_constant() ? apart.constant : 0,
                            .member_stride = CoefficientOf(low, places.member()).value_or(0),
                            .k_stride = a.k_stride,
                            .start = places.StartOfRows(i)}));
  }
  match.tile.rows = rows;
  return OkStatus();
}

Status MatrixTileMatcher::MatchColumns(Match& match) {
  MatrixTile& tile = match.tile;
  const std::string& name = buffer(tile.b.load->id).name;
  const Swizzle* const swizzle = SwizzleOrNull(swizzles_, tile.b.load->id);
  if (swizzle == nullptr)
    return InvalidArgument("{} is not swizzled, which the units of four warps need", name);
  for (const Linear& place : match.b) {
    if (!HasVar(place, match.places->member())) continue;
    return InvalidArgument("the second factor, {}, is not the same for the four warps", name);
  }
  for (const std::vector<int64_t>& row : tile.sums) {
    tile.sums_apart.neighbours = row[1] - row[0];
    if (row.size() > 2) tile.sums_apart.tiles = row[2] - row[0];
    for (size_t j = 0; j < row.size(); ++j) {
      const int64_t place = static_cast<int64_t>(j) / 2 * tile.sums_apart.tiles +
                            static_cast<int64_t>(j) % 2 * tile.sums_apart.neighbours;
      if (row[j] - row[0] == place) continue;
      return InvalidArgument("the sums of a row are not pairs that are equally far apart");
    }
  }
  const ColumnPlaces found = {
      .places = match.b,
      .column_stride = CoefficientOf(match.b[0], match.places->column()).value_or(0),
      .pair_stride = tile.b.pair_stride,
      .k_stride = tile.b.k_stride,
      .start = match.places->StartOfColumns()};
  if (tile.is_held() && HasVar(found.start, match.places->warp()))
    return InvalidArgument("the second factor, {}, is not the same for all warps", name);
  StatusOr<WarpgroupFactor> columns = DescribeColumns(scope_, *swizzle, found);
  if (!columns.ok()) {
    return InvalidArgument("{} can't be read by the units of four warps: {}", name,
                           Message(columns.status()));
  }
  tile.columns = *columns;
  return OkStatus();
}

}  // namespace kiln::codegen
