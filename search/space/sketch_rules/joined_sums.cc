// Products with a common factor that one operator reads, as the two of silu(x W1) * (x W3). One
// stage computes all of their sums: a tile of x is fetched once for all, and their results stay in
// registers until the operator has read them.
#include <algorithm>
#include <optional>

#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

bool HaveSameExtents(const std::vector<dag::Axis>& a, const std::vector<dag::Axis>& b) {
  return std::ranges::equal(a, b, {}, &dag::Axis::extent, &dag::Axis::extent);
}

// Do the loads, each of its own stage, read the same tensor at the same places?
bool ReadTheSame(const State& state, int a, ir::Expr load_a, int b, ir::Expr load_b) {
  if (state.dag()->node(a).inputs[load_a->id] != state.dag()->node(b).inputs[load_b->id] ||
      load_a->num_args != load_b->num_args)
    return false;
  for (size_t d = 0; d < load_a->num_args; ++d) {
    const ir::Expr index = load_a->arg(d);
    // Elements that choose places are inputs, which the stages number for themselves.
    if (ir::HasLoad(index) || index->hash != load_b->arg(d)->hash) return false;
  }
  return true;
}

class JoinedSums final : public SketchRule {
 public:
  std::string_view name() const override { return "joined sums"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (!context.parameters.joined_sums) return RuleAnswer::kSkip;
    const std::vector<int> stages = StagesFor(context, state, s);
    if (stages.empty()) return RuleAnswer::kSkip;
    State joined = state;
    const bool applies =
        std::ranges::all_of(StepsFor(state, stages),
                            [&](const schedule::StepPtr& step) { return joined.Apply(step).ok(); });
    return applies ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }

  // The stages of the products copy from their sums now, and are inlined next.
  NextStates Apply(const RuleContext& context, State state, int s) const override {
    for (const schedule::StepPtr& step : StepsFor(state, StagesFor(context, state, s)))
      MustApply(state, step);
    return One(std::move(state), s + 1);
  }

 private:
  // Returns the products to join, ascending. Stage s is the last one. None: there is no other product.
  static std::vector<int> StagesFor(const RuleContext& context, const State& state, int s) {
    const std::optional<MatrixProduct> product = ProductOf(state, s);
    if (!product || !HasMatrixUnit(context.task.target, *product->unit)) return {};
    const std::vector<int> readers = state.Consumers(s);
    if (readers.size() != 1 || IsTiled(state.stage(readers[0])) ||
        HasReduceLoop(state.stage(readers[0])))
      return {};
    const dag::AccessAnalysis analysis(*state.dag());
    if (!analysis.elementwise_on_all_paths(s, readers[0])) return {};
    std::vector<int> stages;
    for (int other = 0; other < s; ++other) {
      if (AreJoined(state, s, *product, other) &&
          analysis.elementwise_on_all_paths(other, readers[0]))
        stages.push_back(other);
    }
    if (!stages.empty()) stages.push_back(s);
    return stages;
  }

  // Moves what stands between the products and is no part of them in front of them, and joins them.
  static std::vector<schedule::StepPtr> StepsFor(const State& state,
                                                 const std::vector<int>& stages) {
    const int first = stages[0];
    const std::vector<int> moved = MovedStages(state, stages);
    std::vector<schedule::StepPtr> steps;
    for (size_t i = 0; i < moved.size(); ++i) {
      const int to = first + static_cast<int>(i);
      steps.push_back(std::make_shared<schedule::MoveStageStep>(moved[i], to));
    }
    std::vector<int> joined;
    for (const int s : stages) {
      const auto behind = std::ranges::count_if(moved, [&](int other) { return other > s; });
      joined.push_back(s + static_cast<int>(behind));
    }
    const int position = joined[0];
    joined.erase(joined.begin());
    steps.push_back(
        std::make_shared<schedule::CacheWriteStep>(position, "local", std::move(joined)));
    return steps;
  }

  // The inputs behind the first product, which keep their order, and what later products read of
  // other stages there. Ascending.
  static std::vector<int> MovedStages(const State& state, const std::vector<int>& stages) {
    const dag::Dag& dag = *state.dag();
    const int first = stages[0], last = stages.back();
    std::vector<bool> is_needed(static_cast<size_t>(last - first) + 1, false);
    std::vector<int> moved;
    for (int s = last; s > first; --s) {
      const bool is_product = std::ranges::find(stages, s) != stages.end();
      const bool moves = dag.op(s).is_placeholder() || is_needed[static_cast<size_t>(s - first)];
      if (moves && !is_product) moved.push_back(s);
      if (!is_product && !moves) continue;
      for (const dag::Tensor& input : dag.node(s).inputs) {
        if (input.op > first) is_needed[static_cast<size_t>(input.op - first)] = true;
      }
    }
    std::ranges::reverse(moved);
    return moved;
  }

  static std::optional<MatrixProduct> ProductOf(const State& state, int s) {
    const schedule::Stage& stage = state.stage(s);
    if (stage.is_placeholder() || stage.op->num_outputs() != 1 || stage.is_partial_reduction ||
        IsTiled(stage) || StageView(state, s).IsCacheWriteStage())
      return std::nullopt;
    return MatrixProductOf(*stage.op);
  }

  static bool AreJoined(const State& state, int s, const MatrixProduct& product, int other) {
    const std::optional<MatrixProduct> second = ProductOf(state, other);
    const dag::Operator &a = *state.stage(s).op, &b = *state.stage(other).op;
    return second && AreAlike(product, *second) && HaveSameExtents(a.axes(), b.axes()) &&
           HaveSameExtents(a.reduce_axes(), b.reduce_axes()) &&
           ReadTheSame(state, s, product.first, other, second->first);
  }
};

}  // namespace

SketchRulePtr JoinedSumsRule() { return std::make_unique<JoinedSums>(); }

}  // namespace kiln::search
