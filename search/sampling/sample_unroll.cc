#include "search/sampling/sample_unroll.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Stage;
using schedule::State;

// Unrolls the axes that the operator wants unrolled, in the innermost tile.
Status UnrollNamed(State& state, int s) {
  const std::vector<std::string>& names = state.stage(s).op->attrs().always_unroll_inner;
  if (names.empty()) return OkStatus();
  const Stage stage = state.stage(s);
  std::vector<std::string> seen;
  for (int loop = static_cast<int>(stage.loops.size()) - 1; loop >= 0; --loop) {
    const std::vector<int> axes = schedule::AxesOf(stage, stage.loops[loop].iter);
    if (axes.size() != 1) break;
    const int spatial = static_cast<int>(stage.op->axes().size());
    const std::string& axis = axes[0] < spatial ? stage.op->axes()[axes[0]].name
                                                : stage.op->reduce_axes()[axes[0] - spatial].name;
    // The next tile level begins.
    if (std::find(seen.begin(), seen.end(), axis) != seen.end()) break;
    seen.push_back(axis);
    if (std::find(names.begin(), names.end(), axis) == names.end()) continue;
    if (stage.annotation(loop) != Annotation::kNone) continue;
    KILN_RETURN_IF_ERROR(
        state.Apply(std::make_shared<schedule::AnnotateStep>(s, loop, Annotation::kUnroll)));
  }
  return OkStatus();
}

}  // namespace

Status AnnotateUnroll(State& state, absl::FunctionRef<int32_t(int, const HintChoice&)> choose) {
  // Unrolling axes does not change which stages have a use for a hint.
  std::vector<std::vector<int>> stages;
  for (const HintChoice& choice : HintChoices())
    stages.push_back(ir::RowOf(choice.hint).is_gpu_only ? std::vector<int>()
                                                        : choice.stages(state));
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind == schedule::Attach::kInlined)
      continue;
    KILN_RETURN_IF_ERROR(UnrollNamed(state, s));
    for (size_t i = 0; i < stages.size(); ++i) {
      if (!std::ranges::binary_search(stages[i], s)) continue;
      const HintChoice& choice = HintChoices()[i];
      KILN_RETURN_IF_ERROR(state.Apply(schedule::HintStep(s, choice.hint, choose(s, choice))));
    }
  }
  return OkStatus();
}

}  // namespace kiln::search
