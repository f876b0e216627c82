#include "search/sketch.h"

#include <algorithm>

#include "compiler/dag/access_analysis.h"
#include "compiler/schedule/steps/steps.h"
#include "search/tiling.h"

namespace kiln::search {
namespace {

using dag::AccessAnalysis;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;
using schedule::StepPtr;
using Next = std::vector<std::pair<State, int>>;

// Facts about a stage in its state.
class StageView {
 public:
  StageView(const State& state, int s) : state_(state), s_(s), analysis_(*state.dag()) {}

  bool NeedsMultiLevelTiling() const { return analysis_.needs_multi_level_tiling(s_); }
  bool StrictlyInlineable() const { return analysis_.is_strictly_inlineable(s_); }
  bool Output() const { return state_.dag()->is_output(s_); }

  // The only consumer, when stage and consumer are matched element by element and not both reduce;
  // else -1.
  int ElementwiseConsumer() const {
    const std::vector<int> consumers = state_.Consumers(s_);
    if (consumers.size() != 1) return -1;
    const int consumer = consumers[0];
    if (!analysis_.elementwise_match(s_, consumer)) return -1;
    const bool both_reduce =
        HasReduceLoop(state_.stage(s_)) && HasReduceLoop(state_.stage(consumer));
    if (both_reduce || state_.stage(consumer).op->name().ends_with(".shared")) return -1;
    return consumer;
  }

  // Was this stage made by a cache write?
  bool IsCacheWriteStage() const {
    int s = s_;
    for (size_t i = state_.steps().size(); i-- > 0;) {
      const schedule::Step& step = *state_.steps()[i];
      const std::string_view tag = step.tag();
      if (tag == "CHW" && step.stage() == s) return true;
      if ((tag == "CHW" || tag == "CHR" || tag == "RF") && s > step.stage()) --s;
    }
    return false;
  }

  double SpatialProduct() const { return Product(state_.stage(s_).op->axes()); }
  double ReduceProduct() const { return Product(state_.stage(s_).op->reduce_axes()); }

 private:
  static double Product(const std::vector<dag::Axis>& axes) {
    double product = 1;
    for (const dag::Axis& axis : axes) product *= static_cast<double>(axis.extent);
    return product;
  }

