#include "search/sample_unroll.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/steps/steps.h"
#include "search/tiling.h"

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
    if (std::find(seen.begin(), seen.end(), axis) != seen.end()) break;  // the next tile level
    seen.push_back(axis);
    if (std::find(names.begin(), names.end(), axis) == names.end()) continue;
    if (stage.annotation(loop) != Annotation::kNone) continue;
    KILN_RETURN_IF_ERROR(
        state.Apply(std::make_shared<schedule::AnnotateStep>(s, loop, Annotation::kUnroll)));
  }
  return OkStatus();
}

}  // namespace

std::span<const int> UnrollChoices(bool gpu) {
  static constexpr int kCpu[] = {0, 16, 64, 512};
  static constexpr int kGpu[] = {0, 16, 64, 512, 1024};
  return gpu ? std::span<const int>(kGpu) : std::span<const int>(kCpu);
}

Status AnnotateUnroll(State& state, absl::FunctionRef<int(int)> choose) {
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind == schedule::Attach::kInlined)
      continue;
    KILN_RETURN_IF_ERROR(UnrollNamed(state, s));
    if (!HasReduceLoop(state.stage(s))) continue;
    KILN_RETURN_IF_ERROR(state.Apply(UnrollStep(s, choose(s))));
  }
  return OkStatus();
}

schedule::StepPtr UnrollStep(int stage, int depth) {
  return std::make_shared<schedule::PragmaStep>(
      stage, 0, fmt::format("{}{}", schedule::kAutoUnrollPragma, depth));
}

std::optional<int> UnrollDepth(const schedule::Step& step) {
  return schedule::PragmaNumber(step, schedule::kAutoUnrollPragma);
}

}  // namespace kiln::search
