#include "search/sampling/sample_gpu.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/numbers/integers.h"
#include "compiler/dag/access_analysis.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/buffering.h"
#include "search/sampling/sample_unroll.h"
#include "search/sampling/tile_sizes.h"
#include "search/space/alike_products.h"
#include "search/space/bulk_copies.h"
#include "search/space/factorization.h"
#include "search/space/gpu_validity.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "search/space/online_tiles.h"
#include "search/space/shared_layout.h"
#include "search/space/stage_hints.h"
#include "search/space/stage_view.h"
#include "search/space/thread_shapes.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;

// The position of the threadIdx tile among the lengths of a spatial split, which are virtual
// threads, threads, and two inner tiles.
constexpr int kThreadLevel = 1;

constexpr int64_t kWordBytes = 4;
// Probability that tiles of a product whose factor is unpacked in registers are fetched in the
// widest vectors. Otherwise all widths are drawn alike, the widest one among them.
constexpr double kWidestProb = 0.6;

// Returns the stages that a multi-level tiled stage is attached to. Their loops are tiles for
// blocks, virtual threads and threads.
std::set<int> TilingRoots(const State& state) {
  const dag::AccessAnalysis analysis(*state.dag());
  std::set<int> roots;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (IsTiledInLevels(state, analysis, s) && state.attach(s).kind == Attach::kIter)
      roots.insert(state.attach(s).stage);
  }
  return roots;
}

bool HasThreadLoop(const Stage& stage) {
  return std::any_of(stage.loops.begin(), stage.loops.end(), [](const schedule::LoopIter& loop) {
    return loop.annotation == Annotation::kThreadX;
  });
}

// Returns true if the split shares out the terms of a row, of which a block may have several. The
// sketch's stages are the operators.
bool IsOfRows(const State& state, const schedule::SplitStep& split) {
  if (state.num_stages() != state.dag()->size()) return false;
  const dag::Operator& op = *state.stage(split.stage_id).op;
  const auto axes = static_cast<int>(op.axes().size());
  if (!op.is_reduction() || split.loop != axes) return false;
  const Attach& at = state.attach(split.stage_id);
  if (at.kind == Attach::kRoot) return axes > 0;
  return at.kind == Attach::kIter && at.loop + 1 == axes && SplitStepsOf(state, at.stage).empty();
}

// Draws other numbers of threads, and of elements in their vectors, for the sketch's reductions
// across threads.
Sketch VaryReducingThreads(Sketch sketch, const target::HardwareParams& hardware, Rng& rng) {
  const int64_t max_lanes = MostLanes(*sketch.state.dag(), hardware);
  for (size_t i = 0; i < sketch.steps.size(); ++i) {
    const std::vector<LengthRole> roles = LengthRoles(sketch.steps, i);
    if (roles.empty() || roles[0] != LengthRole::kThreads) continue;
    const schedule::SplitStep& split = *schedule::As<schedule::SplitStep>(*sketch.steps[i]);
    std::vector<int64_t> lengths = split.lengths;
    lengths[0] = RandomThreads(split.extent, hardware, rng);
    if (IsOfRows(sketch.state, split) && lengths[0] == hardware.warp_size) {
      std::vector<int64_t> threads = PartsOfWarp(split.extent, max_lanes, hardware);
      threads.push_back(lengths[0]);
      if (threads.size() > 1) lengths[0] = PickFrom(rng, threads);
    }
    for (size_t k = 1; k < lengths.size(); ++k)
      lengths[k] = PickFrom(rng, LengthChoices(roles[k], split.extent, max_lanes, hardware));
    sketch.steps[i] = std::make_shared<schedule::SplitStep>(
        split.stage_id, split.loop, split.extent, std::move(lengths), split.inner_to_outer);
  }
  return sketch;
}

class ThreadBinder {
 public:
  ThreadBinder(State& state, const target::HardwareParams& hardware, bool vary_threads, Rng& rng)
      : state_(state),
        hardware_(hardware),
        vary_threads_(vary_threads),
        rng_(rng),
        most_vthreads_(MostVThreads(hardware, MatrixStageOf(state).has_value())),
        roots_(TilingRoots(state)) {}

