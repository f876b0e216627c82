#include "compiler/codegen/cuda/matrix_tile.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/codegen/cuda/matrix_warpgroup.h"
#include "compiler/codegen/cuda/warp_reduce.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;

// Of an instruction.
constexpr int64_t kRows = 8, kColumns = 4;  // of threads
// Accumulators of a thread: more than the registers that it can have.
constexpr int64_t kMaxElements = 256;

std::optional<ir::MatrixFactors> FactorsOf(Stmt store) {
  const Expr product = ir::AddedBy(store);
  return product == nullptr ? std::nullopt : ir::MatrixFactorsOf(product);
}

// "float16 in float32, ..."
std::string UnitNames() {
  std::string names;
  for (const ir::MatrixUnit& unit : ir::MatrixUnits()) {
    names += fmt::format("{}{} in {}", names.empty() ? "" : ", ", ir::TypeName(unit.factor),
                         ir::TypeName(unit.sum));
  }
  return names;
}

// The function that loads tiles by ldmatrix.
std::string_view LoadName(bool is_transposed) {
  return is_transposed ? "load_tiles_transposed" : "load_tiles";
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

}  // namespace

bool IsForMatrixUnits(const ir::Program& program, Stmt store) {
  return program.stages[static_cast<size_t>(store->stage)].hints[ir::Hint::kMatrixUnit] != 0 &&
         ir::AddedBy(store) != nullptr;
}

struct CudaMatrixTiles::Tile {
  const ir::MatrixUnit* unit = nullptr;
  Stmt store = nullptr;
  std::vector<Stmt> around;  // reduction loops but for the innermost one
  std::vector<Stmt> inside;  // loops over the elements of a thread
  Stmt k_loop = nullptr;
  int32_t thread = -1;
  int64_t num_threads = 0;
  // Variables of the scope: which warp, thread / 4 and thread % 4 in it, thread in it, which
  // iterations of the reduction, `depth` at once, which of them.
  int32_t warp = -1, row = -1, column = -1, lane = -1, step = -1, k = -1;
  Operand a, b;
  std::vector<std::vector<Place>> sums;  // [position of a][of b]
  // Elements of a thread by number: the first of each position.
  std::vector<size_t> a_elements, b_elements;
  // Of four warps together: `warp` numbers warpgroups, `member` the warps of one.
  bool is_warpgroup = false;
  int64_t warp_columns = 1;
  int32_t member = -1;
  WarpgroupFactor columns = {};

  int64_t depth() const { return unit->depth(); }
  bool has_warps() const { return num_threads > (is_warpgroup ? kWarpgroupThreads : kWarpThreads); }
  int64_t steps() const { return k_loop->extent / depth(); }
};

// ---- matching

// All tiles of a kernel have their threads in one order.
StatusOr<CudaMatrixTiles::Tile> CudaMatrixTiles::Find(const RegisterTile& nest,
                                                      const ThreadsAround& threads) {
  Status refused;
  for (const int64_t columns : {1, 2, 4, 8}) {
    if (warp_columns_ != 0 && columns != warp_columns_) continue;
    if (columns > 1 && threads.count % (columns * kWarpThreads) != 0) break;
    StatusOr<Tile> tile = Match(nest, threads, columns);
    if (tile.ok()) {
      warp_columns_ = columns;
      return tile;
    }
    if (refused.ok()) refused = tile.status();
  }
  return refused;
}

StatusOr<CudaMatrixTiles::Tile> CudaMatrixTiles::Match(const RegisterTile& nest,
                                                       const ThreadsAround& threads,
                                                       int64_t warp_columns) {
  Tile tile;
  tile.store = nest.store;
  tile.warp_columns = warp_columns;
  if (nest.body != nest.store) return InvalidArgument("conditions stand inside of the tile");
  const std::optional<ir::MatrixFactors> factors = FactorsOf(nest.store);
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
  tile.is_warpgroup = exprs_.HintOf(nest.store->stage, ir::Hint::kMatrixUnit) == kWarpgroupUnit;
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
  if (tile.warp_columns > 1) {
    const Linear warp = simplifier.Var(tile.warp);
    const Linear warp_row = simplifier.FloorDiv(warp, tile.warp_columns),
                 warp_column = simplifier.FloorMod(warp, tile.warp_columns);
    return PlaceOfThread(
        tile, load,
        (warp_row * kRows + row) * (kColumns * tile.warp_columns) + warp_column * kColumns + column,
        k);
  }
  Linear thread = row * kColumns + column;
  if (tile.is_warpgroup) thread = thread + simplifier.Var(tile.member) * kWarpThreads;
  if (tile.has_warps()) {
    thread =
        thread + simplifier.Var(tile.warp) * (tile.is_warpgroup ? kWarpgroupThreads : kWarpThreads);
  }
  return PlaceOfThread(tile, load, thread, k);
}

