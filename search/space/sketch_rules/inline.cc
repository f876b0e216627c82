#include "compiler/ir/traverse.h"
#include "compiler/schedule/inlining.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// On a GPU everything that can be computed where it is read is: recomputing costs less than a
// kernel. But not what would grow without bounds.
bool ShouldInline(const RuleContext& context, const State& state, int s) {
  const StageView view(state, s);
  if (state.stage(s).is_placeholder() || view.Output() || HasReduceLoop(state.stage(s)) ||
      IsReorderedCopy(state, s))
    return false;
  if (!context.task.target.is_gpu() && !view.StrictlyInlineable()) return false;
  return schedule::CheckInlinedSize(state, s).ok();
}

class AlwaysInline final : public SketchRule {
 public:
  std::string_view name() const override { return "always inline"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    return ShouldInline(context, state, s) ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kSkip;
  }
  NextStates Apply(const RuleContext& context, State state, int s) const override {
    NextStates kept;
    if (const auto found = WindowReader(context, state, s)) {
      const int reader = *found;
      kept = One(state, s - 1);
      const auto axes = static_cast<int>(state.stage(reader).op->axes().size());
      MustApply(kept[0].first,
                std::make_shared<schedule::ComputeAtStep>(s, reader, axes * kLevelsOfThreads - 1));
    }
    MustApply(state, std::make_shared<schedule::ComputeInlineStep>(s));
    NextStates all = One(std::move(state), s - 1);
    if (!kept.empty()) all.push_back(std::move(kept[0]));
    return all;
  }

 private:
  static constexpr int kLevelsOfThreads = 3;  // blocks, vthreads, threads

  // The tiled stage whose windows overlap on s, so that a thread would compute an element for each.
  static std::optional<int> WindowReader(const RuleContext& context, const State& state, int s) {
    const std::vector<int>& readers = state.dag()->consumers(s);
    if (readers.size() != 1 || state.attach(readers[0]).kind != schedule::Attach::kIter ||
        !TilesColumns(context, state, readers[0]) || !IsTiled(state.stage(readers[0])) ||
        HasCrossThreadReduction(state, readers[0]))
      return std::nullopt;
    return ReadsWindows(state, s, readers[0]) ? std::optional(readers[0]) : std::nullopt;
  }

  // Does an index of the read move with a result and with a term?
  static bool ReadsWindows(const State& state, int s, int reader) {
    const dag::Operator& op = *state.stage(reader).op;
    const auto spatial = static_cast<int32_t>(op.axes().size());
    for (const dag::Access& access : op.properties().reads) {
      if (state.dag()->node(reader).inputs[access.slot].op != s) continue;
      for (ir::Expr index : access.load->args()) {
        bool result = false, term = false;
        ir::Visit(index, [&](ir::Expr e) {
          if (e->op == ir::Op::kVar) (e->id < spatial ? result : term) = true;
        });
        if (result && term) return true;
      }
    }
    return false;
  }
};

// The input tile of Winograd's method: computed once for the unrolled loops of its reader, which
// read every element many times.
class SpecialComputeLocation final : public SketchRule {
 public:
  std::string_view name() const override { return "special compute location"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (state.Producers(s).empty() || !ShouldInline(context, state, s)) return RuleAnswer::kSkip;
    return Location(state, s).second >= 0 ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kSkip;
  }
  NextStates Apply(const RuleContext&, State state, int s) const override {
    const auto [reader, loop] = Location(state, s);
    MustApply(state, std::make_shared<schedule::ComputeAtStep>(s, reader, loop));
    return One(std::move(state), s - 1);
  }

 private:
  // The reader's last loop before its unrolled ones; {-1, -1} when the reader is not of that kind.
  static std::pair<int, int> Location(const State& state, int s) {
    const std::vector<int> consumers = state.Consumers(s);
    if (consumers.size() != 1) return {-1, -1};
    const schedule::Stage& reader = state.stage(consumers[0]);
    if (reader.op->attrs().simplify_const_tensor_indices.empty()) return {-1, -1};
    for (int loop = 1; loop < static_cast<int>(reader.loops.size()); ++loop) {
      if (reader.annotation(loop) == schedule::Annotation::kUnroll) return {consumers[0], loop - 1};
    }
    return {-1, -1};
  }
};

}  // namespace

SketchRulePtr AlwaysInlineRule() { return std::make_unique<AlwaysInline>(); }
SketchRulePtr SpecialComputeLocationRule() { return std::make_unique<SpecialComputeLocation>(); }

}  // namespace kiln::search