  Status Run() {
    // Consumers come first: a shared stage follows the threads of the stage that reads it.
    for (int s = state_.num_stages() - 1; s >= 0; --s) {
      const Stage& stage = state_.stage(s);
      const Attach::Kind kind = state_.attach(s).kind;
      if (stage.is_placeholder() || kind == Attach::kInlined) continue;
      if (HasCrossThreadReduction(state_, s)) {
        if (kind == Attach::kRoot) KILN_RETURN_IF_ERROR(BindReducingRoot(s));
      } else if (HasThreadLoop(stage)) {
        continue;
      } else if (kind == Attach::kRoot) {
        const auto groups = GroupedStageIn(s), parts = ClusterStageIn(state_, s);
        KILN_RETURN_IF_ERROR(parts                      ? BindCluster(s, *parts)
                             : roots_.contains(s)       ? BindTiles(s)
                             : groups                   ? BindGroups(s, *groups)
                             : CopiedStageIn(state_, s) ? BindCopy(s)
                                                        : BindUntiled(s));
      } else if (stage.asks_for_shared()) {
        KILN_RETURN_IF_ERROR(IsKeptRow(state_, s)  ? BindKeptRow(s)
                             : IsCopied(state_, s) ? BindCopiedFetch(s)
                                                   : BindFetch(s));
      }
    }
    return OkStatus();
  }

 private:
  Status Bind(int s, int loop, Annotation annotation) {
    return state_.Apply(std::make_shared<schedule::AnnotateStep>(s, loop, annotation));
  }
  int64_t Extent(int s, int loop) const { return state_.stage(s).loop(loop).extent; }