Linear CudaMatrixTiles::PlaceOfThread(const Tile& tile, Expr load, const Linear& thread,
                                      const Linear& k) {
  arith::Simplifier& simplifier = scope_.simplifier();
  scope_.SetValue(tile.thread, thread);
  scope_.SetValue(tile.k_loop->var,
                  tile.steps() > 1 ? simplifier.Var(tile.step) * tile.depth() + k : k);
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
  operand.reading = Operand::Reading::kColumns;
  // 8 neighbours: of a the rows of threads, of b two columns of each thread.
  const std::optional<int64_t> along =
      CoefficientOf(operand.places[0], is_row ? tile.row : tile.column);
  if (along == (is_row ? 1 : 2) && (is_row || operand.pair_stride == 1)) return OkStatus();
  return InvalidArgument("{} has neighbours neither along the sum nor along the {}",
                         exprs_.buffer(operand.load->id).name, is_row ? "rows" : "columns");
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
  if (operand.reading == Operand::Reading::kElements) return OkStatus();
  const int64_t elements = tile.unit->row_elements();
  for (size_t i = 0; i < operand.places.size(); i += 2) {
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

// ---- of four warps together

Status CudaMatrixTiles::CheckWarpgroups(const Tile& tile, const ThreadsAround& threads) {
  if (tile.unit->factor.bytes() != 2)
    return InvalidArgument("four warps together multiply 16-bit floats only");
  if (tile.warp_columns > 1)
    return InvalidArgument("warps stand beside each other along the columns");
  if (threads.count % kWarpgroupThreads == 0) return OkStatus();
  return InvalidArgument(
      "a block has {} threads, expected a multiple of {} for four warps together", threads.count,
      kWarpgroupThreads);
}

Status CudaMatrixTiles::MatchWarpgroup(Tile& tile) {
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
    for (size_t j = 1; j < row.size(); ++j) {
      if (row[j].offset - row[j - 1].offset == arith::Constant(1)) continue;
      return InvalidArgument("the sums of a row do not follow each other");
    }
  }
  const Linear zero = arith::Constant(0);
  const ColumnPlaces found = {
      .places = b.places,
      .column_stride = CoefficientOf(b.places[0], tile.column).value_or(0),
      .pair_stride = b.pair_stride,
      .k_stride = b.k_stride,
      .start = PlaceWith(tile, b.load, tile.b_elements[0], zero, zero, zero)};
  StatusOr<WarpgroupFactor> columns = DescribeColumns(scope_, *swizzle, found);
  if (!columns.ok()) {
    return InvalidArgument("{} can't be read by the units of four warps: {}", name,
                           Message(columns.status()));
  }
  tile.columns = *std::move(columns);
  return OkStatus();
}

void CudaMatrixTiles::EmitWarpgroupSteps(const Tile& tile) {
  WarpgroupText text;
  for (Stmt loop : tile.around) {
    if (loop->extent > 1) text.loops.emplace_back(loop->var, loop->extent);
  }
  if (tile.steps() > 1) {
    scope_.SetName(tile.step, names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    text.loops.emplace_back(tile.step, tile.steps());
  }
  const auto sum = [&](size_t row) { return exprs_.Element(tile.store->slot, tile.sums[row][0]); };
  for (size_t i = 0; i < tile.sums.size(); i += 2) text.rows.push_back({sum(i), sum(i + 1)});
  text.sums = exprs_.buffer_name(tile.store->slot);
  text.type = tile.unit->name;
  text.factor = tile.columns;
  text.load = [&](const std::string& tiles) { LoadFirst(tile, tiles); };
  text.start = [&] {
    return exprs_.LineElement(tile.b.load->id, {.offset = tile.columns.start, .block = {}});
  };
  preamble_.warpgroup_units.emplace(tile.columns.columns, text.type);
  const std::string tiles = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    &thread = scope_.name(tile.thread);
  scope_.SetName(tile.member, names_.Unique("warp"));
  const std::string member = fmt::format("const int {} = {} / {} % {};", scope_.name(tile.member),
                                         thread, kWarpThreads, kWarpgroupWarps);
  blocks_.Bound(tile.member, member, [&] {
    const auto emit = [&] {
      if (EmitWarpgroup(text, tiles, blocks_)) awaited_sums_ = text.sums;
    };
    if (!tile.has_warps()) return emit();
    scope_.SetName(tile.warp, names_.Unique("warpgroup"));
    const std::string warpgroup =
        fmt::format("const int {} = {} / {};", scope_.name(tile.warp), thread, kWarpgroupThreads);
    blocks_.Bound(tile.warp, warpgroup, emit);
  });
}

void CudaMatrixTiles::Wait() {
  EmitWait(awaited_sums_, blocks_);
  awaited_sums_.clear();
}

// ---- text

Status CudaMatrixTiles::Emit(const RegisterTile& nest, const ThreadsAround& threads) {
  KILN_ASSIGN_OR_RETURN(const Tile tile, Find(nest, threads));
  preamble_.matrix_units.insert(tile.unit);
  // Not the number that the thread has in the program.
  const std::string thread =
      tile.warp_columns > 1 ? "static_cast<int>(threadIdx.x)" : scope_.name(tile.thread);
  scope_.SetName(tile.lane, names_.Unique("lane"));
  const std::string lane =
      fmt::format("const int {} = {} % {};", scope_.name(tile.lane), thread, kWarpThreads);
  blocks_.Braced("{", [&] {
    blocks_.Bound(tile.lane, lane, [&] {
      if (tile.is_warpgroup) return EmitWarpgroupSteps(tile);
      if (!tile.has_warps()) return EmitSteps(tile);
      scope_.SetName(tile.warp, names_.Unique("warp"));
      const std::string warp =
          fmt::format("const int {} = {} / {};", scope_.name(tile.warp), thread, kWarpThreads);
      blocks_.Bound(tile.warp, warp, [&] { EmitSteps(tile); });
    });
  });
  Reset(tile);
  return OkStatus();
}

void CudaMatrixTiles::EmitSteps(const Tile& tile) {
  const auto emit = [&](auto& self, size_t depth) -> void {
    if (depth < tile.around.size()) {
      Stmt loop = tile.around[depth];
      if (loop->extent == 1) return self(self, depth + 1);
      return blocks_.Loop(loop->var, loop->extent, 0, [&] { self(self, depth + 1); });
    }
    if (tile.steps() == 1) return EmitStep(tile);
    scope_.SetName(tile.step, names_.Unique(scope_.name(tile.k_loop->var) + "_step"));
    blocks_.Loop(tile.step, tile.steps(), tile.steps() <= 8 ? tile.steps() : 0,
                 [&] { EmitStep(tile); });
  };
  emit(emit, 0);
}

std::string CudaMatrixTiles::Row(const Tile& tile, const Operand& operand, size_t position) {
  std::string text = "&" + exprs_.Element(operand.load->id,
                                          {.offset = RowOf(tile, operand, position), .block = {}});
  Reset(tile);
  return text;
}

std::string CudaMatrixTiles::Element(const Tile& tile, const Operand& operand, size_t position,
                                     int part) {
  std::string text = exprs_.Element(
      operand.load->id, {.offset = ElementOf(tile, operand, position, part), .block = {}});
  Reset(tile);
  return fmt::format("__float_as_uint({})", text);
}

// Of each two rows a fragment of four registers.
void CudaMatrixTiles::LoadFirst(const Tile& tile, const std::string& name) {
  for (size_t i = 0; i < tile.a.places.size() / 2; ++i) {
    if (tile.a.reading == Operand::Reading::kElements) {
      for (int part = 0; part < 4; ++part)
        blocks_.Line(
            fmt::format("{}[{}][{}] = {};", name, i, part, Element(tile, tile.a, 2 * i, part)));
      continue;
    }
    blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{2}][2], {1}[{2}][3], {3});",
                             LoadName(tile.a.reading == Operand::Reading::kColumns), name, i,
                             Row(tile, tile.a, 2 * i)));
  }
}

