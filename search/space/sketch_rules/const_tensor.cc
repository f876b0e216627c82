#include <algorithm>

#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Stage;
using schedule::State;

// A tiny reduction against constant matrices: its named axes are unrolled, the others tiled in two.
class SimplifyConstTensor final : public SketchRule {
 public:
  std::string_view name() const override { return "simplify computation with constant tensors"; }
  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    return state.stage(s).op->attrs().simplify_const_tensor_indices.empty()
               ? RuleAnswer::kSkip
               : RuleAnswer::kApplyAndSkipRest;
  }
  NextStates Apply(const RuleContext&, State state, int s) const override {
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

}  // namespace

SketchRulePtr SimplifyConstTensorRule() { return std::make_unique<SimplifyConstTensor>(); }

}  // namespace kiln::search