  // Fuses the outer spatial loops into loop 0, up to the first loop with an attached stage. Returns
  // whether there are such loops.
  StatusOr<bool> FuseOuterSpatial(int s) {
    const Stage& stage = state_.stage(s);
    std::vector<int> loops;
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      if (stage.loop(i).kind == IterKind::kReduce || stage.annotation(i) != Annotation::kNone)
        break;
      if (i > 0 && state_.HasAttached(s, i - 1)) break;
      loops.push_back(i);
    }
    if (loops.size() == 1) return true;
    if (loops.empty() && !stage.loops.empty()) return false;
    KILN_RETURN_IF_ERROR(state_.Apply(std::make_shared<schedule::FuseStep>(s, loops)));
    return true;
  }

  Status Split(int s, int loop, std::vector<int64_t> lengths) {
    return state_.Apply(std::make_shared<schedule::SplitStep>(
        s, loop, std::max<int64_t>(Extent(s, loop), 0), std::move(lengths), true));
  }

  // Binds a root stage whose threads are in the reduction. The other loops become blocks, and rows
  // of a block if a warp is enough for a row. A reduction to a scalar is one block.
  Status BindReducingRoot(int s) {
    KILN_RETURN_IF_ERROR(VectorizeBehindThreads(s));
    const std::vector<int> reductions = ReductionsInRowsOf(s);
    std::optional<int> rows_loop;
    if (!reductions.empty()) rows_loop = state_.attach(reductions[0]).loop;
    KILN_ASSIGN_OR_RETURN(const int64_t rows, RowsOf(s, rows_loop, reductions));
    if (rows > 0 && rows_loop) {
      KILN_RETURN_IF_ERROR(Split(s, *rows_loop, {rows}));
      KILN_RETURN_IF_ERROR(Bind(s, *rows_loop + 1, Annotation::kThreadY));
      for (const int reduction : reductions) {
        KILN_RETURN_IF_ERROR(
            state_.Apply(std::make_shared<schedule::ComputeAtStep>(reduction, s, *rows_loop)));
        KILN_RETURN_IF_ERROR(Bind(reduction, *rows_loop, Annotation::kThreadY));
      }
    }
    KILN_ASSIGN_OR_RETURN(const bool fused, FuseOuterSpatial(s));
    if (!fused) return OkStatus();
    if (rows > 0 && !rows_loop) {
      KILN_RETURN_IF_ERROR(Split(s, 0, {rows}));
      KILN_RETURN_IF_ERROR(Bind(s, 1, Annotation::kThreadY));
    }
    return Bind(s, 0, Annotation::kBlockX);
  }

  // Vectorizes the loop behind that of the threads, unless it belongs to a reduction.
  Status VectorizeBehindThreads(int s) {
    const Stage& stage = state_.stage(s);
    for (int i = 0; i + 1 < static_cast<int>(stage.loops.size()); ++i) {
      if (stage.annotation(i) == Annotation::kThreadX && stage.loop(i).kind == IterKind::kSpatial &&
          stage.loop(i + 1).kind == IterKind::kSpatial)
        return Bind(s, i + 1, Annotation::kVectorize);
    }
    return OkStatus();
  }

  // Returns the reductions over threads that are computed in one row of root stage s. Empty if some
  // are computed elsewhere, if s has none, or if s itself reduces.
  std::vector<int> ReductionsInRowsOf(int s) const {
    std::vector<int> reductions;
    for (int r = 0; r < s; ++r) {
      if (state_.attach(r).kind != Attach::kIter || state_.attach(r).stage != s) continue;
      const auto axes = static_cast<int>(state_.stage(r).op->axes().size());
      if (axes != state_.attach(r).loop + 1 || !HasThreadLoop(state_.stage(r))) return {};
      // A loop over a part of an axis has the rows of that part's threads inside.
      if (state_.stage(s).loops[axes - 1].iter != axes - 1) return {};
      if (!reductions.empty() && state_.attach(r) != state_.attach(reductions[0])) return {};
      reductions.push_back(r);
    }
    return reductions;
  }

  // Draws the rows that a block of root stage s has, of its loop rows_loop, in which `reductions`
  // are computed, or of all its outer loops. Returns 0 if each block has one row. A reduction by a
  // single warp needs no barrier, so several fit a block. Parts of a warp have rows for whole
  // warps.
  StatusOr<int64_t> RowsOf(int s, std::optional<int> rows_loop,
                           const std::vector<int>& reductions) {
    const Stage& stage = state_.stage(s);
    int64_t threads = 0, extent = 1;
    bool outer = true;
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      if (!rows_loop && state_.HasAttached(s, i)) return 0;
      if (stage.annotation(i) == Annotation::kThreadX) threads = stage.loop(i).extent;
      outer = outer && stage.loop(i).kind == IterKind::kSpatial &&
              stage.annotation(i) == Annotation::kNone;
      if (rows_loop ? i == *rows_loop : outer) extent *= stage.loop(i).extent;
    }
    // A stage without threads of its own has an element for each row.
    if (threads == 0 && !reductions.empty()) threads = ThreadsOf(reductions[0]);
    if (!vary_threads_ || threads > hardware_.warp_size || threads < 1) return 0;
    std::vector<int64_t> rows = LengthChoices(LengthRole::kRows, extent, 1, hardware_);
    if (threads == hardware_.warp_size) return extent > 1 ? PickFrom(rng_, rows) : 0;
    std::erase_if(rows, [&](int64_t n) { return n * threads % hardware_.warp_size != 0; });
    if (rows.empty())
      return FailedPrecondition("stage {}: {} rows of {} threads fill no warp", s, extent, threads);
    return PickFrom(rng_, rows);
  }

  // Returns the threads of a reduction as its split has them. The extents of its loops are not
  // known while it is computed in another stage.
  int64_t ThreadsOf(int s) const {
    for (const int step : SplitStepsOf(state_, s)) {
      const auto roles = LengthRoles(state_.steps(), static_cast<size_t>(step));
      if (!roles.empty() && roles[0] == LengthRole::kThreads)
        return schedule::As<schedule::SplitStep>(*state_.steps()[static_cast<size_t>(step)])
            ->lengths[0];
    }
    return 0;
  }

  Status BindUntiled(int s) {
    KILN_ASSIGN_OR_RETURN(const bool fused, FuseOuterSpatial(s));
    if (!fused) return OkStatus();
    const int64_t extent = Extent(s, 0);
    if (extent <= hardware_.warp_size) return Bind(s, 0, Annotation::kThreadX);
    if (!vary_threads_ || state_.HasAttached(s, 0)) {
      KILN_RETURN_IF_ERROR(Split(
          s, 0, {vary_threads_ ? RandomThreads(extent, hardware_, rng_) : hardware_.warp_size}));
      KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));
      return Bind(s, 1, Annotation::kThreadX);
    }
    const int64_t max_lanes =
        HasReduceLoop(state_.stage(s)) ? 1 : MostLanes(*state_.dag(), hardware_);
    KILN_RETURN_IF_ERROR(Split(s, 0, RandomFlatShape(extent, max_lanes, hardware_, rng_)));
    KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));
    KILN_RETURN_IF_ERROR(Bind(s, 1, Annotation::kUnroll));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kThreadX));
    return Bind(s, 3, Annotation::kVectorize);
  }

  // Binds root stage s so that each block has one tile, whose elements its threads share out in
  // vectors.
  Status BindCopy(int s) {
    const Stage tiled = state_.stage(s);
    KILN_RETURN_IF_ERROR(FuseLevel(s, 0));
    KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));
    KILN_RETURN_IF_ERROR(FuseLevel(s, 1));
    const int64_t elements = Extent(s, 1);
    const auto axes = static_cast<int>(tiled.op->axes().size());
    const int64_t row = std::gcd(tiled.op->axes().back().extent, tiled.loop(2 * axes - 1).extent);
    const int64_t lanes = PickFrom(
        rng_,
        LengthChoices(LengthRole::kLanes, row, MostLanes(*state_.dag(), hardware_), hardware_));
    const int64_t threads = RandomThreads(CeilDiv(elements, lanes), hardware_, rng_);
    copy_split_ = static_cast<int>(state_.steps().size());
    KILN_RETURN_IF_ERROR(Split(s, 1, {threads, lanes}));
    KILN_RETURN_IF_ERROR(Bind(s, 1, Annotation::kUnroll));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kThreadX));
    extents_known_ = false;
    return Bind(s, 3, Annotation::kVectorize);
  }

  // Lets the threads of the copy fetch the tile.
  Status BindCopiedFetch(int s) {
    KILN_RETURN_IF_ERROR(FillExtents());
    const schedule::FollowFusedSplitStep follow(s, 0, {*copy_split_}, 0, true);
    KILN_ASSIGN_OR_RETURN(const int64_t threads, FollowedLength(follow, state_.steps()));
    KILN_RETURN_IF_ERROR(
        FetchInVectors(s, follow, CopyWidths(state_, s, threads, hardware_.vector_unit_bytes)));
    return Bind(s, 0, Annotation::kUnroll);
  }

  // Lets the threads that reduce the row fetch it, in the widest vectors.
  Status BindKeptRow(int s) {
    const std::optional<RowThreads> of_row = ThreadsOfKeptRow(state_, s);
    if (!of_row) return FailedPrecondition("stage {} has no threads that could fetch it", s);
    KILN_RETURN_IF_ERROR(FillExtents());
    const schedule::FollowFusedSplitStep follow(s, 0, {of_row->step}, of_row->level, true);
    KILN_ASSIGN_OR_RETURN(const int64_t threads, FollowedLength(follow, state_.steps()));
    return FetchInVectors(s, follow,
                          {FetchWidths(state_, s, threads, hardware_.vector_unit_bytes).back()});
  }

  // Fuses the loops of tile level `level`, which begin at the loop of the same number.
  Status FuseLevel(int s, int level) {
    const Stage& stage = state_.stage(s);
    const int end = std::min(level + static_cast<int>(stage.op->axes().size()),
                             static_cast<int>(stage.loops.size()));
    std::vector<int> loops;
    for (int i = level; i < end && schedule::LoopLevel(stage, i) == level; ++i) loops.push_back(i);
    if (loops.empty()) {
      return FailedPrecondition("stage {} ({}) has no tiles of level {}", s, stage.op->name(),
                                level);
    }
    return state_.Apply(std::make_shared<schedule::FuseStep>(s, loops));
  }

  Status BindTiles(int s) {
    const dag::Operator& op = *state_.stage(s).op;
    const bool tiny = op.num_elements() * op.reduce_size() <= hardware_.warp_size * 2;
    KILN_RETURN_IF_ERROR(FuseLevel(s, 0));
    KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));

    KILN_RETURN_IF_ERROR(FuseLevel(s, 1));
    if (Extent(s, 1) > most_vthreads_) {
      return FailedPrecondition("stage {} ({}): {} virtual threads, the limit is {}", s, op.name(),
                                Extent(s, 1), most_vthreads_);
    }
    KILN_RETURN_IF_ERROR(Bind(s, 1, Annotation::kVThread));

    KILN_RETURN_IF_ERROR(FuseLevel(s, 2));
    const int64_t threads = Extent(s, 2);
    const int64_t most = hardware_.max_threads_per_block;
    const int64_t least = tiny ? 1 : std::min<int64_t>(hardware_.warp_size, MostThreads(s, 2));
    if (threads < least || threads > most) {
      return FailedPrecondition("stage {} ({}): {} threads per block, expected {} to {}", s,
                                op.name(), threads, least, most);
    }
    extents_known_ = false;
    return Bind(s, 2, Annotation::kThreadX);
  }

  // Returns the tiled stage whose reduction groups of threads share
  // (sketch_rules/reduction_split.cc), if there is one. The tiled stage is computed at the tiles of
  // a stage that is computed inside s.
  std::optional<int> GroupedStageIn(int s) const {
    for (const int root : roots_) {
      if (state_.attach(root).kind != Attach::kIter || state_.attach(root).stage != s) continue;
      for (int tile = 0; tile < state_.num_stages(); ++tile) {
        if (state_.attach(tile).kind == Attach::kIter && state_.attach(tile).stage == root &&
            GroupSplitOf(state_, tile))
          return tile;
      }
    }
    return std::nullopt;
  }

  // Binds root stage s to a tile's blocks, and shares its elements out to all threads. The stage
  // inside it has groups of threads, and in each group the threads of the tile.
  Status BindGroups(int s, int tile) {
    const int partial = state_.attach(tile).stage;
    const std::vector<int> splits = ThreadSplits(tile);
    KILN_RETURN_IF_ERROR(CheckThreads(s, tile));
    KILN_RETURN_IF_ERROR(FuseLevel(s, 0));
    KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));
    KILN_RETURN_IF_ERROR(FuseLevel(s, 1));
    KILN_RETURN_IF_ERROR(state_.Apply(
        std::make_shared<schedule::FollowFusedSplitStep>(s, 1, splits, kThreadLevel, true)));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kThreadX));

    // The region of this stage is one tile, so the loops of blocks run once. The axis of the groups
    // comes first, and is the outermost of the threads.
    const int axes = static_cast<int>(state_.stage(partial).op->axes().size()) - 1;
    return BindTileLevels(partial, axes, axes, axes + 1);
  }

  // Binds the loops of stage s from `first` on: the first vthread_loops to virtual threads, the
  // next thread_loops to threads.
  Status BindTileLevels(int s, int first, int vthread_loops, int thread_loops) {
    KILN_RETURN_IF_ERROR(FuseRange(s, first, vthread_loops));
    KILN_RETURN_IF_ERROR(Bind(s, first, Annotation::kVThread));
    KILN_RETURN_IF_ERROR(FuseRange(s, first + 1, thread_loops));
    extents_known_ = false;
    return Bind(s, first + 1, Annotation::kThreadX);
  }

  // Checks the threads of a block that works on a tile, as its splits give them.
  Status CheckThreads(int s, int tile) const {
    const auto product = [&](std::span<const int> numbers, int level) {
      return FollowedLength({s, 0, {numbers.begin(), numbers.end()}, level, true}, state_.steps());
    };
    KILN_ASSIGN_OR_RETURN(const int64_t vthreads, product(SpatialSplits(tile), 0));
    KILN_ASSIGN_OR_RETURN(const int64_t threads, product(ThreadSplits(tile), kThreadLevel));
    const std::string& name = state_.stage(s).op->name();
    if (vthreads > most_vthreads_) {
      return FailedPrecondition("stage {} ({}): {} virtual threads, the limit is {}", s, name,
                                vthreads, most_vthreads_);
    }
    if (threads > hardware_.max_threads_per_block) {
      return FailedPrecondition("stage {} ({}): {} threads per block, the limit is {}", s, name,
                                threads, hardware_.max_threads_per_block);
    }
    return OkStatus();
  }

  // Returns the tiled stage that is computed directly in a loop of s.
  std::optional<int> TiledStageIn(int s) const {
    if (state_.NumAttached(s) == 0) return std::nullopt;
    const dag::AccessAnalysis analysis(*state_.dag());
    for (int tile = 0; tile < s; ++tile) {
      if (state_.attach(tile).kind == Attach::kIter && state_.attach(tile).stage == s &&
          IsTiledInLevels(state_, analysis, tile))
        return tile;
    }
    return std::nullopt;
  }

  // Binds root stage s to a tile's clusters, and shares its elements out to the blocks of a cluster
  // and their threads, in vectors. `parts`, which is computed inside it, has the partial sums of
  // the blocks, and the stage after it has their sum.
  Status BindCluster(int s, int parts) {
    const std::optional<int> groups = GroupedStageIn(parts);
    const std::optional<int> found = groups ? groups : TiledStageIn(parts);
    if (!found) return FailedPrecondition("stage {} has no tiled stage inside", parts);
    const int tile = *found;
    const int n = static_cast<int>(state_.stage(parts).op->axes().size()) - 1;
    const std::vector<int> splits = ThreadSplits(tile);
    KILN_RETURN_IF_ERROR(CheckThreads(s, tile));
    KILN_ASSIGN_OR_RETURN(const State filled, lower::FillExtents(state_));
    KILN_ASSIGN_OR_RETURN(const int64_t threads,
                          FollowedLength({s, 1, splits, kThreadLevel, true}, state_.steps()));
    const int64_t width =
        PickFrom(rng_, SumWidths(filled, parts, threads, hardware_.vector_unit_bytes));

    KILN_RETURN_IF_ERROR(FuseLevel(s, 0));
    KILN_RETURN_IF_ERROR(Bind(s, 0, Annotation::kBlockX));
    KILN_RETURN_IF_ERROR(FuseLevel(s, 1));
    KILN_RETURN_IF_ERROR(state_.Apply(std::make_shared<schedule::SplitStep>(
        s, 1, std::max<int64_t>(Extent(s, 1), 0), std::vector<int64_t>{width}, true)));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kVectorize));
    KILN_RETURN_IF_ERROR(state_.Apply(
        std::make_shared<schedule::FollowFusedSplitStep>(s, 1, splits, kThreadLevel, true)));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kThreadX));
    const std::vector<int> blocks = {*PartsSplitOf(state_, parts)};
    KILN_RETURN_IF_ERROR(
        state_.Apply(std::make_shared<schedule::FollowFusedSplitStep>(s, 1, blocks, 0, true)));
    KILN_RETURN_IF_ERROR(Bind(s, 2, Annotation::kCluster));
    KILN_RETURN_IF_ERROR(state_.Apply(std::make_shared<schedule::ComputeAtStep>(parts + 1, s, 3)));

    KILN_RETURN_IF_ERROR(Bind(parts, 0, Annotation::kCluster));
    if (!groups) return BindTileLevels(parts, 1 + n, n, n);
    KILN_RETURN_IF_ERROR(FuseRange(parts, 1 + n, n));
    KILN_RETURN_IF_ERROR(state_.Apply(std::make_shared<schedule::FollowFusedSplitStep>(
        parts, 1 + n, splits, kThreadLevel, true)));
    KILN_RETURN_IF_ERROR(Bind(parts, 2 + n, Annotation::kThreadX));
    return BindTileLevels(state_.attach(tile).stage, 1 + n, n, n + 1);
  }

  Status FuseRange(int s, int first, int count) {
    std::vector<int> loops(count);
    for (int i = 0; i < count; ++i) loops[i] = first + i;
    return state_.Apply(std::make_shared<schedule::FuseStep>(s, loops));
  }

  // Returns the splits whose second lengths multiply to the threads of a block, the last first.
  std::vector<int> ThreadSplits(int tile) const {
    std::vector<int> splits = SpatialSplits(tile);
    if (const auto groups = GroupSplitOf(state_, tile)) splits.push_back(*groups);
    return splits;
  }

  // Returns the most threads that exact tiles of the axes in this loop can make, which is 1 for a
  // large prime extent.
  int64_t MostThreads(int s, int loop) const {
    const Stage& stage = state_.stage(s);
    const int64_t limit = hardware_.max_threads_per_block;
    std::set<int64_t> products = {1};
    for (int axis : schedule::AxesOf(stage, stage.loops[loop].iter)) {
      const std::set<int64_t> before = products;
      for (int64_t divisor : Divisors(stage.op->axes()[axis].extent)) {
        for (int64_t product : before) {
          if (product * divisor <= limit) products.insert(product * divisor);
        }
      }
    }
    return *products.rbegin();
  }

  // Returns the SP steps of the spatial axes of a tiled stage, the last first.
  std::vector<int> SpatialSplits(int s) const {
    const Stage& stage = state_.stage(s);
    const std::vector<int> splits = SplitStepsOf(state_, s);
    std::vector<int> spatial;
    size_t next = 0;  // SP steps and split relations are in the same order
    for (const schedule::Relation& relation : stage.relations) {
      if (relation.kind != schedule::Relation::kSplit || next == splits.size()) continue;
      if (stage.iters[relation.parents[0]].kind == IterKind::kSpatial)
        spatial.push_back(splits[next]);
      ++next;
    }
    std::reverse(spatial.begin(), spatial.end());
    return spatial;
  }

  // Lets all threads of the block fetch its shared data together.
  Status BindFetch(int s) {
    const int reader = state_.attach(s).stage;
    const std::vector<int> splits = ThreadSplits(reader);
    if (splits.empty())
      return FailedPrecondition("stage {} has no spatial tiles whose threads could fetch", reader);
    KILN_RETURN_IF_ERROR(FillExtents());
    const schedule::FollowFusedSplitStep follow(s, 0, splits, kThreadLevel, true);
    KILN_ASSIGN_OR_RETURN(const int64_t threads, FollowedLength(follow, state_.steps()));
    std::vector<int64_t> widths = FetchWidths(state_, s, threads, hardware_.vector_unit_bytes);
    // Units of four warps wait for nothing but their tiles, and the copy engine brings no tile that
    // is fetched by elements of two bytes. A tile that is transposed is copied element by element.
    const Stage& stage = state_.stage(s);
    const bool keeps_rows = stage.layout.empty() ||
                            stage.layout.back() == static_cast<int>(stage.op->axes().size()) - 1;
    const bool is_of_warpgroups =
        ir::MatrixUnitScopeOf(state_.stage(reader).hints) == ir::MatrixUnitScope::kWarpgroup;
    const bool is_wide =
        is_of_warpgroups || (HasComputedFactor(state_, reader) && Chance(rng_, kWidestProb));
    if (keeps_rows && is_wide) widths = {widths.back()};
    return FetchInVectors(s, follow, widths);
  }

  // Fills the extents again if they are not known, as they depend on the loops that are bound to
  // threads.
  Status FillExtents() {
    if (extents_known_) return OkStatus();
    KILN_ASSIGN_OR_RETURN(state_, lower::FillExtents(std::move(state_)));
    extents_known_ = true;
    return OkStatus();
  }

  // Fetches in vectors of one of the widths, by the threads that `follow` gives.
  Status FetchInVectors(int s, const schedule::FollowFusedSplitStep& follow,
                        const std::vector<int64_t>& widths) {
    const int64_t width = PickFrom(rng_, widths);
    KILN_RETURN_IF_ERROR(FuseRange(s, 0, static_cast<int>(state_.stage(s).loops.size())));
    KILN_RETURN_IF_ERROR(Split(s, 0, {width}));
    KILN_RETURN_IF_ERROR(Bind(s, 1, Annotation::kVectorize));
    KILN_RETURN_IF_ERROR(state_.Apply(std::make_shared<schedule::FollowFusedSplitStep>(follow)));
    return Bind(s, 1, Annotation::kThreadX);
  }

  State& state_;
  const target::HardwareParams& hardware_;
  const bool vary_threads_;
  Rng& rng_;
  const int64_t most_vthreads_;
  const std::set<int> roots_;
  bool extents_known_ = false;
  std::optional<int>
      copy_split_;  // the step with the threads of the copy whose tile is fetched next
};

}  // namespace

