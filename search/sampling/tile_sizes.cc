#include "search/sampling/tile_sizes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/numbers/integers.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/factorization.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_rows.h"
#include "search/space/matrix_tile.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/thread_shapes.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

// Probability that a fetch holds one element of the window, if units of four warps could read the
// rows of an image from shared memory themselves.
constexpr double kWindowOutsideProb = 0.8;
// Probability that products are exchanged that may be (matrix_product.h).
constexpr double kExchangedProb = 0.8;
// Probability that a product gets the tile of another one of the same form.
constexpr double kAlikeProb = 0.75;
// Products of so many rows that unpack a factor in registers are faster by single warps. Searches
// of 16 rows with weights of 4 bits, 4096 x 4096, end at 7.6 us by them, and at 9.0 us by four
// warps together.
constexpr int64_t kRowsOfSingleWarps = 32;
// A fetch of packed elements is so much longer. Tiles of 512 terms take 6.5 us with weights of 4
// bits and 16 rows, and tiles of 1,024 terms 7.4 us.
constexpr int64_t kUnpackedFetches = 4;

// Draws uniform ordered factorizations, from lists, or from counts if the lists are long. Both are
// made once per extent.
class Factorizer {
 public:
  void Draw(int64_t extent, int n, int64_t max_innermost, Rng& rng, std::vector<int64_t>& lengths) {
    const std::tuple key(extent, n, max_innermost);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (known_.size() >= kMaxKnown) known_.clear();
      found = known_.emplace(key, Ways{.counted = {extent, n, max_innermost}, .list = {}}).first;
      if (found->second.counted.count() <= kMaxListed)
        found->second.list = Factorizations(extent, n, max_innermost);
    }
    const Ways& ways = found->second;
    if (ways.list.empty()) {
      lengths = ways.counted.Draw(rng);
    } else {
      lengths = PickFrom(rng, ways.list);
    }
  }

 private:
  static constexpr int64_t kMaxListed = 5000;
  static constexpr size_t kMaxKnown = 200;
  struct Ways {
    RandomFactorizations counted;
    std::vector<std::vector<int64_t>> list;  // empty: there are too many
  };
  std::map<std::tuple<int64_t, int, int64_t>, Ways> known_;
};

Factorizer& FactorizerOfThread() {
  thread_local Factorizer factorizer;
  return factorizer;
}

bool HasBlank(const SplitStep& split) {
  return std::find(split.lengths.begin(), split.lengths.end(), 0) != split.lengths.end();
}

class TileFiller {
 public:
  TileFiller(const Sketch& sketch, const Task& task, const Parameters& parameters, Rng& rng)
      : steps_(sketch.steps),
        state_(sketch.state.initial_dag()),
        target_(task.target),
        hardware_(task.hardware),
        device_(task.device),
        parameters_(parameters),
        rng_(rng),
        has_warpgroup_units_(HasWarpgroupUnits(task.target)),
        wants_matrix_(HasMatrixUnits(task.target) && Chance(rng, parameters.matrix_unit_prob)),
        cluster_split_(ClusterSplitOf(sketch.state)),
        spatial_lengths_(static_cast<size_t>(
            std::count(parameters.gpu_tiling.begin(), parameters.gpu_tiling.end(), 'S') - 1)) {}

  StatusOr<State> Run() {
    for (size_t i = 0; i < steps_.size();) {
      const SplitStep* split = schedule::As<SplitStep>(*steps_[i]);
      if (split == nullptr || !HasBlank(*split)) {
        KILN_RETURN_IF_ERROR(state_.Apply(steps_[i++]));
      } else if (SharesRowsOut(steps_, i)) {
        KILN_RETURN_IF_ERROR(FillRowParts(*split));
        ++i;
      } else if (i + 1 < steps_.size() && schedule::Is<schedule::RfactorStep>(*steps_[i + 1])) {
        KILN_RETURN_IF_ERROR(FillParts(*split, static_cast<int>(i) == cluster_split_));
        ++i;
      } else if (IsCopyTile(steps_, i)) {
        KILN_RETURN_IF_ERROR(FillCopyTile(i));
      } else if (split->lengths.size() == spatial_lengths_) {
        KILN_RETURN_IF_ERROR(FillTiles(i));
      } else if (IsMatrixDepth(*split)) {
        KILN_RETURN_IF_ERROR(FillMatrixDepth(*split));
        ++i;
      } else if (IsOfWindow(*split)) {
        KILN_RETURN_IF_ERROR(Apply(*split, {1, 1}));
        ++i;
      } else {
        KILN_RETURN_IF_ERROR(
            Fill(*split, Draw(ExtentsFor(i, ExtentOf(*split)), split->lengths.size())));
        ++i;
      }
    }
    for (const MatrixStage& matrix : matrices_) {
      KILN_RETURN_IF_ERROR(state_.Apply(schedule::HintStep(NumberOf(matrix), ir::Hint::kMatrixUnit,
                                                           static_cast<int32_t>(matrix.scope))));
    }
    return std::move(state_);
  }

