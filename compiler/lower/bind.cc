#include "compiler/lower/bind.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler/schedule/steps/steps.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::State;

constexpr int64_t kThreads = 256;

bool HasBoundLoop(const State& state, int s) {
  const schedule::Stage& stage = state.stage(s);
  for (int l = 0; l < static_cast<int>(stage.loops.size()); ++l) {
    if (schedule::IsBound(stage.annotation(l))) return true;
  }
  for (int other = 0; other < state.num_stages(); ++other) {
    const Attach& at = state.attach(other);
    if (at.kind == Attach::kIter && at.stage == s && HasBoundLoop(state, other)) return true;
  }
  return false;
}

// Returns the leading spatial loops that may be fused and bound.
std::vector<int> BindableLoops(const State& state, int s) {
  const schedule::Stage& stage = state.stage(s);
  std::vector<int> loops;
  for (int l = 0; l < static_cast<int>(stage.loops.size()); ++l) {
    if (stage.loop(l).kind != schedule::IterKind::kSpatial ||
        stage.annotation(l) != Annotation::kNone)
      break;
    if (state.HasAttached(s, l)) break;
    loops.push_back(l);
  }
  return loops;
}

}  // namespace

StatusOr<State> BindUnbound(const State& original) {
  State state = original;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind != Attach::kRoot ||
        HasBoundLoop(state, s))
      continue;
    const std::vector<int> loops = BindableLoops(state, s);
    if (loops.empty()) continue;
    if (loops.size() > 1)
      KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::FuseStep>(s, loops)));
    const int64_t extent = state.stage(s).loop(0).extent;
    const int64_t threads = extent > 0 ? std::min(extent, kThreads) : kThreads;
    KILN_RETURN_IF_ERROR(state.Apply(
        std::make_shared<schedule::SplitStep>(s, 0, extent, std::vector<int64_t>{threads}, true)));
    KILN_RETURN_IF_ERROR(
        state.Apply(std::make_shared<schedule::AnnotateStep>(s, 0, Annotation::kBlockX)));
    KILN_RETURN_IF_ERROR(
        state.Apply(std::make_shared<schedule::AnnotateStep>(s, 1, Annotation::kThreadX)));
  }
  return state;
}

}  // namespace kiln::lower
