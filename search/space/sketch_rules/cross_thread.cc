#include <algorithm>

#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::State;

// The stage that all readers of s are computed in: the only reader itself, or the root stage they
// share.
std::optional<int> CommonReader(const State& state, const std::vector<int>& readers) {
  if (readers.size() == 1) return readers[0];
  std::optional<int> common;
  for (int reader : readers) {
    const Attach& attach = state.attach(reader);
    const int root = attach.kind == Attach::kIter ? attach.stage : reader;
    if (common && root != *common) return std::nullopt;
    common = root;
  }
  return common;
}

// The threads of a block share one reduction, where possible inside the loops of the stage that
// reads its result. If there are few long rows, blocks share each row out as well.
class CrossThreadReduction final : public SketchRule {
 public:
  std::string_view name() const override { return "cross-thread reduction"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const StageView view(state, s);
    if (!HasReduceLoop(state.stage(s)) || view.IsCacheWriteStage()) return RuleAnswer::kSkip;
    const target::HardwareParams& hardware = context.task.hardware;
    const double spatial = view.SpatialProduct(), reduce = view.ReduceProduct();
    // Threads along the terms of a column would each read another line of memory.
    if (TilesColumns(context, state, s) && view.RowLength() >= hardware.warp_size)
      return RuleAnswer::kSkip;
    bool needed = reduce > hardware.warp_size;
    if (view.NeedsMultiLevelTiling())
      needed = spatial <= hardware.max_threads_per_block && spatial < reduce;
    return needed ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    const std::vector<int64_t> lengths = ThreadLengths(context);
    State next = state;
    const int reduce_loop = FuseReduceLoops(next, s);
    const std::optional<Place> place = FindPlace(next, s);
    // Products of few elements have tiles besides.
    const bool is_whole =
        place && !StageView(state, s).NeedsMultiLevelTiling() && ReadsWholeRows(next, *place);
    NextStates all;
    if (HasFewLongRows(context, state, s))
      all.emplace_back(SplitRows(next, s, is_whole ? &*place : nullptr, lengths), s - 1);
    if (!place) {
      SplitByThreads(next, s, reduce_loop, lengths);
      all.emplace_back(std::move(next), s - 1);
      return all;
    }
    if (is_whole) all.emplace_back(ComputeInRow(next, s, *place, lengths), s - 1);
    if (!is_whole || !next.HasAttached(place->stage, place->loop))
      all.emplace_back(ComputeAtThreads(std::move(next), s, *place, lengths), s - 1);
    return all;
  }

 private:
  struct Place {
    int stage = 0, loop = 0;
  };

  // Does the reader have one element for each row, and no threads of its own?
  static bool ReadsWholeRows(const State& state, const Place& place) {
    if (state.attach(place.stage).kind != Attach::kRoot ||
        !SplitStepsOf(state, place.stage).empty() ||
        place.loop + 1 != static_cast<int>(state.stage(place.stage).loops.size()))
      return false;
    return std::ranges::all_of(state.AttachedTo(place.stage, place.loop),
                               [&](int r) { return HasCrossThreadReduction(state, r); });
  }