 private:
  // A product that matrix units compute.
  struct MatrixStage {
    MatrixProduct product = {};
    ir::MatrixUnitScope scope = ir::MatrixUnitScope::kWarp;
    bool window_is_outside = false;  // a fetch has one element of the window
    int stage = -1;                  // its number when it was tiled
    dag::OperatorPtr op = {};
    std::vector<int64_t> extents = {};
    std::vector<std::vector<int64_t>> tile = {};
    std::vector<int64_t> depth = {};  // the lengths of the split of the depth
  };

  // Returns the current number of the matrix stage, which grows when stages before it become
  // several.
  int NumberOf(const MatrixStage& matrix) const {
    int s = matrix.stage;
    while (state_.stage(s).op != matrix.op) ++s;
    return s;
  }

  // Returns the product whose reductions the split is of, if matrix units compute it. The spatial
  // axes were split before, in their order.
  const MatrixStage* MatrixOf(const SplitStep& split) const {
    if (!is_matrix_ || split.stage_id != matrices_.back().stage || split.lengths.size() != 2)
      return nullptr;
    return &matrices_.back();
  }

  // Tells whether the split is of the reduce axis along which the matrix units go.
  bool IsMatrixDepth(const SplitStep& split) const {
    const MatrixStage* const matrix = MatrixOf(split);
    if (matrix == nullptr) return false;
    const schedule::Stage& stage = state_.stage(split.stage_id);
    const int axis = stage.loops[static_cast<size_t>(split.loop)].iter;
    return axis == matrix->product.depth_axis;
  }

  Status FillMatrixDepth(const SplitStep& split) {
    MatrixStage& matrix = matrices_.back();
    const int64_t extent = ExtentOf(split);
    const MatrixStage* const other = alike_ ? &matrices_[*alike_] : nullptr;
    const bool fits = other != nullptr && !other->depth.empty() &&
                      other->product.is_part == matrix.product.is_part &&
                      (!matrix.product.is_part || extent % ProductOfCounts(other->depth) == 0);
    matrix.depth =
        fits ? other->depth : RandomMatrixDepth(matrix.product, matrix.scope, extent, rng_);
    return Apply(split, matrix.depth);
  }

  // Tells whether the split is of another reduce axis while the window moves in outer loops.
  bool IsOfWindow(const SplitStep& split) const {
    const MatrixStage* const matrix = MatrixOf(split);
    return matrix != nullptr && matrix->window_is_outside;
  }

  // Returns the current extent of the split loop. The sketch may have another extent, as it was
  // made before the length of an rfactor was known.
  int64_t ExtentOf(const SplitStep& split) const {
    const int64_t extent = state_.stage(split.stage_id).loop(split.loop).extent;
    return extent > 0 ? extent : split.extent;
  }

  // Returns the extents that the tiles of step i may cover along an axis.
  std::vector<int64_t> ExtentsFor(size_t i, int64_t extent) const {
    if (!MayBeUneven(steps_, i, /*gpu=*/true, parameters_)) return {extent};
    return TileExtents(extent);
  }

  std::vector<int64_t> Draw(const std::vector<int64_t>& extents, size_t n) {
    std::vector<int64_t> lengths;
    Draw(extents, n, lengths);
    return lengths;
  }

  // Draws into an existing vector, which may have room already, because tiles are drawn repeatedly.
  void Draw(const std::vector<int64_t>& extents, size_t n, std::vector<int64_t>& lengths) {
    const int64_t extent = PickTileExtent(extents, parameters_, rng_);
    FactorizerOfThread().Draw(extent, static_cast<int>(n), parameters_.max_innermost_split_factor,
                              rng_, lengths);
  }

