#include "search/evolution/matrix_moves.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/integers.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;

// Levels of a spatial axis.
constexpr size_t kVThreads = 0, kThreads = 1;
constexpr int64_t kMostVThreads = 64, kMostThreads = 256;
constexpr int64_t kMostDepth = 256;
// Of a warp, and of units of four of them.
constexpr int64_t kRowThreads = 8, kColumnThreads = 4, kWarpgroupWarps = 4;

class Mover {
 public:
  Mover(MatrixTiles& tiles, Rng& rng) : tiles_(tiles), rng_(rng) {
    for (size_t axis = 0; axis < tiles_.extents.size(); ++axis) {
      if (tiles_.product.axes[axis] == MatrixAxis::kRow) rows_.push_back(axis);
    }
  }

  // Columns of a thread: by one, or to twice as many or half of them.
  bool MoveColumns() {
    int64_t& columns = tiles_.lengths.back()[kVThreads];
    if (Chance(rng_, 0.5)) return Set(columns, Chance(rng_, 0.5) ? columns * 2 : columns / 2);
    const int64_t step = Chance(rng_, 0.5) ? 1 : 2;  // some units have pairs of columns
    return Set(columns, Chance(rng_, 0.5) ? columns + step : columns - step);
  }
  bool MoveRows() { return Scale(tiles_.lengths[PickRow()][kVThreads]); }
  // Of the rows, or those beside each other along the columns.
  bool MoveWarps() {
    const size_t axis = Chance(rng_, 0.25) ? tiles_.lengths.size() - 1 : PickRow();
    return Scale(tiles_.lengths[axis][kThreads]);
  }

  // A factor of two goes from one place of a row axis or of the last axis to another, so that the
  // block has as many results: from rows of a thread to its warps, to another axis, to columns.
  bool MoveFactor() {
    std::vector<int64_t*> places = {&tiles_.lengths.back()[kVThreads],
                                    &tiles_.lengths.back()[kThreads]};
    for (const size_t axis : rows_) {
      places.push_back(&tiles_.lengths[axis][kVThreads]);
      places.push_back(&tiles_.lengths[axis][kThreads]);
    }
    int64_t* from = PickFrom(rng_, places);
    int64_t* to = PickFrom(rng_, places);
    if (from == to || *from % 2 != 0) return false;
    *from /= 2;
    *to *= 2;
    return true;
  }

  bool MoveDepth() {
    if (tiles_.depth_step < 0) return false;
    int64_t& depth = tiles_.depth_lengths.back();
    if (!Chance(rng_, 0.5))
      return depth % (2 * tiles_.product.unit->depth()) == 0 && Set(depth, depth / 2);
    if (tiles_.product.is_part && tiles_.depth_extent % (2 * depth) != 0) return false;
    return depth < tiles_.depth_extent && depth < kMostDepth && Set(depth, depth * 2);
  }

  bool Fits() const {
    int64_t threads = 1, even = 0;
    for (size_t axis = tiles_.extents.size(); axis-- > 0;) {
      if (!IsPossible(axis)) return false;
      if (tiles_.product.axes[axis] != MatrixAxis::kRow) continue;
      const std::vector<int64_t>& t = tiles_.lengths[axis];
      threads *= t[kThreads];
      if (even == 0 && t[kVThreads] > 1) even = t[kVThreads];
    }
    const std::vector<int64_t>& columns = tiles_.lengths.back();
    if (std::max<int64_t>(even, 1) * tiles_.product.rows_of_thread % 2 != 0) return false;
    if (tiles_.unit != MatrixUnit::kWarpgroup)
      return threads % kRowThreads == 0 && columns[kThreads] % kColumnThreads == 0;
    return threads % (kWarpgroupWarps * kRowThreads) == 0 && columns[kThreads] == kColumnThreads &&
           columns[kVThreads] % 2 == 0;
  }

