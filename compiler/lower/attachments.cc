#include "compiler/lower/attachments.h"

#include <algorithm>

#include "compiler/lower/launch.h"

namespace kiln::lower {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;

Attachments::Attachments(const State& state, const Bounds& bounds, bool gpu)
    : state_(state), bounds_(bounds), gpu_(gpu), attached_(state.num_stages()) {
  for (int s = 0; s < state_.num_stages(); ++s) {
    if (state_.attach(s).kind == Attach::kIter) attached_[state_.attach(s).stage].push_back(s);
  }
}

std::vector<int> Attachments::At(int s, int i) const {
  std::vector<int> here;
  for (int a : Inside(s)) {
    if (state_.attach(a).loop == i) here.push_back(a);
  }
  return here;
}

bool Attachments::IsShared(int s) const {
  if (!gpu_ || state_.attach(s).kind != Attach::kIter) return false;
  if (state_.stage(s).asks_for_shared()) return true;
  for (Attach at = state_.attach(s); at.kind == Attach::kIter; at = state_.attach(at.stage)) {
    for (int l = 0; l <= at.loop; ++l) {
      if (IsThread(state_.stage(at.stage).annotation(l))) return false;
    }
  }
  return true;
}

// Returns the loop of s over the blocks of a cluster. -1: there is none, or the loop belongs to
// another stage.
int Attachments::OwnClusterLoop(int s) const {
  for (int l = 0; l < static_cast<int>(state_.stage(s).loops.size()); ++l) {
    const int32_t var = bounds_.stages[s].loop_vars[l];
    if (state_.stage(s).annotation(l) != Annotation::kCluster || var < 0) continue;
    return bounds_.owners[var].stage == s && bounds_.owners[var].loop == l ? l : -1;
  }
  return -1;
}

bool Attachments::HasClusterLoop(int s) const {
  const Stage& stage = state_.stage(s);
  return std::ranges::any_of(stage.loops, [](const schedule::LoopIter& loop) {
    return loop.annotation == Annotation::kCluster;
  });
}

// A stage that the blocks of a cluster compute for others is divided among them along the first
// axis: each block has one element of that axis.
std::string_view Attachments::ClusterFault(int s) const {
  if (state_.attach(s).kind != Attach::kIter) return {};
  const Stage& stage = state_.stage(s);
  const StageBounds& bounds = bounds_.stages[s];
  const int loop = OwnClusterLoop(s);
  if (loop < 0) {
    for (int l = 0; l < static_cast<int>(stage.loops.size()); ++l) {
      if (stage.annotation(l) == Annotation::kCluster && bounds.loop_vars[l] >= 0)
        return "the blocks of a cluster share its loop out, and one around it already";
    }
    return {};
  }
  if (!IsShared(s))
    return "the blocks of a cluster share its loop out, but each thread computes it for itself";
  if (stage.loops[loop].iter != 0 || (!stage.layout.empty() && stage.layout[0] != 0)) {
    return "the blocks of a cluster share another loop out than its first axis, not split and the "
           "outermost dimension";
  }
  if (!bounds.region_min[0].is_constant())
    return "the blocks of a cluster share its first axis out, but not all of it is read";
  return {};
}

int Attachments::OutermostGuardLevel(int s) const {
  const int innermost = static_cast<int>(state_.stage(s).loops.size()) - 1;
  int level = -1;
  if (ReducesOverThreads(s)) return innermost;
  for (int a : Inside(s)) {
    if (IsShared(a) || HasBarrier(a)) level = std::max(level, state_.attach(a).loop + 1);
  }
  return std::min(level, innermost);
}

bool Attachments::ReducesOverThreads(int s) const {
  const Stage& stage = state_.stage(s);
  for (int l = 0; gpu_ && l < static_cast<int>(stage.loops.size()); ++l) {
    if (IsThread(stage.annotation(l)) && stage.loop(l).kind == IterKind::kReduce) return true;
  }
  return false;
}

// Returns true if a barrier is emitted inside the nest of s.
bool Attachments::HasBarrier(int s) const {
  return ReducesOverThreads(s) ||
         std::ranges::any_of(Inside(s), [&](int a) { return IsShared(a) || HasBarrier(a); });
}

bool Attachments::RunsRepeatedly(int s, int i) const {
  for (int stage = s, loop = i;;) {
    for (int l = 0; l <= loop; ++l) {
      const bool bound = schedule::IsBound(state_.stage(stage).annotation(l));
      if (!bound && bounds_.stages[stage].loop_vars[l] >= 0) return true;
    }
    const Attach& at = state_.attach(stage);
    if (at.kind != Attach::kIter) return false;
    stage = at.stage;
    loop = at.loop;
  }
}

bool Attachments::Reads(int reader, int s) const {
  const std::vector<int> producers = state_.Producers(reader);
  return std::ranges::find(producers, s) != producers.end();
}

}  // namespace kiln::lower