  Status Fill(const SplitStep& split, std::vector<int64_t> lengths) {
    // Lengths that divide nothing are cut.
    if (split.inner_to_outer) {
      CutLengths(lengths, ExtentOf(split), KeptLengths(split, /*gpu=*/true, parameters_));
    }
    return Apply(split, std::move(lengths));
  }

  Status Apply(const SplitStep& split, std::vector<int64_t> lengths) {
    return state_.Apply(std::make_shared<SplitStep>(split.stage_id, split.loop, ExtentOf(split),
                                                    std::move(lengths), split.inner_to_outer));
  }

  // Returns the number of the step that shares a reduction out over the blocks of a cluster.
  static std::optional<int> ClusterSplitOf(const State& state) {
    for (int s = 0; s < state.num_stages(); ++s) {
      if (state.attach(s).kind != schedule::Attach::kRoot) continue;
      if (const auto parts = ClusterStageIn(state, s)) return PartsSplitOf(state, *parts);
    }
    return std::nullopt;
  }

  // Fills [parts], or [outer loop, groups].
  Status FillParts(const SplitStep& split, bool is_cluster) {
    int64_t extent = ExtentOf(split);
    std::vector<std::vector<int64_t>> choices;
    std::vector<double> weights;
    const int64_t depth = DepthOfParts(split, extent);
    const bool is_unpacked = IsUnpacked(split);
    const int64_t most = split.lengths.size() == 1 && !is_cluster ? MostBlocks(split) : kMostParts;
    // If a reduction of columns has no equal parts, the last part ends early.
    const std::vector<int64_t> divisors = Divisors(extent);
    const auto least = std::ranges::find_if(divisors, [](int64_t d) { return d > 1; });
    if (least == divisors.end() || *least > kMostParts) extent = TileExtents(extent).back();
    for (int64_t parts : Divisors(extent)) {
      if (parts < 2 || parts > most) continue;
      if (is_cluster && !IsClusterSize(parts, device_.max_cluster_blocks)) continue;
      if (split.lengths.size() == 1) {
        if (extent / parts % depth != 0) continue;
        choices.push_back({parts});
        weights.push_back(1);
        continue;
      }
      // Every number of groups has the same probability.
      const size_t first = weights.size();
      for (int64_t inner : Divisors(extent / parts)) {
        if (inner > parameters_.max_innermost_split_factor) break;
        if (inner % depth != 0) continue;
        choices.push_back({extent / parts / inner, parts});
        weights.push_back(WeightOfFetch(parts * inner, is_unpacked));
      }
      double total = 0;
      for (size_t i = first; i < weights.size(); ++i) total += weights[i];
      for (size_t i = first; i < weights.size(); ++i) weights[i] /= total;
    }
    if (choices.empty()) {
      return FailedPrecondition("stage {}: a reduction of {} has no 2 to {} equal parts",
                                split.stage_id, extent, kMostParts);
    }
    const std::vector<int64_t>& lengths = choices[PickWeighted(rng_, weights)];
    (split.lengths.size() == 1 ? parts_ : groups_) = lengths.back();
    return Fill(split, lengths);
  }

  // Returns the most blocks that share a reduction out. Columns whose tiles of a warp are too few
  // for two blocks of each multiprocessor have more than kMostParts.
  int64_t MostBlocks(const SplitStep& split) const {
    if (StageView(state_, split.stage_id).NeedsMultiLevelTiling()) return kMostParts;
    const int64_t tiles =
        CeilDiv(state_.stage(split.stage_id).op->num_elements(), hardware_.warp_size);
    return std::clamp<int64_t>(2 * device_.multiprocessors / std::max<int64_t>(1, tiles),
                               kMostParts, kMostColumnParts);
  }

  // Returns the number that the length of a part of a sum must be a multiple of, so that matrix
  // units can compute it. 1 stands for no restriction.
  int64_t DepthOfParts(const SplitStep& split, int64_t extent) const {
    if (!wants_matrix_) return 1;
    const std::optional<MatrixProduct> product = MatrixProductOf(state_, split.stage_id);
    if (!product || !HasMatrixUnit(target_, *product->unit)) return 1;
    const int64_t depth = product->unit->depth();
    return extent % (2 * depth) == 0 ? depth : 1;
  }