  const State& state_;
  const int s_;
  AccessAnalysis analysis_;
};

class AlwaysInline final : public SketchRule {
 public:
  std::string_view name() const override { return "always inline"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    const StageView view(state, s);
    if (state.stage(s).is_placeholder() || view.Output() || HasReduceLoop(state.stage(s)))
      return RuleAnswer::kSkip;
    return view.StrictlyInlineable() ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kSkip;
  }
  Next Apply(const RuleContext&, const State& state, int s) const override {
    State next = state;
    MustApply(next, std::make_shared<schedule::ComputeInlineStep>(s));
    return {{std::move(next), s - 1}};
  }
};

// A tiny reduction against constant matrices: its named axes are unrolled, the others tiled in two.
class SimplifyConstTensor final : public SketchRule {
 public:
  std::string_view name() const override { return "simplify computation with constant tensors"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    return state.stage(s).op->attrs().simplify_const_tensor_indices.empty()
               ? RuleAnswer::kSkip
               : RuleAnswer::kApplyAndSkipRest;
  }
  Next Apply(const RuleContext&, const State& state, int s) const override {
    State next = state;
    const Stage fresh = state.stage(s);
    const std::vector<std::string>& unrolled = fresh.op->attrs().simplify_const_tensor_indices;
    std::vector<int> outer, inner, constant;
    int position = 0;
    for (int i = 0; i < static_cast<int>(fresh.loops.size()); ++i) {
      if (std::find(unrolled.begin(), unrolled.end(), schedule::LoopName(fresh, i)) !=
          unrolled.end()) {
        MustApply(next, std::make_shared<schedule::AnnotateStep>(s, position,
                                                                 schedule::Annotation::kUnroll));
        constant.push_back(position++);
        continue;
      }
      MustApply(next, std::make_shared<schedule::SplitStep>(s, position, fresh.loop(i).extent,
                                                            std::vector<int64_t>{0}, true));
      outer.push_back(position++);
      inner.push_back(position++);
    }
    std::vector<int> order = outer;
    order.insert(order.end(), inner.begin(), inner.end());
    order.insert(order.end(), constant.begin(), constant.end());
    MustApply(next, std::make_shared<schedule::ReorderStep>(s, order));
    return {{std::move(next), s - 1}};
  }
};

class AddRfactor final : public SketchRule {
 public:
  std::string_view name() const override { return "add rfactor"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const StageView view(state, s);
    if (!HasReduceLoop(state.stage(s)) || view.IsCacheWriteStage()) return RuleAnswer::kSkip;
    const dag::Combiner combiner = state.stage(s).op->combiner();
    if (combiner == dag::Combiner::kArgMax || combiner == dag::Combiner::kArgMin)
      return RuleAnswer::kSkip;
    const double spatial = view.SpatialProduct(), reduce = view.ReduceProduct();
    const double cores = context.task.hardware.num_cores;
    bool needed = reduce > 1 && reduce > cores;
    if (view.NeedsMultiLevelTiling()) needed = !(spatial > reduce || spatial > cores * 16);
    return needed ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }
  Next Apply(const RuleContext&, const State& state, int s) const override {
    State base = state;
    const int spatial = static_cast<int>(state.stage(s).op->axes().size());
    const int reduce = static_cast<int>(state.stage(s).op->reduce_axes().size());
    if (reduce > 1) {
      std::vector<int> loops(reduce);
      for (int i = 0; i < reduce; ++i) loops[i] = spatial + i;
      MustApply(base, std::make_shared<schedule::FuseStep>(s, loops));
    }
    // Length 1 now so that the state is concrete for rfactor; GenerateSketches blanks it.
    MustApply(base,
              std::make_shared<schedule::SplitStep>(s, spatial, base.stage(s).loop(spatial).extent,
                                                    std::vector<int64_t>{1}, true));
    Next next;
    for (int piece = 0; piece < 2; ++piece) {
      State variant = base;
      MustApply(variant, std::make_shared<schedule::RfactorStep>(s, spatial + piece, spatial));
      if (piece == 1) {
        // The factored axis innermost, to be vectorized.
        std::vector<int> order;
        for (int i = 0; i < static_cast<int>(variant.stage(s).loops.size()); ++i) {
          if (i != spatial) order.push_back(i);
        }
        order.push_back(spatial);
        MustApply(variant, std::make_shared<schedule::ReorderStep>(s, order));
      }
      next.emplace_back(std::move(variant), s - 1);
    }
    return next;
  }
};

class AddCacheWrite final : public SketchRule {
 public:
  std::string_view name() const override { return "add cache write"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    const StageView view(state, s);
    if (state.stage(s).is_placeholder() || !view.NeedsMultiLevelTiling()) return RuleAnswer::kSkip;
    return view.ElementwiseConsumer() < 0 ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }
  Next Apply(const RuleContext&, const State& state, int s) const override {
    State next = state;
    MustApply(next, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    return {{std::move(next), s}};
  }
};

class MultiLevelTilingWithFusion final : public SketchRule {
 public:
  std::string_view name() const override { return "multi-level tiling with fusion"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    const StageView view(state, s);
    if (state.stage(s).is_placeholder() || !view.NeedsMultiLevelTiling() ||
        view.ElementwiseConsumer() < 0) {
      return RuleAnswer::kSkip;
    }
    return view.IsCacheWriteStage() ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kApply;
  }
  Next Apply(const RuleContext& context, const State& state, int s) const override {
    const int consumer = StageView(state, s).ElementwiseConsumer();
    State tiled = state;
    const std::vector<int> steps = TileMultiLevel(tiled, s, context.parameters.cpu_tiling);
    Next next;
    for (int levels : {1, 2}) {
      if (context.parameters.cpu_tiling[levels - 1] != 'S') continue;
      State fused = tiled;
      FollowTiling(fused, consumer, steps, levels);
      const int loop = levels * static_cast<int>(steps.size()) - 1;
      MustApply(fused, std::make_shared<schedule::ComputeAtStep>(s, consumer, loop));
      next.emplace_back(std::move(fused), s - 1);
    }
    return next;
  }
};

class MultiLevelTiling final : public SketchRule {
 public:
  std::string_view name() const override { return "multi-level tiling"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    if (state.stage(s).is_placeholder()) return RuleAnswer::kSkip;
    return StageView(state, s).NeedsMultiLevelTiling() ? RuleAnswer::kApplyAndSkipRest
                                                       : RuleAnswer::kSkip;
  }
  Next Apply(const RuleContext& context, const State& state, int s) const override {
    State next = state;
    TileMultiLevel(next, s, context.parameters.cpu_tiling);
    return {{std::move(next), s - 1}};
  }
};

class SkipStage final : public SketchRule {
 public:
  std::string_view name() const override { return "skip stage"; }
  RuleAnswer Condition(const RuleContext&, const State&, int) const override {
    return RuleAnswer::kApply;
  }
  Next Apply(const RuleContext&, const State& state, int s) const override {
    return {{state, s - 1}};
  }
};

// The steps, with the length of every SP that directly precedes an RF blank.
std::vector<StepPtr> BlankRfactorSplits(std::vector<StepPtr> steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i]->tag() != "RF" || steps[i - 1]->tag() != "SP") continue;
    const auto& split = static_cast<const schedule::SplitStep&>(*steps[i - 1]);
    steps[i - 1] = std::make_shared<schedule::SplitStep>(
        split.stage_id, split.loop, split.extent, std::vector<int64_t>(split.lengths.size(), 0),
        split.inner_to_outer);
  }
  return steps;
}

}  // namespace

std::vector<std::unique_ptr<SketchRule>> CpuSketchRules() {
  std::vector<std::unique_ptr<SketchRule>> rules;
  rules.push_back(std::make_unique<AlwaysInline>());
  rules.push_back(std::make_unique<SimplifyConstTensor>());
  rules.push_back(std::make_unique<AddRfactor>());
  rules.push_back(std::make_unique<AddCacheWrite>());
  rules.push_back(std::make_unique<MultiLevelTilingWithFusion>());
  rules.push_back(std::make_unique<MultiLevelTiling>());
  rules.push_back(std::make_unique<SkipStage>());
  return rules;
}

std::vector<Sketch> GenerateSketches(const RuleContext& context,
                                     std::span<const std::unique_ptr<SketchRule>> rules) {
  const State initial(context.task.dag);
  Next now, next;
  now.emplace_back(initial, initial.num_stages() - 1);
  std::vector<Sketch> sketches;
  while (!now.empty()) {
    next.clear();
    for (const auto& [state, s] : now) {
      if (s < 0) {
        sketches.push_back({state, BlankRfactorSplits(state.steps())});
        continue;
      }
      for (const auto& rule : rules) {
        const RuleAnswer answer = rule->Condition(context, state, s);
        if (answer == RuleAnswer::kSkip) continue;
        for (auto& item : rule->Apply(context, state, s)) next.push_back(std::move(item));
        if (answer == RuleAnswer::kApplyAndSkipRest) break;
      }
    }
    now.swap(next);
  }
  return sketches;
}

}  // namespace kiln::search
