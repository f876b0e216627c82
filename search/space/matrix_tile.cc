#include "search/space/matrix_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/numbers/integers.h"
#include "compiler/instructions/matrix_shape.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_rows.h"
#include "search/space/stage_view.h"

namespace kiln::search {
namespace {

using instructions::kThreadColumns;
using instructions::kThreadRows;
using instructions::kWarpgroupWarps;
using ir::MatrixUnitScope;
using schedule::State;

// Of a block.
constexpr int64_t kMaxWarps = 16;
// A thread has no more of the tile in registers.
constexpr int64_t kMaxElements = 128;
// How often rows of several axes are put in the order in which the units of four warps read them.
constexpr double kInOrderProb = 0.6;

// A number of warps along the rows.
int64_t RandomWarps(MatrixUnitScope scope, Rng& rng) {
  if (scope == MatrixUnitScope::kWarpgroup) {
    constexpr std::array<int64_t, 10> kGroups = {1, 1, 1, 1, 1, 1, 2, 2, 2, 3};
    return kWarpgroupWarps * PickFrom(rng, kGroups);
  }
  constexpr std::array<int64_t, 7> kWarps = {1, 2, 2, 4, 4, 4, 8};
  return PickFrom(rng, kWarps);
}

}  // namespace

int64_t MostVThreads(const target::HardwareParams& hardware, bool has_matrix_hint) {
  return has_matrix_hint ? std::max<int64_t>(kMaxMatrixVThreads, hardware.max_vthread_extent)
                         : hardware.max_vthread_extent;
}

namespace {

// Does a tile divide the axis that numbers groups as groups do?
bool IsOfOneGroup(const MatrixProduct& product, std::span<const std::vector<int64_t>> lengths) {
  if (product.group_axis < 0) return true;
  const auto axis = static_cast<size_t>(product.group_axis);
  const size_t before = product.axes.size() - lengths.size();
  return axis >= before && product.group_size % ProductOfCounts(lengths[axis - before]) == 0;
}

}  // namespace

// ---- drawing

namespace {

// No virtual thread is beyond the axis in every block.
bool IsNeeded(std::span<const int64_t> lengths, int64_t extent) {
  return (lengths[0] - 1) * lengths[1] * lengths[2] * lengths[3] < extent;
}

// Warps beside each other, of a block that has these along the rows.
int64_t RandomWarpColumns(MatrixUnitScope scope, int64_t row_warps, Rng& rng) {
  constexpr std::array<int64_t, 6> kColumns = {1, 1, 1, 2, 2, 4};
  if (scope == MatrixUnitScope::kWarpgroup) return 1;
  const int64_t columns = PickFrom(rng, kColumns);
  return columns * row_warps <= kMaxWarps ? columns : 1;
}

// Tiles of 8 columns. Rows of 32 bytes and more are what units of four warps read.
std::span<const int64_t> ColumnTiles(MatrixUnitScope scope) {
  static constexpr std::array<int64_t, 10> kOfWarp = {1, 2, 3, 4, 4, 6, 8, 8, 12, 16};
  // Such that are no powers of two let one wave of blocks cover an extent.
  static constexpr std::array<int64_t, 22> kOfWarpgroup = {
      2, 4, 4, 6, 8, 8, 8, 10, 12, 12, 14, 16, 16, 16, 18, 20, 22, 24, 24, 28, 32, 32};
  if (scope == MatrixUnitScope::kWarpgroup) return kOfWarpgroup;
  return kOfWarp;
}

// For the row axes, the last one first, powers of two whose product is `threads`, of which the last one
// has the odd part: no axis gets more than covers it. Empty: that many do not fit.
std::vector<int64_t> ShareOut(int64_t threads, std::span<const int64_t> extents,
                              const std::vector<size_t>& rows, Rng& rng) {
  std::vector<int64_t> parts(rows.size(), 1);
  const int64_t odd = threads >> std::countr_zero(static_cast<uint64_t>(threads));
  if (odd > extents[rows[0]]) return {};
  parts[0] = odd;
  threads /= odd;
  for (int tries = 0; threads > 1 && tries < 64; ++tries) {
    // The innermost axis is the likeliest: its elements are neighbours.
    const size_t picked =
        Chance(rng, 0.6) ? 0
                         : static_cast<size_t>(UniformInt(rng, static_cast<int64_t>(rows.size())));
    const auto extent = static_cast<uint64_t>(extents[rows[picked]]);
    if (parts[picked] * 2 > static_cast<int64_t>(std::bit_ceil(extent))) continue;
    parts[picked] *= 2;
    threads /= 2;
  }
  if (threads > 1) parts.clear();
  return parts;
}

// What threads may cover of the tiled axes, of these extents: of that which numbers groups, one of them.
std::vector<int64_t> ExtentsForThreads(const MatrixProduct& product,
                                       std::span<const int64_t> extents, int64_t thread_rows) {
  std::vector<int64_t> covered(extents.begin(), extents.end());
  const size_t before = product.axes.size() - extents.size();
  const auto group_axis = static_cast<size_t>(product.group_axis);
  if (product.group_axis >= 0 && group_axis >= before)
    covered[group_axis - before] = std::max<int64_t>(1, product.group_size / thread_rows);
  return covered;
}

// Threads and virtual threads of the row axes, the last one first, anyhow. False: this draw does not
// fit.
bool ShareRowsOut(const MatrixProduct& product, MatrixUnitScope scope,
                  std::span<const int64_t> extents, const std::vector<size_t>& rows,
                  int64_t thread_rows, std::vector<std::vector<int64_t>>& tile, Rng& rng) {
  const std::vector<int64_t> room = ExtentsForThreads(product, extents, thread_rows);
  const int64_t least = scope == MatrixUnitScope::kWarpgroup ? kWarpgroupWarps : 1;
  std::vector<int64_t> threads;
  for (int64_t warps = RandomWarps(scope, rng); threads.empty(); warps /= 2) {
    if (warps < least || warps % least != 0) return false;
    threads = ShareOut(kThreadRows * warps, room, rows, rng);
  }
  for (size_t i = 0; i < rows.size(); ++i) tile[rows[i]][1] = threads[i];
  tile[rows[0]].back() = product.rows_of_thread;
  // Virtual threads of one axis or of two.
  const int64_t vrows = thread_rows / product.rows_of_thread;
  const size_t along = rows.size() > 1 && Chance(rng, 0.4) ? 1 : 0;
  tile[rows[along]][0] = vrows;
  if (along == 0 && rows.size() > 1 && vrows > 2 && Chance(rng, 0.5)) {
    tile[rows[0]][0] = vrows / 2;
    tile[rows[1]][0] = 2;
  }
  return true;
}

// Likewise, as units read them from shared memory. False: they can't be so, or this draw does not fit.
bool PutRowsInOrder(const MatrixProduct& product, std::span<const int64_t> extents,
                    const std::vector<size_t>& rows, int64_t thread_rows,
                    std::vector<std::vector<int64_t>>& tile, Rng& rng) {
  std::vector<int64_t> row_extents;
  for (size_t i = rows.size(); i-- > 0;) row_extents.push_back(extents[rows[i]]);
  const int64_t groups = RandomWarps(MatrixUnitScope::kWarpgroup, rng) / kWarpgroupWarps;
  const auto drawn = RandomRowsInOrder(row_extents, groups, thread_rows, rng);
  if (drawn.empty()) return false;
  std::vector<std::vector<int64_t>> with_rows = tile;
  for (size_t i = 0; i < drawn.size(); ++i)
    std::ranges::copy(drawn[i], with_rows[rows[rows.size() - 1 - i]].begin());
  if (!HasRowsInOrder(product, with_rows)) return false;
  tile = std::move(with_rows);
  return true;
}

// The tile of an axis with fewer rows (HasShortRows).
constexpr int64_t kShortRowThreads = kThreadRows * kWarpgroupWarps;
constexpr std::array<int64_t, 4> kShortRows = {2, kShortRowThreads, 1, 1};
// The same, of units of single warps.
constexpr std::array<int64_t, 4> kShortRowsOfWarp = {2, kThreadRows, 1, 1};

std::span<const int64_t> ShortRows(MatrixUnitScope scope) {
  return scope == MatrixUnitScope::kWarpgroup ? kShortRows : kShortRowsOfWarp;
}

}  // namespace

bool HasShortRows(const MatrixProduct& product, MatrixUnitScope scope,
                  std::span<const int64_t> extents) {
  const std::span<const MatrixAxis> axes = product.TiledAxes(extents.size());
  const auto row = std::ranges::find(axes, MatrixAxis::kRow);
  const bool may_be = scope == MatrixUnitScope::kWarpgroup || product.is_computed;
  return may_be && product.rows_of_thread == 1 && std::ranges::count(axes, MatrixAxis::kRow) == 1 &&
         2 * extents[static_cast<size_t>(row - axes.begin())] <= ProductOfCounts(ShortRows(scope));
}

std::vector<std::vector<int64_t>> RandomMatrixTile(const MatrixProduct& product,
                                                   MatrixUnitScope scope,
                                                   std::span<const int64_t> extents, Rng& rng) {
  std::vector<std::vector<int64_t>> tile(extents.size(), {1, 1, 1, 1});
  const std::span<const MatrixAxis> axes = product.TiledAxes(extents.size());
  std::vector<size_t> rows;  // the last one first
  for (size_t axis = axes.size(); axis-- > 0;) {
    if (axes[axis] == MatrixAxis::kRow) rows.push_back(axis);
  }
  // Rows of a thread: an even number.
  constexpr std::array<int64_t, 5> kRowTiles = {2, 2, 4, 4, 8};
  const bool has_short_rows = HasShortRows(product, scope, extents);
  const int64_t thread_rows = has_short_rows
                                  ? ShortRows(scope)[0]
                                  : std::max(product.rows_of_thread, PickFrom(rng, kRowTiles));
  const bool are_in_order = scope == MatrixUnitScope::kWarpgroup && rows.size() > 1 &&
                            Chance(rng, kInOrderProb) &&
                            PutRowsInOrder(product, extents, rows, thread_rows, tile, rng);
  if (has_short_rows) std::ranges::copy(ShortRows(scope), tile[rows[0]].begin());
  if (!has_short_rows && !are_in_order &&
      !ShareRowsOut(product, scope, extents, rows, thread_rows, tile, rng))
    return {};
  int64_t row_warps = 1;
  for (size_t axis : rows) {
    if (!has_short_rows && !IsNeeded(tile[axis], extents[axis])) return {};
    row_warps *= tile[axis][1];
  }
  row_warps /= kThreadRows;
  const int64_t warp_columns = RandomWarpColumns(scope, row_warps, rng);
  const size_t column = product.TiledColumn(extents.size());
  std::vector<int64_t>& columns = tile[column];
  columns = {1, kThreadColumns * warp_columns, 1, product.columns_of_thread};
  const int64_t most =
      CeilDiv(extents[column], kThreadColumns * warp_columns * product.columns_of_thread);
  const int64_t room =
      kMaxElements / (thread_rows * product.columns_of_thread * product.num_sums());
  std::vector<int64_t> choices;
  for (const int64_t n : ColumnTiles(scope)) {
    columns[0] = n;
    if (n <= most && n <= room && IsOfOneGroup(product, tile)) choices.push_back(n);
  }
  if (choices.empty()) return {};
  columns[0] = PickFrom(rng, choices);
  return tile;
}

std::vector<int64_t> RandomMatrixDepth(const MatrixProduct& product, MatrixUnitScope scope,
                                       int64_t extent, Rng& rng) {
  constexpr std::array<int64_t, 6> kOfWarp = {1, 2, 2, 4, 4, 8}, kOfWarpgroup = {1, 2, 4, 4, 4, 8};
  std::vector<int64_t> choices;
  for (const int64_t steps : scope == MatrixUnitScope::kWarpgroup ? kOfWarpgroup : kOfWarp) {
    const int64_t depth = steps * product.unit->depth();
    const bool fits = product.is_part ? extent % depth == 0 : depth <= extent;
    if (steps == 1 || fits) choices.push_back(depth);
  }
  return {1, PickFrom(rng, choices)};
}

// ---- checking

MatrixSplits MatrixSplitsOf(const State& state, int s) {
  constexpr size_t kSpatialLevels = 4, kReduceLevels = 2;
  const dag::Operator& op = *state.stage(s).op;
  MatrixSplits splits;
  for (const int number : SplitStepsOf(state, s)) {
    const auto& split = *schedule::As<schedule::SplitStep>(*state.steps()[number]);
    if (split.lengths.size() == kReduceLevels)
      splits.reductions.push_back({number, split.lengths, split.extent});
    if (split.lengths.size() != kSpatialLevels) continue;
    splits.steps.push_back(number);
    splits.lengths.push_back(split.lengths);
  }
  // Axes that are not cut number parts, and stand first.
  const auto axes = static_cast<int>(op.axes().size());
  for (int axis = std::max(0, axes - static_cast<int>(splits.steps.size())); axis < axes; ++axis)
    splits.extents.push_back(op.axes()[axis].extent);
  return splits;
}

namespace {

// Does a step of the sum go a multiple of the unit's depth along an axis? Where groups of threads
// share the longest one out, theirs is not split: a step is the rest of it.
bool IsDeep(const MatrixProduct& product, const dag::Operator& op, const MatrixSplits& splits) {
  const int64_t depth = product.unit->depth();
  const bool has_whole = splits.reductions.size() < op.reduce_axes().size();
  const auto axis = static_cast<size_t>(product.depth_axis) - product.axes.size();
  if (has_whole && op.reduce_axes()[static_cast<int>(axis)].extent % depth == 0) return true;
  return std::ranges::any_of(splits.reductions, [&](const MatrixSplits::Reduction& split) {
    const bool is_whole = split.extent % ProductOfCounts(split.lengths) == 0;
    return split.lengths.back() % depth == 0 && (is_whole || !product.is_part);
  });
}

}  // namespace

std::optional<MatrixProduct> TiledProductOf(const State& state, int s) {
  std::optional<MatrixProduct> product = MatrixProductOf(state, s);
  const MatrixSplits splits = MatrixSplitsOf(state, s);
  if (!product || splits.lengths.empty()) return product;
  const std::vector<int64_t>& columns = splits.lengths[product->TiledColumn(splits.lengths.size())];
  product = WithComputedFactor(state, s, *product, columns[2] * columns[3]);
  std::optional<MatrixProduct> exchanged = ExchangedForWarpgroups(*product);
  if (!exchanged || exchanged->TiledAxes(splits.lengths.size()).empty()) return product;
  const std::vector<int64_t>& t = splits.lengths[exchanged->TiledColumn(splits.lengths.size())];
  return t[2] * t[3] == exchanged->columns_of_thread ? exchanged : product;
}

namespace {

// Returns the elements of one sum that a thread has.
int64_t ElementsOfThread(std::span<const std::vector<int64_t>> lengths) {
  int64_t elements = 1;
  for (const std::vector<int64_t>& t : lengths) elements *= t[0] * t[2] * t[3];
  return elements;
}

// Returns the registers of the results of an instruction. Several sums are all in registers until
// the stage that reads them has them. So are those of a product whose first factor is computed: the
// registers of all its rows are filled before the products of a step, and two steps are under way.
int64_t RegistersOfResults(const MatrixProduct& product,
                           std::span<const std::vector<int64_t>> lengths) {
  constexpr int64_t kOfColumn = 4;
  if (product.IsFirstComputed()) {
    const int64_t columns = lengths[product.TiledColumn(lengths.size())][0] * 2;
    const int64_t sums = ElementsOfThread(lengths);
    return sums + kOfColumn * sums / columns;
  }
  if (product.others.empty()) return kOfColumn * lengths[product.TiledColumn(lengths.size())][0];
  return product.num_sums() * ElementsOfThread(lengths);
}

}  // namespace

int64_t LeastRegisters(const State& state, int root) {
  // ptxas asks for these beside results.
  constexpr int64_t kOthers = 32;
  int64_t results = 0;
  for (const int s : ProductsOfMatrixUnits(state)) {
    if (ir::MatrixUnitScopeOf(state.stage(s).hints) != MatrixUnitScope::kWarpgroup) continue;
    int stage = s;
    while (state.attach(stage).kind == schedule::Attach::kIter) stage = state.attach(stage).stage;
    const MatrixSplits splits = MatrixSplitsOf(state, s);
    const std::optional<MatrixProduct> product = TiledProductOf(state, s);
    if (stage == root && !splits.lengths.empty() && product)
      results += RegistersOfResults(*product, splits.lengths);
  }
  return results == 0 ? 0 : results + kOthers;
}

namespace {

std::string WhyNoColumns(const MatrixProduct& product, MatrixUnitScope scope,
                         std::span<const int64_t> t) {
  if (product.is_computed && !product.IsFirstComputed() &&
      std::ranges::find(kComputedColumns, t[2] * t[3]) == std::end(kComputedColumns))
    return "a thread has no 4, 8 or 16 neighbours of a computed factor";
  if (t[2] * t[3] != product.columns_of_thread) {
    return fmt::format("a thread has not {} neighbours along its column axis",
                       product.columns_of_thread);
  }
  if (scope == MatrixUnitScope::kWarpgroup && t[0] % 2 != 0)
    return "four warps have no multiple of 16 columns";
  return "";
}

}  // namespace

std::string WhyNoMatrixTile(const MatrixProduct& product, MatrixUnitScope scope,
                            std::span<const int64_t> extents,
                            std::span<const std::vector<int64_t>> lengths) {
  const std::span<const MatrixAxis> axes = product.TiledAxes(lengths.size());
  if (axes.empty()) return "its axes are not tiled in five levels";
  const bool is_warpgroup = scope == MatrixUnitScope::kWarpgroup;
  if (is_warpgroup && !IsForWarpgroups(product))
    return "four warps multiply 16-bit floats, or what has its neighbours along the sum, and "
           "columns that lie beside each other";
  if (is_warpgroup && product.is_computed &&
      std::ranges::find(kComputedRows, product.rows_of_thread) == std::end(kComputedRows))
    return "a thread has no 2, 4 or 8 neighbours of a computed factor, the first one of four warps";
  if (!IsOfOneGroup(product, lengths)) return "a block has results of several groups";
  const size_t column = product.TiledColumn(lengths.size());
  if (std::string why = WhyNoColumns(product, scope, lengths[column]); !why.empty()) return why;
  // Threads of the rows, the virtual ones of the innermost axis that has some, and what a thread has.
  int64_t row_threads = 1, vrows = 0, rows = product.rows_of_thread,
          columns = product.columns_of_thread * lengths[column][0];
  for (size_t axis = axes.size(); axis-- > 0;) {
    if (axis == column) continue;
    const std::vector<int64_t>& t = lengths[axis];
    const bool is_row = axes[axis] == MatrixAxis::kRow;
    (is_row ? rows : columns) *= t[0];
    if (t[2] * t[3] != (is_row ? product.rows_of_thread : 1))
      return "a thread has other neighbours along another axis";
    const bool is_short = is_row && HasShortRows(product, scope, extents);
    if (is_short && !std::ranges::equal(t, ShortRows(scope)))
      return is_warpgroup ? "it has other than 64 rows" : "it has other than 16 rows";
    if (!is_short && !IsNeeded(t, extents[axis])) return "rows are beyond their axis";
    if (!is_row) {
      if (t[1] != 1) return "an axis that is no row has threads";
      if (axes[axis] == MatrixAxis::kBatch && t[0] != 1)
        return "a block has several matrices of a batch";
      if (is_warpgroup && t[0] != 1) return "four warps have columns of another axis";
      continue;
    }
    row_threads *= t[1];
    if (vrows == 0 && t[0] > 1) vrows = t[0];
  }
  if (std::max<int64_t>(vrows, 1) * product.rows_of_thread % 2 != 0)
    return "a thread has no even number of rows";
  // Units of one warp have the tiles of both factors in registers, too.
  if (const int64_t elements = product.num_sums() * rows * columns;
      !is_warpgroup && !product.others.empty() && elements > kMaxElements) {
    return fmt::format("a thread has {} elements of {} sums, at most {} can be", elements,
                       product.num_sums(), kMaxElements);
  }
  std::string why = instructions::WhyNoThreads(scope, row_threads, lengths[column][1]);
  return why.empty() ? instructions::WhyNoElements(scope, rows, columns) : why;
}

namespace {

// Are columns and depth of the stage that product s reads its second factor from its last dimensions, but
// for some of one element?
bool HasColumnsBeforeDepth(const State& state, int s, const MatrixProduct& product) {
  const schedule::Stage& read = state.stage(state.dag()->node(s).inputs[product.second->id].op);
  std::vector<int> order(read.layout.begin(), read.layout.end());
  if (order.empty()) {
    for (size_t d = 0; d < product.second->num_args; ++d) order.push_back(static_cast<int>(d));
  }
  std::vector<int> wanted = ColumnsBeforeDepth(product);
  const auto is_single = [&](int d) {
    return static_cast<size_t>(d) < read.iters.size() &&
           read.iters[static_cast<size_t>(d)].extent <= 1;
  };
  std::erase_if(order, is_single);
  std::erase_if(wanted, is_single);
  const auto count = static_cast<std::ptrdiff_t>(std::min<size_t>(2, wanted.size()));
  return order.size() == wanted.size() &&
         std::equal(order.end() - count, order.end(), wanted.end() - count);
}

// Has the tile that product s reads of its second factor no more columns than it computes?
bool FetchesTheColumnsAlone(const State& state, int s, const MatrixProduct& product,
                            const MatrixSplits& splits) {
  const std::optional<int> d = ColumnDimension(product);
  const schedule::Stage& read = state.stage(state.dag()->node(s).inputs[product.second->id].op);
  return d && static_cast<size_t>(*d) < read.iters.size() &&
         read.iters[static_cast<size_t>(*d)].extent ==
             ProductOfCounts(splits.lengths[product.TiledColumn(splits.lengths.size())]);
}

// Why units of four warps can't read the tile of the second factor; "": they can.
std::string_view WhyNoSecondFactor(const State& state, int s, const MatrixProduct& product,
                                   const MatrixSplits& splits) {
  if (IsReadAlongDepth(product) && !HasColumnsBeforeDepth(state, s, product)) {
    return "the tile of its second factor has not columns one behind the other and neighbours "
           "along the sum, as four warps read it";
  }
  if (HasMovingColumns(product) && !FetchesTheColumnsAlone(state, s, product, splits))
    return "a window moves the columns of its second factor within a tile of four warps";
  return "";
}

Status CheckTileOf(const State& state, int s) {
  const schedule::Stage& stage = state.stage(s);
  const auto refuse = [&](std::string_view why) {
    return FailedPrecondition("stage {} ({}): matrix units can't compute it: {}", s,
                              stage.op->name(), why);
  };
  const std::optional<MatrixProduct> product = TiledProductOf(state, s);
  if (!product) return refuse("it is no sum of products that a unit multiplies");
  const MatrixSplits splits = MatrixSplitsOf(state, s);
  const std::string why =
      WhyNoMatrixTile(*product, ir::MatrixUnitScopeOf(stage.hints), splits.extents, splits.lengths);
  if (!why.empty()) return refuse(why);
  for (const MatrixProduct& sum : product->Sums()) {
    const std::string_view fault = ir::MatrixUnitScopeOf(stage.hints) == MatrixUnitScope::kWarpgroup
                                       ? WhyNoSecondFactor(state, s, sum, splits)
                                       : std::string_view();
    if (!fault.empty()) return refuse(fault);
  }
  if (IsDeep(*product, *stage.op, splits)) return OkStatus();
  return refuse(fmt::format("no reduction has an innermost length that is a multiple of {}",
                            product->unit->depth()));
}

}  // namespace

Status CheckMatrixTiles(const State& state) {
  for (const int s : ProductsOfMatrixUnits(state)) KILN_RETURN_IF_ERROR(CheckTileOf(state, s));
  return OkStatus();
}

}  // namespace kiln::search