  // Tells whether the split is of a product by matrix units that unpacks its second factor.
  bool IsUnpacked(const SplitStep& split) const {
    if (!wants_matrix_) return false;
    const std::optional<MatrixProduct> product = MatrixProductOf(state_, split.stage_id);
    return product &&
           WithComputedFactor(state_, split.stage_id, *product, kComputedColumns[0]).is_computed;
  }

  // Returns the weight of the number of elements that all groups of a block fetch at once along the
  // reduction axis. Elements of a factor that is unpacked in registers have few bytes.
  double WeightOfFetch(int64_t fetched, bool is_unpacked) const {
    const int64_t most = parameters_.long_fetch * (is_unpacked ? kUnpackedFetches : 1);
    const bool odd = fetched < parameters_.short_fetch || fetched > most;
    return odd ? parameters_.odd_fetch_weight : 1;
  }

  // Draws parts that fill the device, and whose terms are worth a block.
  Status FillRowParts(const SplitStep& split) {
    const int64_t extent = ExtentOf(split), rows = state_.stage(split.stage_id).op->num_elements();
    std::vector<int64_t> choices;
    for (int64_t parts = 2; parts <= kMostRowParts; parts *= 2) {
      const bool busy = parts * rows <= int64_t{parameters_.most_parts_per_multiprocessor} *
                                            device_.multiprocessors;
      if (choices.empty() || (busy && extent / parts >= parameters_.least_part_terms))
        choices.push_back(parts);
    }
    // Few parts leave most of the device idle, so they are drawn less often.
    std::vector<double> weights;
    for (const int64_t parts : choices) {
      const bool idle = parts * rows * 2 < device_.multiprocessors && parts != choices.back();
      weights.push_back(idle ? parameters_.idle_parts_weight : 1);
    }
    return Fill(split, {choices[PickWeighted(rng_, weights)]});
  }

  // Fills the tile lengths of a copy through shared memory, from step i on. Then i is the step
  // after them.
  Status FillCopyTile(size_t& i) {
    const int root = schedule::As<SplitStep>(*steps_[i])->stage_id;
    const dag::Operator& op = *state_.stage(root).op;
    std::vector<int64_t> extents;
    for (const dag::Axis& axis : op.axes()) extents.push_back(axis.extent);
    for (const int64_t length : RandomCopyTile(extents, SourceOrderOf(root), rng_)) {
      KILN_RETURN_IF_ERROR(Fill(*schedule::As<SplitStep>(*steps_[i]), {length}));
      ++i;
    }
    return OkStatus();
  }

  // Returns the order in which the stage, or a stage inlined into it, reads the latest copy into
  // shared memory.
  std::vector<std::optional<int>> SourceOrderOf(int root) const {
    for (int s = root - 1; s >= 0; --s) {
      if (!state_.stage(s).asks_for_shared()) continue;
      const int reader = state_.dag()->consumers(s).front();
      const dag::Operator& op = *state_.stage(reader).op;
      for (const dag::Access& access : op.properties().reads) {
        if (state_.dag()->node(reader).inputs[access.slot].op == s)
          return SourceOrder(op, access.load);
      }
    }
    return {};
  }

  // Fills the spatial splits of one stage, from step i on. Then i is the step after them.
  Status FillTiles(size_t& i) {
    std::vector<const SplitStep*> splits;
    std::vector<int64_t> extents;
    std::vector<std::vector<int64_t>> covers;
    // The steps split one loop after the other, so the second loop is not yet at its final number.
    const SplitStep& first = *schedule::As<SplitStep>(*steps_[i]);
    const schedule::Stage& stage = state_.stage(first.stage_id);
    for (size_t k = i; k < steps_.size(); ++k) {
      const SplitStep* split = schedule::As<SplitStep>(*steps_[k]);
      if (split == nullptr || !HasBlank(*split) || split->stage_id != first.stage_id ||
          split->lengths.size() != spatial_lengths_)
        break;
      const int loop = split->loop - static_cast<int>((k - i) * spatial_lengths_);
      const int64_t extent = stage.loop(loop).extent;
      splits.push_back(split);
      extents.push_back(extent > 0 ? extent : split->extent);
      covers.push_back(ExtentsFor(k, extents.back()));
    }
    i += splits.size();
    KILN_ASSIGN_OR_RETURN(const bool is_matrix, FillMatrixTiles(splits, extents));
    if (!is_matrix) {
      KILN_ASSIGN_OR_RETURN(const auto lengths, DrawTiles(extents, covers));
      for (size_t k = 0; k < splits.size(); ++k) KILN_RETURN_IF_ERROR(Fill(*splits[k], lengths[k]));
    }
    groups_ = parts_ = 1;
    return OkStatus();
  }