std::vector<int64_t> FetchWidths(const State& state, int s, int64_t threads, int vector_bytes) {
  const Stage& stage = state.stage(s);
  // Number of elements in the whole region, and in one run of consecutive addresses of the source.
  int64_t elements = 1, run = 1;
  bool contiguous = true;
  for (size_t axis = stage.op->axes().size(); axis-- > 0;) {
    const int64_t extent = stage.iters[axis].extent;
    elements *= extent;
    if (!contiguous) continue;
    run *= extent;
    contiguous = extent == stage.op->axes()[axis].extent;
  }
  // Copies of less than a word are not asynchronous, so a part of the threads may fetch a small
  // tile of narrow elements of which a factor is unpacked.
  const int64_t bytes = stage.op->type().bytes(), vector = vector_bytes / bytes;
  const bool is_narrow = bytes < kWordBytes && state.attach(s).kind == Attach::kIter &&
                         HasComputedFactor(state, state.attach(s).stage);
  const int64_t most = is_narrow ? vector : std::min(CeilDiv(elements, threads), vector);
  std::vector<int64_t> widths = {1};
  for (int64_t width = 2; width <= most && run % width == 0; width *= 2) widths.push_back(width);
  return widths;
}

std::vector<int64_t> CopyWidths(const State& state, int s, int64_t threads, int vector_bytes) {
  std::vector<int64_t> widths = FetchWidths(state, s, threads, vector_bytes);
  const int64_t row = state.stage(s).op->axes().back().extent;
  std::erase_if(widths, [row](int64_t width) { return row % width != 0; });
  return widths;
}