  // Each block reduces a row with all of its threads, and goes on with the reader's element of it.
  static State ComputeInRow(State state, int s, const Place& place,
                            const std::vector<int64_t>& lengths) {
    const int loop = static_cast<int>(state.stage(s).op->axes().size());
    const std::vector<int> others = state.AttachedTo(place.stage, place.loop);
    if (others.empty()) {
      SplitByThreads(state, s, loop, lengths);
    } else {
      FollowThreads(state, s, SplitStepsOf(state, others[0])[0], lengths);
    }
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, place.stage, place.loop));
    return state;
  }

  // The threads that share the reader's elements out share each row out before.
  static State ComputeAtThreads(State state, int s, const Place& place,
                                const std::vector<int64_t>& lengths) {
    std::vector<int> splits = SplitStepsOf(state, place.stage);
    if (splits.empty()) {
      splits.push_back(static_cast<int>(state.steps().size()));
      SplitByThreads(state, place.stage,
                     static_cast<int>(state.stage(place.stage).loops.size()) - 1, lengths);
    }
    FollowThreads(state, s, splits[0], lengths);
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, place.stage, place.loop));
    return state;
  }

  // Shares the reduction out over the threads of another split.
  static void FollowThreads(State& state, int s, int split, const std::vector<int64_t>& lengths) {
    const int loop = static_cast<int>(state.stage(s).op->axes().size());
    MustApply(state, std::make_shared<schedule::FollowSplitStep>(s, loop, split,
                                                                 static_cast<int>(lengths.size())));
    MustApply(state, std::make_shared<schedule::AnnotateStep>(s, loop + 1, Annotation::kThreadX));
  }

  // Threads, and elements of a vector where sampling chooses them (thread_shapes.h).
  static std::vector<int64_t> ThreadLengths(const RuleContext& context) {
    const int64_t warp = context.task.hardware.warp_size;
    if (!context.parameters.vary_thread_counts) return {warp};
    return {warp, 1};
  }

  static void SplitByThreads(State& state, int s, int loop, const std::vector<int64_t>& lengths) {
    MustApply(state, std::make_shared<schedule::SplitStep>(
                         s, loop, state.stage(s).loop(loop).extent, lengths, true));
    MustApply(state, std::make_shared<schedule::AnnotateStep>(s, loop + 1, Annotation::kThreadX));
  }

  // Blocks reduce a part of a row each, into a buffer; a second kernel reduces the parts, in the
  // reader's row where one is given.
  static State SplitRows(State state, int s, const Place* row,
                         const std::vector<int64_t>& lengths) {
    const int loop = static_cast<int>(state.stage(s).op->axes().size());
    // The number of parts is blank in the sketch (GenerateSketches).
    MustApply(state,
              std::make_shared<schedule::SplitStep>(s, loop, state.stage(s).loop(loop).extent,
                                                    std::vector<int64_t>{1}, false));
    MustApply(state, std::make_shared<schedule::RfactorStep>(s, loop, 0));
    SplitByThreads(state, s, loop + 1, lengths);
    if (row != nullptr)
      return ComputeInRow(std::move(state), s + 1, {row->stage + 1, row->loop}, lengths);
    SplitByThreads(state, s + 1, loop, lengths);
    return state;
  }

  // The loop of the reader that the reduction is computed in; none: at root.
  static std::optional<Place> FindPlace(const State& state, int s) {
    const std::vector<int> readers = state.Consumers(s);
    const std::optional<int> common_reader = CommonReader(state, readers);
    if (!common_reader) return std::nullopt;
    const int target = *common_reader;
    const dag::AccessAnalysis analysis(*state.dag());
    int common = analysis.num_common_outer_iterators(s, target);
    for (int reader : readers) {  // it must be done before any of them begins
      if (reader != target) common = std::min(common, state.attach(reader).loop + 1);
    }
    const bool tiled =
        analysis.needs_multi_level_tiling(target) &&
        (HasReduceLoop(state.stage(target)) || state.attach(target).kind != Attach::kRoot);
    if (common <= 0 || tiled) return std::nullopt;
    // Either it is untouched and splits its last loop now, or it has one split to follow.
    const size_t splits = SplitStepsOf(state, target).size();
    if (splits > 1 || (splits == 0 && HasReduceLoop(state.stage(target)))) return std::nullopt;
    return Place{target, common - 1};
  }
};

}  // namespace

bool HasFewLongRows(const RuleContext& context, const State& state, int s) {
  const int multiprocessors = context.task.device.multiprocessors;
  const StageView view(state, s);
  return context.parameters.reduction_splits && context.parameters.vary_thread_counts &&
         !view.NeedsMultiLevelTiling() && view.SpatialProduct() < multiprocessors * 2 &&
         view.ReduceProduct() >= context.parameters.least_split_row;
}

SketchRulePtr CrossThreadReductionRule() { return std::make_unique<CrossThreadReduction>(); }

}  // namespace kiln::search