  // Fills the splits with tiles for matrix units, at random, if the stage is such a product.
  // Returns false if it is not, or if the draw decides against it.
  StatusOr<bool> FillMatrixTiles(const std::vector<const SplitStep*>& splits,
                                 const std::vector<int64_t>& extents) {
    const int s = splits[0]->stage_id;
    is_matrix_ = false;
    if (!wants_matrix_ || spatial_lengths_ != 4) return false;
    std::optional<MatrixProduct> product = MatrixProductOf(state_, s);
    if (product) product = WithComputedFactor(state_, s, *product, kComputedColumns[0]);
    if (product && product->is_computed)
      product->columns_of_thread = PickFrom(rng_, std::span(kComputedColumns));
    if (!product || !HasMatrixUnit(target_, *product->unit) ||
        product->TiledAxes(extents.size()).empty())
      return false;
    alike_ = DrawAlike(*product, extents);
    MatrixStage matrix = alike_ ? matrices_[*alike_] : MatrixStage{};
    if (alike_) {
      matrix.product = *product;
    } else {
      KILN_RETURN_IF_ERROR(DrawMatrix(*product, extents, matrix));
    }
    matrix.stage = s;
    matrix.op = state_.stage(s).op;
    matrix.extents = extents;
    matrix.depth.clear();
    for (size_t k = 0; k < splits.size(); ++k)
      KILN_RETURN_IF_ERROR(Apply(*splits[k], matrix.tile[k]));
    matrices_.push_back(std::move(matrix));
    is_matrix_ = true;
    return true;
  }

