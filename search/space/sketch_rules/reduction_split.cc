// More parallelism for a tiled reduction on a GPU: its longest axis is split (split-K)
//   * over blocks: each computes the partial sums of one stretch of the axis into a buffer, and a
//     second kernel adds them up and goes on with what follows (the epilogue);
//   * over groups of threads inside a block: the groups work on the same tile of the output and
//     the same fetched tiles of the inputs, leave their partial sums in shared memory, and all
//     threads of the block together add them up;
//   * over the blocks of a thread block cluster: each leaves the partial sums of one stretch in its
//     shared memory, then they share out the elements of the tile, add up what all blocks have, and
//     go on with what follows: one kernel;
// or the second together with one of the others. Batch-1 convolutions have too few output elements
// to keep a GPU busy without.
#include <algorithm>

#include "compiler/schedule/steps/steps.h"
#include "search/space/alike_products.h"
#include "search/space/factorization.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::Stage;
using schedule::State;

// The loop of the longest reduction axis of an untouched stage.
int LongestReduceLoop(const Stage& stage) {
  int longest = -1;
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.loop(i).kind != schedule::IterKind::kReduce) continue;
    if (longest < 0 || stage.loop(i).extent > stage.loop(longest).extent) longest = i;
  }
  return longest;
}

bool HasPart(int64_t extent) {
  return std::ranges::any_of(Divisors(extent), [](int64_t d) { return d > 1 && d <= kMostParts; });
}

bool HasClusterPart(int64_t extent, int64_t most_blocks) {
  return std::ranges::any_of(
      kClusterSizes, [&](int64_t size) { return size <= most_blocks && extent % size == 0; });
}

bool IsUntouched(const State& state, int s) {
  const Stage& stage = state.stage(s);
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.loops[i].iter != i || stage.annotation(i) != Annotation::kNone ||
        state.HasAttached(s, i))
      return false;
  }
  return stage.relations.empty() && state.attach(s).kind == Attach::kRoot;
}

class ReductionSplit final : public SketchRule {
 public:
  std::string_view name() const override { return "reduction split"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (!context.parameters.reduction_splits || context.parameters.gpu_tiling != kStructure)
      return RuleAnswer::kSkip;
    const Stage& stage = state.stage(s);
    if (stage.is_placeholder() || !HasReduceLoop(stage)) return RuleAnswer::kSkip;
    const StageView view(state, s);
    const bool columns = TilesColumns(context, state, s);
    if (view.IsCacheWriteStage() || !(columns || view.NeedsMultiLevelTiling()) ||
        !IsUntouched(state, s) || view.ReduceProduct() < context.task.hardware.warp_size ||
        !(columns || HasPart(stage.loop(LongestReduceLoop(stage)).extent)))
      return RuleAnswer::kSkip;
    if (NumAlikeBehind(state, s) == 0) return RuleAnswer::kApply;
    return SumSplitsOf(state) == SumSplits{} ? RuleAnswer::kSkip : RuleAnswer::kApplyAndSkipRest;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    const Reduction reduction =
        TilesColumns(context, state, s) ? Reduction::kFused : Reduction::kAsItIs;
    NextStates next;
    {
      State groups = state;
      const int tile = SplitOverGroups(groups, s, std::nullopt, reduction);
      next.emplace_back(std::move(groups), tile - 1);
    }
    State blocks = state;
    const int partial = SplitOverBlocks(blocks, s, reduction);
    if (HasPart(blocks.stage(partial).loop(LongestReduceLoop(blocks.stage(partial))).extent)) {
      State both = blocks;
      const int tile = SplitOverGroups(both, partial, 0, Reduction::kAsItIs);
      next.emplace_back(std::move(both), tile - 1);
    }
    TilePartial(blocks, partial);
    next.emplace_back(std::move(blocks), partial - 1);
    if (context.parameters.cluster_splits && context.task.target.HasClusters() &&
        HasClusterPart(LongestReduction(state, s, reduction),
                       context.task.device.max_cluster_blocks))
      AddClusters(state, s, reduction, next);
    if (const int alike = NumAlikeBehind(state, s); alike > 0)
      KeepAlike(SumSplitsOf(state), alike, next);
    return next;
  }