// Of each two columns a fragment of two registers.
void CudaMatrixTiles::LoadSecond(const Tile& tile, const std::string& name) {
  const size_t columns = tile.b.places.size() / 2;
  if (tile.b.reading == Operand::Reading::kElements) {
    for (size_t j = 0; j < columns; ++j) {
      for (int part = 0; part < 2; ++part)
        blocks_.Line(
            fmt::format("{}[{}][{}] = {};", name, j, part, Element(tile, tile.b, 2 * j, part)));
    }
    return;
  }
  const std::string_view load = LoadName(tile.b.reading == Operand::Reading::kColumns);
  for (size_t j = 0; j < columns;) {
    const bool is_pair = HasNext(tile.b, 2 * j);
    if (is_pair) {
      blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {1}[{3}][0], {1}[{3}][1], {4});",
                               load, name, j, j + 1, Row(tile, tile.b, 2 * j)));
    } else {
      blocks_.Line(fmt::format("{0}({1}[{2}][0], {1}[{2}][1], {3});", load, name, j,
                               Row(tile, tile.b, 2 * j)));
    }
    j += is_pair ? 2 : 1;
  }
}

void CudaMatrixTiles::EmitStep(const Tile& tile) {
  const std::string a = names_.Unique(exprs_.buffer_name(tile.a.load->id) + "_tiles"),
                    b = names_.Unique(exprs_.buffer_name(tile.b.load->id) + "_tiles");
  const size_t rows = tile.a.places.size() / 2, columns = tile.b.places.size() / 2;
  blocks_.Line(fmt::format("unsigned {}[{}][4], {}[{}][2];", a, rows, b, columns));
  LoadFirst(tile, a);
  LoadSecond(tile, b);
  if (tile.unit->rounds) {
    for (const std::string& tiles : {a, b}) blocks_.Line(fmt::format("round_tiles({});", tiles));
  }
  const auto sum = [&](size_t i, size_t j) {
    return exprs_.Element(tile.store->slot, tile.sums[i][j]);
  };
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      blocks_.Line(fmt::format("multiply_tiles_{}({}, {}, {}, {}, {}[{}], {}[{}]);",
                               tile.unit->name, sum(2 * i, 2 * j), sum(2 * i, 2 * j + 1),
                               sum(2 * i + 1, 2 * j), sum(2 * i + 1, 2 * j + 1), a, i, b, j));
    }
  }
}

}  // namespace kiln::codegen