  // Returns the number of a product of the same form whose tile this one gets as well. The best
  // tiles of both are alike, and two draws seldom are.
  std::optional<size_t> DrawAlike(const MatrixProduct& product,
                                  const std::vector<int64_t>& extents) {
    for (size_t i = matrices_.size(); i-- > 0;) {
      const MatrixStage& other = matrices_[i];
      const int64_t threads = UseOfTiles(extents, other.tile).threads * groups_;
      if (AreAlike(product, other.product) && extents == other.extents &&
          threads <= hardware_.max_threads_per_block)
        return Chance(rng_, kAlikeProb) ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }

  // Draws the tile of the product, and the units that compute it.
  Status DrawMatrix(const MatrixProduct& product, const std::vector<int64_t>& extents,
                    MatrixStage& matrix) {
    matrix.product = product;
    const bool is_for_single =
        product.is_computed && RowsOf(product, extents) <= kRowsOfSingleWarps;
    if (has_warpgroup_units_ && !is_for_single && IsForWarpgroups(product) &&
        Chance(rng_, WarpgroupShare(ProductOfCounts(extents)))) {
      MatrixProduct of_rows = product;
      if (product.is_computed) of_rows.columns_of_thread = PickFrom(rng_, std::span(kComputedRows));
      const std::optional<MatrixProduct> exchanged = ExchangedForWarpgroups(of_rows);
      if (exchanged && (product.is_computed || Chance(rng_, kExchangedProb)))
        matrix.product = *exchanged;
      matrix.tile = DrawMatrixTile(matrix.product, ir::MatrixUnitScope::kWarpgroup, extents);
      if (!matrix.tile.empty()) matrix.scope = ir::MatrixUnitScope::kWarpgroup;
      if (matrix.tile.empty()) matrix.product = product;
    }
    if (matrix.tile.empty())
      matrix.tile = DrawMatrixTile(product, ir::MatrixUnitScope::kWarp, extents);
    if (matrix.tile.empty()) return FailedPrecondition("no tile for matrix units was found");
    matrix.window_is_outside =
        matrix.scope == ir::MatrixUnitScope::kWarpgroup &&
        (HasMovingColumns(matrix.product) ||
         (HasRowsInOrder(matrix.product, matrix.tile) && Chance(rng_, kWindowOutsideProb)));
    return OkStatus();
  }

  // Draws tiles repeatedly, like other tiles, and returns the first one that is accepted, or else
  // the last one. Empty if there is no tile.
  std::vector<std::vector<int64_t>> DrawMatrixTile(const MatrixProduct& product,
                                                   ir::MatrixUnitScope scope,
                                                   const std::vector<int64_t>& extents) {
    std::vector<std::vector<int64_t>> tile;
    for (int tries = 0; tries < parameters_.tile_draws; ++tries) {
      std::vector<std::vector<int64_t>> drawn = RandomMatrixTile(product, scope, extents, rng_);
      if (drawn.empty()) continue;
      tile = std::move(drawn);
      TileUse use = UseOfTiles(extents, tile);
      const int64_t threads = use.threads * groups_;
      if (threads > hardware_.max_threads_per_block) continue;
      // Matrix units have more results for each thread, and fewer threads, than the usual range
      // allows.
      use.outputs =
          std::clamp<int64_t>(use.outputs, parameters_.few_outputs, parameters_.many_outputs);
      use.threads = std::max<int64_t>(use.threads, parameters_.few_threads);
      if (Chance(rng_,
                 AcceptanceProbability(use, groups_, parts_, device_.multiprocessors, parameters_) *
                     UsedShare(extents, tile) * SpeedOf(product, scope, extents, tile)))
        return tile;
    }
    return tile;
  }

  static int64_t RowsOf(const MatrixProduct& product, const std::vector<int64_t>& extents) {
    const std::span<const MatrixAxis> axes = product.TiledAxes(extents.size());
    int64_t rows = 1;
    for (size_t k = 0; k < extents.size(); ++k)
      rows *= axes[k] == MatrixAxis::kRow ? extents[k] : 1;
    return rows;
  }

  // Tiles of single warps suit few results. Such tiles are rarer if the results more than fill the
  // device.
  double WarpgroupShare(int64_t results) const {
    constexpr double kEnoughOfEach = 8192, kMin = 0.2;
    const double enough = kEnoughOfEach * device_.multiprocessors,
                 of_single = std::clamp(enough / static_cast<double>(std::max<int64_t>(1, results)),
                                        kMin, 1.0);
    const double share = parameters_.warpgroup_prob;
    return enough <= 0 ? share : 1 - (1 - share) * of_single;
  }

  // Returns the expected speed of tiles, from 0 to 1. Units of four warps are as fast as shared
  // memory, which transfers 128 bytes in a cycle, reads and writes together. A tile of r x c is
  // written once, and for each 64 rows these rows and all columns are read: 2 r + c + r c / 64
  // elements for a step of the sum. A tile of 128 x 256 has just enough time for that, for any type
  // (docs/matrix-units.md). The better the blocks fill the device, the fewer multiprocessors wait.
  double SpeedOf(const MatrixProduct& product, ir::MatrixUnitScope scope,
                 const std::vector<int64_t>& extents,
                 const std::vector<std::vector<int64_t>>& tiles) const {
    constexpr double kRowsOfUnit = 64, kProductsOfElement = 32;
    if (scope != ir::MatrixUnitScope::kWarpgroup || device_.multiprocessors <= 0) return 1;
    const std::span<const MatrixAxis> axes = product.TiledAxes(extents.size());
    double rows = 1, columns = 1;
    int64_t blocks = parts_;
    for (size_t k = 0; k < extents.size(); ++k) {
      const int64_t covered = ProductOfCounts(tiles[k]);
      (axes[k] == MatrixAxis::kRow ? rows : columns) *= static_cast<double>(covered);
      blocks *= CeilDiv(extents[k], covered);
    }
    // The columns of all sums are read, and their products computed, for the same rows.
    columns *= static_cast<double>(product.num_sums());
    const int64_t waves = CeilDiv(blocks, device_.multiprocessors);
    const double elements = 2 * rows + columns + rows * columns / kRowsOfUnit;
    return static_cast<double>(blocks) / static_cast<double>(waves * device_.multiprocessors) *
           std::min(1.0, rows * columns / elements / kProductsOfElement);
  }

  // Returns the share of the covered elements that are results.
  static double UsedShare(const std::vector<int64_t>& extents,
                          const std::vector<std::vector<int64_t>>& tiles) {
    double share = 1;
    for (size_t k = 0; k < extents.size(); ++k)
      share *= static_cast<double>(extents[k]) /
               static_cast<double>(RoundUp(extents[k], ProductOfCounts(tiles[k])));
    return share;
  }

  StatusOr<std::vector<std::vector<int64_t>>> DrawTiles(
      const std::vector<int64_t>& extents, const std::vector<std::vector<int64_t>>& covers) {
    std::vector<std::vector<int64_t>> lengths(extents.size()), legal, most_threads;
    int64_t most = 0;
    for (int tries = 0; tries < parameters_.tile_draws; ++tries) {
      for (size_t k = 0; k < extents.size(); ++k) Draw(covers[k], spatial_lengths_, lengths[k]);
      if (spatial_lengths_ < 2) return lengths;
      const TileUse use = UseOfTiles(extents, lengths);
      const int64_t threads = use.threads * groups_;
      if (use.vthreads > hardware_.max_vthread_extent || threads > hardware_.max_threads_per_block)
        continue;
      if (threads < hardware_.warp_size) {
        // If an extent has no divisors, no tile has a warp. The tile with the most threads is taken
        // then.
        if (threads > most) {
          most = threads;
          most_threads = lengths;
        }
        continue;
      }
      if (Chance(rng_,
                 AcceptanceProbability(use, groups_, parts_, device_.multiprocessors, parameters_)))
        return lengths;
      legal = lengths;
    }
    if (!legal.empty()) return legal;
    if (!most_threads.empty()) return most_threads;
    return FailedPrecondition("no tile sizes within the limits of a block were found");
  }

  const std::vector<StepPtr>& steps_;
  State state_;
  const target::Target& target_;
  const target::HardwareParams& hardware_;
  const device::DeviceModel& device_;
  const Parameters& parameters_;
  Rng& rng_;
  const bool has_warpgroup_units_, wants_matrix_;
  std::vector<MatrixStage> matrices_ = {};
  bool is_matrix_ = false;                  // the last one is the stage that is being tiled
  std::optional<size_t> alike_ = {};        // the one whose tile it has
  const std::optional<int> cluster_split_;  // a step number
  const size_t spatial_lengths_;            // for each spatial split of a tiled stage
  int64_t groups_ = 1, parts_ = 1;          // for the stage that is tiled next
};

}  // namespace

