#include "search/evolution/matrix_moves.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/numbers/integers.h"

namespace kiln::search {
namespace {

// Levels of a spatial axis.
constexpr size_t kVThreads = 0, kThreads = 1;
constexpr int64_t kMaxDepth = 256;

class Mover {
 public:
  Mover(MatrixTiles& tiles, Rng& rng) : tiles_(tiles), rng_(rng) {
    const auto axes = tiles_.product.TiledAxes(tiles_.splits.lengths.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] == MatrixAxis::kRow) rows_.push_back(axis);
    }
  }

  // Changes the columns of a thread: by one or two, or to twice as many or half of them.
  bool MoveColumns() {
    int64_t& columns = Columns()[kVThreads];
    if (Chance(rng_, 0.5)) return Set(columns, Chance(rng_, 0.5) ? columns * 2 : columns / 2);
    const int64_t step = Chance(rng_, 0.5) ? 1 : 2;  // some units have pairs of columns
    return Set(columns, Chance(rng_, 0.5) ? columns + step : columns - step);
  }
  bool MoveRows() { return Scale(tiles_.splits.lengths[PickRow()][kVThreads]); }
  // Changes the warps along the rows, or those beside each other along the columns.
  bool MoveWarps() {
    if (tiles_.scope == ir::MatrixUnitScope::kWarpgroup && Chance(rng_, 0.25)) return MoveGroups();
    if (Chance(rng_, 0.25)) return Scale(Columns()[kThreads]);
    return Scale(tiles_.splits.lengths[PickRow()][kThreads]);
  }

  // Changes two or four groups of four warps to three groups, or three groups to two or four.
  bool MoveGroups() {
    int64_t& threads = tiles_.splits.lengths[PickRow()][kThreads];
    if (threads % 3 == 0) return Set(threads, threads / 3 * (Chance(rng_, 0.5) ? 2 : 4));
    if (threads % 2 != 0) return false;
    return Set(threads, threads % 4 == 0 && Chance(rng_, 0.5) ? threads / 4 * 3 : threads / 2 * 3);
  }

  // Moves a factor of two from one place of a row axis or of the columns to another, so that the
  // block keeps its number of results: from the rows of a thread to its warps, to another axis, or
  // to columns.
  bool MoveFactor() {
    std::vector<int64_t*> places = {&Columns()[kVThreads], &Columns()[kThreads]};
    for (const size_t axis : rows_) {
      places.push_back(&tiles_.splits.lengths[axis][kVThreads]);
      places.push_back(&tiles_.splits.lengths[axis][kThreads]);
    }
    int64_t* from = PickFrom(rng_, places);
    int64_t* to = PickFrom(rng_, places);
    if (from == to || *from % 2 != 0) return false;
    *from /= 2;
    *to *= 2;
    return true;
  }

  bool MoveDepth() {
    if (!tiles_.depth) return false;
    MatrixSplits::Reduction& split = tiles_.splits.reductions[*tiles_.depth];
    int64_t& depth = split.lengths.back();
    if (!Chance(rng_, 0.5))
      return depth % (2 * tiles_.product.unit->depth()) == 0 && Set(depth, depth / 2);
    if (tiles_.product.is_part && split.extent % (2 * depth) != 0) return false;
    return depth < split.extent && depth < kMaxDepth && Set(depth, depth * 2);
  }

  bool Fits() const {
    for (size_t axis = 0; axis < tiles_.splits.lengths.size(); ++axis) {
      if (!IsPossible(axis)) return false;
    }
    return WhyNoMatrixTile(tiles_.product, tiles_.scope, tiles_.splits.extents,
                           tiles_.splits.lengths)
        .empty();
  }

 private:
  // Tells whether the axis has no more threads or virtual threads than its elements need.
  bool IsPossible(size_t axis) const {
    const std::vector<int64_t>& t = tiles_.splits.lengths[axis];
    const int64_t extent = tiles_.splits.extents[axis];
    const auto axes = tiles_.product.TiledAxes(tiles_.splits.lengths.size());
    if (axes[axis] == MatrixAxis::kRow &&
        HasShortRows(tiles_.product, tiles_.scope, tiles_.splits.extents))
      return true;  // WhyNoMatrixTile says which tile it is
    return t[kVThreads] >= 1 && t[kThreads] >= 1 &&
           t[kThreads] <= static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent))) &&
           (t[kVThreads] - 1) * ProductOfCounts(std::span(t).subspan(1)) < extent;
  }

  std::vector<int64_t>& Columns() {
    return tiles_.splits.lengths[tiles_.product.TiledColumn(tiles_.splits.lengths.size())];
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

std::vector<MatrixTiles> MatrixTilesOf(const schedule::State& state) {
  std::vector<MatrixTiles> all;
  for (const int s : ProductsOfMatrixUnits(state)) {
    std::optional<MatrixProduct> product = TiledProductOf(state, s);
    if (!product) continue;
    MatrixTiles tiles{.product = *std::move(product),
                      .scope = ir::MatrixUnitScopeOf(state.stage(s).hints),
                      .splits = MatrixSplitsOf(state, s)};
    if (tiles.product.TiledAxes(tiles.splits.lengths.size()).empty()) continue;
    const std::vector<MatrixSplits::Reduction>& reductions = tiles.splits.reductions;
    for (size_t i = 0; i < reductions.size() && !tiles.depth; ++i) {
      if (reductions[i].lengths.back() % tiles.product.unit->depth() == 0) tiles.depth = i;
    }
    all.push_back(std::move(tiles));
  }
  return all;
}

bool MoveMatrixTiles(MatrixTiles& tiles, Rng& rng) {
  using Move = bool (Mover::*)();
  constexpr std::array<std::pair<Move, double>, 5> kMoves = {{{&Mover::MoveColumns, 0.25},
                                                              {&Mover::MoveRows, 0.15},
                                                              {&Mover::MoveWarps, 0.15},
                                                              {&Mover::MoveFactor, 0.25},
                                                              {&Mover::MoveDepth, 0.2}}};
  constexpr double kSecond = 0.25;  // the probability of another move
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
    if (moved.splits == tiles.splits) continue;
    tiles = std::move(moved);
    return true;
  }
  return false;
}

}  // namespace kiln::search