 private:
  // No axis has more threads or virtual threads than its elements need.
  bool IsPossible(size_t axis) const {
    const std::vector<int64_t>& t = tiles_.lengths[axis];
    const int64_t extent = tiles_.extents[axis];
    const auto most_threads = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
    return t[kVThreads] >= 1 && t[kVThreads] <= kMostVThreads && t[kThreads] >= 1 &&
           t[kThreads] <= std::min(kMostThreads, most_threads) &&
           (t[kVThreads] - 1) * ProductOfCounts(std::span(t).subspan(1)) < extent;
  }

  size_t PickRow() { return PickFrom(rng_, rows_); }

  static bool Set(int64_t& length, int64_t value) {
    length = value;
    return value >= 1;
  }
  bool Scale(int64_t& length) {
    if (Chance(rng_, 0.5)) return Set(length, length * 2);
    return length % 2 == 0 && Set(length, length / 2);
  }

  MatrixTiles& tiles_;
  Rng& rng_;
  std::vector<size_t> rows_;
};

}  // namespace

std::optional<MatrixTiles> MatrixTilesOf(const schedule::State& state) {
  const std::optional<int> s = MatrixStageOf(state);
  if (!s) return std::nullopt;
  const dag::Operator& op = *state.stage(*s).op;
  const std::optional<MatrixProduct> whole = MatrixProductOf(op);
  if (!whole) return std::nullopt;
  const MatrixSplits splits = MatrixSplitsOf(state, *s);
  const std::optional<MatrixProduct> product = whole->WithoutParts(splits.tiles.size());
  if (!product) return std::nullopt;
  MatrixTiles tiles;
  tiles.product = *product;
  tiles.unit = static_cast<MatrixUnit>(state.stage(*s).hints[ir::Hint::kMatrixUnit]);
  const size_t parts = whole->axes.size() - splits.tiles.size();
  for (size_t axis = 0; axis < splits.tiles.size(); ++axis) {
    tiles.extents.push_back(op.axes()[static_cast<int>(parts + axis)].extent);
    tiles.steps.push_back(splits.tiles[axis].step);
    tiles.lengths.push_back(splits.tiles[axis].lengths);
  }
  const int64_t depth = product->unit->depth();
  const auto deep = std::ranges::find_if(splits.reductions, [&](const MatrixSplits::Split& split) {
    return split.lengths.back() % depth == 0;
  });
  if (deep != splits.reductions.end()) {
    tiles.depth_step = deep->step;
    tiles.depth_lengths = deep->lengths;
    tiles.depth_extent = deep->extent;
  }
  return tiles;
}

bool MoveMatrixTiles(MatrixTiles& tiles, Rng& rng) {
  using Move = bool (Mover::*)();
  constexpr std::array<std::pair<Move, double>, 5> kMoves = {{{&Mover::MoveColumns, 0.25},
                                                              {&Mover::MoveRows, 0.15},
                                                              {&Mover::MoveWarps, 0.15},
                                                              {&Mover::MoveFactor, 0.25},
                                                              {&Mover::MoveDepth, 0.2}}};
  constexpr double kSecond = 0.25;  // how likely another move follows
  constexpr int kTries = 16;
  std::vector<double> weights;
  for (const auto& move : kMoves) weights.push_back(move.second);
  for (int i = 0; i < kTries; ++i) {
    MatrixTiles moved = tiles;
    Mover mover(moved, rng);
    bool is_possible = true;
    do {
      const Move move = kMoves[static_cast<size_t>(PickWeighted(rng, weights))].first;
      is_possible = is_possible && (mover.*move)();
    } while (Chance(rng, kSecond));
    if (!is_possible || !mover.Fits()) continue;
    if (moved.lengths == tiles.lengths && moved.depth_lengths == tiles.depth_lengths) continue;
    tiles = std::move(moved);
    return true;
  }
  return false;
}

}  // namespace kiln::search
