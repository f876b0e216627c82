#include <algorithm>
#include <optional>

#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/thread_shapes.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Attach;
using schedule::State;

// A tensor whose rows are read across the rows of what is stored, as in a transposition: either way
// a warp would touch a line of memory for each of its threads. A block reads a tile along its rows
// into shared memory, and stores it along the others.
class CopyTile final : public SketchRule {
 public:
  std::string_view name() const override { return "copy through shared memory"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    // All others are computed where they are read.
    const bool in_memory = state.stage(s).is_placeholder() || HasReduceLoop(state.stage(s));
    if (!context.parameters.copy_tiles || !in_memory) return RuleAnswer::kSkip;
    const std::optional<Place> place = PlaceOf(context, state, s);
    if (!place) return RuleAnswer::kSkip;
    return IsReorderedCopy(state, place->root) ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kApply;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    const Place place = *PlaceOf(context, state, s);
    const int root = place.root + 1;
    State next = state;
    MustApply(next, std::make_shared<schedule::CacheReadStep>(s, "shared",
                                                              std::vector<int>{place.reader}));
    // One tile length for each axis. Sampling chooses them together (thread_shapes.h).
    const auto axes = static_cast<int>(next.stage(root).op->axes().size());
    for (int axis = 0; axis < axes; ++axis) {
      MustApply(next, std::make_shared<schedule::SplitStep>(root, 2 * axis,
                                                            next.stage(root).loop(2 * axis).extent,
                                                            std::vector<int64_t>{0}, true));
    }
    std::vector<int> order;
    for (const int level : {0, 1}) {
      for (int axis = 0; axis < axes; ++axis) order.push_back(2 * axis + level);
    }
    MustApply(next, std::make_shared<schedule::ReorderStep>(root, order));
    MustApply(next, std::make_shared<schedule::ComputeAtStep>(s + 1, root, axes - 1));
    return {{std::move(next), s}};
  }

 private:
  // The stage whose loops are tiled, and the one that reads: the same, or inlined into it.
  struct Place {
    int root, reader;
  };

  static std::optional<Place> PlaceOf(const RuleContext& context, const State& state, int s) {
    const std::vector<int> roots = state.Consumers(s), readers = state.dag()->consumers(s);
    if (roots.size() != 1 || readers.size() != 1 ||
        state.stage(s).op->num_elements() < context.parameters.least_copied_elements)
      return std::nullopt;
    const int root = roots[0], reader = readers[0];
    if (state.attach(root).kind != Attach::kRoot || HasReduceLoop(state.stage(root)) ||
        IsTiled(state.stage(root)) || state.stage(root).op->num_outputs() != 1)
      return std::nullopt;
    if (reader != root && !dag::AccessAnalysis(*state.dag()).elementwise_match(reader, root))
      return std::nullopt;
    return ReadsAcrossRows(state, s, reader) ? std::optional(Place{root, reader}) : std::nullopt;
  }

  // Once, along another axis than the innermost one, which is another index.
  static bool ReadsAcrossRows(const State& state, int s, int reader) {
    const dag::Operator& op = *state.stage(reader).op;
    int innermost = static_cast<int>(op.axes().size()) - 1;
    while (innermost >= 0 && op.axes()[innermost].extent == 1) --innermost;
    int reads = 0;
    bool across = false;
    for (const dag::Access& access : op.properties().reads) {
      if (state.dag()->node(reader).inputs[access.slot].op != s) continue;
      ++reads;
      std::vector<std::optional<int>> order = SourceOrder(op, access.load);
      while (!order.empty() && IsUnit(state, s, order.size() - 1)) order.pop_back();
      across = !order.empty() && order.back().has_value() && order.back() != innermost &&
               std::ranges::find(order, std::optional(innermost)) != order.end();
    }
    return reads == 1 && across;
  }

  static bool IsUnit(const State& state, int s, size_t dimension) {
    return state.stage(s).op->shape()[dimension] == 1;
  }
};

}  // namespace

SketchRulePtr CopyTileRule() { return std::make_unique<CopyTile>(); }

}  // namespace kiln::search