std::vector<int64_t> SumWidths(const State& state, int parts, int64_t threads, int vector_bytes) {
  const Stage& stage = state.stage(parts);
  int64_t elements = 1;
  for (size_t axis = 1; axis < stage.op->axes().size(); ++axis)
    elements *= stage.iters[axis].extent;
  const int64_t row = stage.iters[stage.op->axes().size() - 1].extent;
  const int64_t at_once = threads * stage.iters[0].extent;
  const int64_t per_thread = CeilDiv(elements, at_once);
  std::vector<int64_t> widths = {1};
  int64_t bytes = 1;  // of the largest value of a sum
  for (int k = 0; k < stage.op->num_outputs(); ++k)
    bytes = std::max<int64_t>(bytes, stage.op->type(k).bytes());
  const int64_t most = std::min<int64_t>(per_thread, vector_bytes / bytes);
  for (int64_t width = 2; width <= most && row % width == 0; width *= 2) widths.push_back(width);
  return widths;
}

Status BindThreads(State& state, const target::HardwareParams& hardware, bool vary_threads,
                   Rng& rng) {
  return ThreadBinder(state, hardware, vary_threads, rng).Run();
}

Status AnnotateGpuUnroll(State& state, Rng& rng) {
  return AnnotateUnroll(state, [&](int s, const HintChoice& choice) {
    const auto threads = [&] { return UseOfKernel(state, s).threads; };
    return DrawHint(choice, {.gpu = true, .threads_per_block = threads}, rng);
  });
}