 private:
  // The levels at which a tile of threads and the tiles of the reduction stand.
  static constexpr std::string_view kStructure = "SSSRRSRS";
  static constexpr int kThreadLevel = 2, kInnermostReduceLevel = 2;

  // Windows and images of columns are reduced as one axis: their sides may have no parts.
  enum class Reduction { kAsItIs, kFused };

  static int64_t LongestReduction(const State& state, int s, Reduction reduction) {
    if (reduction == Reduction::kFused) return state.stage(s).op->reduce_size();
    return state.stage(s).loop(LongestReduceLoop(state.stage(s))).extent;
  }

  // The stage that reads reduction s element by element and at whose loops s may be computed: its
  // reader, or a copy of its own. A stage is copied before its loops are fused.
  static int MakeReader(State& state, int s, Reduction reduction) {
    std::optional<int> reader = StageView(state, s).ElementwiseConsumer();
    if (!reader || !IsUntouched(state, *reader)) {
      MustApply(state, std::make_shared<schedule::CacheWriteStep>(s, "local"));
      reader = s + 1;
    }
    if (reduction == Reduction::kFused) FuseReduceLoops(state, s);
    return *reader;
  }

  // Adds up parts, one element at a time: inside `loop` of `reader`.
  static void CombineAt(State& state, int s, int reader, int loop) {
    MustApply(state,
              std::make_shared<schedule::AnnotateStep>(
                  s, static_cast<int>(state.stage(s).op->axes().size()), Annotation::kUnroll));
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, reader, loop));
  }

  // The kernel of partial sums is the returned stage; its first axis numbers the parts.
  static int SplitOverBlocks(State& state, int s, Reduction reduction) {
    int reader = MakeReader(state, s, reduction);
    const int loop = LongestReduceLoop(state.stage(s));
    // One length: the number of parts. It is blank in the sketch (GenerateSketches).
    MustApply(state,
              std::make_shared<schedule::SplitStep>(s, loop, state.stage(s).loop(loop).extent,
                                                    std::vector<int64_t>{1}, false));
    MustApply(state, std::make_shared<schedule::RfactorStep>(s, loop, 0));
    ++reader;
    CombineAt(state, s + 1, reader, static_cast<int>(state.stage(reader).loops.size()) - 1);
    return s;
  }

  // Tiles of the partial sums in registers, as any tiled stage's.
  static void TilePartial(State& state, int s) {
    MustApply(state, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    const std::vector<int> steps =
        TileMultiLevel(state, s, kStructure, {.whole = {}, .blocks_axis = 0});
    FollowTiling(state, s + 1, steps, kThreadLevel + 1);
    const int loop = (kThreadLevel + 1) * static_cast<int>(steps.size()) - 1;
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, s + 1, loop));
  }

  // Shares the longest reduction of stage s out over groups of threads: s is then the sums of one
  // group in registers, s+1 those of all groups in shared memory, s+2 their sum. Returns how s is
  // tiled.
  static TilingExceptions SplitIntoGroups(State& state, int s) {
    const int loop = LongestReduceLoop(state.stage(s));
    const int reduction = loop - static_cast<int>(state.stage(s).op->axes().size());
    // Outer loop, groups, inner loop: what all groups fetch together is contiguous. The groups are
    // the second length, as the threads are of a spatial split: what follows the number of threads
    // follows both.
    MustApply(state,
              std::make_shared<schedule::SplitStep>(s, loop, state.stage(s).loop(loop).extent,
                                                    std::vector<int64_t>{1, 1}, false));
    MustApply(state, std::make_shared<schedule::RfactorStep>(s, loop + 1, 0));
    MustApply(state, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    // The rfactor left the outer loop where the axis was, and the inner one after it.
    const int outer = static_cast<int>(state.stage(s).op->axes().size()) + reduction;
    TilingExceptions exceptions;
    exceptions.whole = {{0, kThreadLevel}, {outer, 0}, {outer + 1, kInnermostReduceLevel}};
    return exceptions;
  }

  static void AddClusters(const State& state, int s, Reduction reduction, NextStates& next) {
    State clusters = state;
    const int partial = SplitOverBlocks(clusters, s, reduction);
    if (HasPart(clusters.stage(partial).loop(LongestReduceLoop(clusters.stage(partial))).extent)) {
      State both = clusters;
      ClusterOfGroups(both, partial);
      next.emplace_back(std::move(both), partial - 1);
    }
    ClusterAlone(clusters, partial);
    next.emplace_back(std::move(clusters), partial - 1);
  }

  // Tiles of the partial sums in registers, then in the shared memory of the blocks, whose axis is
  // the outermost.
  static void ClusterAlone(State& state, int s) {
    MustApply(state, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    const std::vector<int> steps = TileMultiLevel(state, s, kStructure, {.whole = {{0, 0}}});
    FollowTiling(state, s + 1, steps, kThreadLevel + 1, /*whole_levels=*/{0});
    const int loop = (kThreadLevel + 1) * static_cast<int>(steps.size());
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, s + 1, loop));
    ComputeInCluster(state, s + 1, steps);
  }

  static void ClusterOfGroups(State& state, int s) {
    MustApply(state, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    TilingExceptions exceptions = SplitIntoGroups(state, s);
    exceptions.whole.push_back({1, 0});
    const std::vector<int> steps = TileMultiLevel(state, s, kStructure, exceptions);
    const int n = static_cast<int>(steps.size());
    FollowTiling(state, s + 1, steps, kThreadLevel + 1, /*whole_levels=*/{kThreadLevel, 0});
    MustApply(state,
              std::make_shared<schedule::ComputeAtStep>(s, s + 1, (kThreadLevel + 1) * n + 1));
    FollowTiling(state, s + 3, steps, 1, /*whole_levels=*/{0});
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s + 1, s + 3, n));
    CombineAt(state, s + 2, s + 3, 2 * n);
    ComputeInCluster(state, s + 3, steps);
  }

  // The partial sums of the blocks, stage `parts`, at the tiles of the stage that reads their sum,
  // which is the one after them.
  static void ComputeInCluster(State& state, int parts, const std::vector<int>& steps) {
    const int n = static_cast<int>(steps.size()), reader = state.Consumers(parts + 1).front();
    FollowTiling(state, reader, steps, 1);
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(parts, reader, n - 1));
    // Vectors of the sum: what a thread adds up is contiguous.
    const int axes = static_cast<int>(state.stage(parts + 1).op->axes().size());
    std::vector<int> order = {axes};
    for (int axis = 0; axis < axes; ++axis) order.push_back(axis);
    MustApply(state, std::make_shared<schedule::ReorderStep>(parts + 1, order));
    MustApply(state,
              std::make_shared<schedule::AnnotateStep>(parts + 1, axes, Annotation::kVectorize));
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(parts + 1, reader, 2 * n - 1));
  }

  // Returns the stage whose tile is in registers. blocks_axis: that numbers parts over blocks.
  static int SplitOverGroups(State& state, int s, std::optional<int> blocks_axis,
                             Reduction reduction) {
    int reader = MakeReader(state, s, reduction);
    TilingExceptions exceptions = SplitIntoGroups(state, s);
    if (blocks_axis) exceptions.blocks_axis = *blocks_axis + 1;
    reader += 2;
    const std::vector<int> steps = TileMultiLevel(state, s, kStructure, exceptions);
    const int n = static_cast<int>(steps.size());
    FollowTiling(state, s + 1, steps, kThreadLevel + 1, /*whole_levels=*/{kThreadLevel});
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, s + 1, (kThreadLevel + 1) * n));
    // The reader's loops: blocks, and all elements of a block's tile.
    FollowTiling(state, reader, steps, 1);
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s + 1, reader, n - 1));
    CombineAt(state, s + 2, reader, 2 * n - 1);
    return s;
  }
};

}  // namespace

SketchRulePtr ReductionSplitRule() { return std::make_unique<ReductionSplit>(); }

}  // namespace kiln::search