TileUse UseOfTiles(const std::vector<int64_t>& extents,
                   const std::vector<std::vector<int64_t>>& lengths) {
  TileUse use;
  for (size_t k = 0; k < extents.size(); ++k) {
    int64_t tile = 1;
    for (int64_t length : lengths[k]) tile *= length;
    use.vthreads *= lengths[k][0];
    use.threads *= lengths[k][1];
    use.outputs *= tile / lengths[k][1];
    use.blocks *= CeilDiv(extents[k], tile);
  }
  return use;
}

// Each bound and its factor are a step, and stay two numbers. No curve over the device has their
// values on both sides of every step, so with a curve other draws are kept, and every search of a
// seed measures other programs. The bounds of threads and of outputs are also none of the device's
// facts: blocks of 64 to 512 threads are fast whatever a GPU allows. Only the two steps of idle
// multiprocessors have one factor, and one curve would have their values; they are apart so that a
// job can leave out one of them.
double AcceptanceProbability(const TileUse& use, int64_t groups, int64_t parts,
                             int64_t multiprocessors, const Parameters& p) {
  const int64_t threads = use.threads * groups, blocks = use.blocks * parts;
  double probability = 1;
  if (threads < p.few_threads) probability *= p.few_threads_factor;
  if (threads > p.many_threads) probability *= p.many_threads_factor;
  if (use.outputs < p.few_outputs) probability *= p.few_outputs_factor;
  if (use.outputs > p.many_outputs) probability *= p.many_outputs_factor;
  if (use.outputs > p.too_many_outputs) probability *= p.too_many_outputs_factor;
  if (blocks * p.idle_divisor < multiprocessors) probability *= p.idle_factor;
  if (blocks * p.mostly_idle_divisor < multiprocessors) probability *= p.mostly_idle_factor;
  if (blocks > multiprocessors * p.many_block_rounds) probability *= p.many_block_rounds_factor;
  return probability;
}

StatusOr<State> FillGpuTileSizes(const Sketch& sketch, const Task& task,
                                 const Parameters& parameters, Rng& rng) {
  return TileFiller(sketch, task, parameters, rng).Run();
}

}  // namespace kiln::search