StatusOr<State> SampleOnlineSoftmax(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng) {
  const auto& step = *schedule::As<schedule::OnlineSoftmaxStep>(*sketch.steps[0]);
  State state(task.dag);
  const OnlineSpace space = OnlineSpaceOf(task, parameters);
  KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::OnlineSoftmaxStep>(
      step.stage_id, RandomOnlineTile(step.tile, space, parameters.warpgroup_prob, rng))));
  KILN_RETURN_IF_ERROR(AnnotateGpuHints(state, parameters.hints, task.device.multiprocessors, rng));
  std::vector<schedule::StepPtr> steps = state.steps();
  if (SimplifyBulkCopies(state, steps)) {
    KILN_ASSIGN_OR_RETURN(state, schedule::Replay(task.dag, steps, task.stop));
  }
  KILN_RETURN_IF_ERROR(CheckGpuLimits(state, task.hardware, task.device.max_cluster_blocks));
  return state;
}

namespace {

// Probability that all choices are the same for products of one form. The tiles alone are drawn
// alike more often (tile_sizes.cc).
constexpr double kAlikeProb = 0.75;

// Draws whether products of one form get the same choices, and gives them to the state.
StatusOr<State> WithAlikeChoices(State state, const Task& task, Rng& rng) {
  if (ProductsOfMatrixUnits(state).size() < 2) return state;
  std::vector<schedule::StepPtr> steps = state.steps();
  if (!ChooseAlike(state, steps) || !Chance(rng, kAlikeProb)) return state;
  StatusOr<State> alike = schedule::Replay(task.dag, steps, task.stop);
  if (alike.ok()) alike = lower::FillExtents(*std::move(alike), task.stop);
  // The kernel of the last product may have an epilogue that the others have no room beside.
  const bool fits =
      alike.ok() && CheckGpuLimits(*alike, task.hardware, task.device.max_cluster_blocks).ok();
  if (fits) return alike;
  return state;
}

}  // namespace

StatusOr<State> SampleGpu(const Sketch& sketch, const Task& task, const Parameters& parameters,
                          Rng& rng) {
  if (sketch.state.online() != nullptr) return SampleOnlineSoftmax(sketch, task, parameters, rng);
  const bool vary = parameters.vary_thread_counts;
  KILN_ASSIGN_OR_RETURN(
      State state, FillGpuTileSizes(vary ? VaryReducingThreads(sketch, task.hardware, rng) : sketch,
                                    task, parameters, rng));
  // Layouts come before the loops of a fetch are fused, while these still are the axes.
  if (parameters.shared_layouts) KILN_RETURN_IF_ERROR(AnnotateLayouts(state, parameters, rng));
  KILN_RETURN_IF_ERROR(BindThreads(state, task.hardware, vary, rng));
  KILN_RETURN_IF_ERROR(AnnotateGpuUnroll(state, rng));
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state), task.stop));
  if (parameters.fetch_ahead) {
    KILN_RETURN_IF_ERROR(AnnotateBuffering(state, task, parameters, rng));
  }
  KILN_RETURN_IF_ERROR(CheckGpuLimits(state, task.hardware, task.device.max_cluster_blocks));
  KILN_RETURN_IF_ERROR(AnnotateGpuHints(state, parameters.hints, task.device.multiprocessors, rng));
  KILN_ASSIGN_OR_RETURN(state, WithAlikeChoices(std::move(state), task, rng));
  // Swizzled tiles may take more room than padded ones.
  if (MatrixStageOf(state))
    KILN_RETURN_IF_ERROR(CheckGpuLimits(state, task.hardware, task.device.max_cluster_blocks));
  std::vector<schedule::StepPtr> steps = state.steps();
  if (SimplifyLayouts(state, steps)) {
    KILN_ASSIGN_OR_RETURN(state, schedule::Replay(task.dag, steps, task.stop));
    KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state), task.stop));
  }
  return state;
}

}  // namespace kiln::search
