// Which stages are computed inside which loops, in which memory their results are, and which loops
// therefore have barriers in them.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// A view of the state and its bounds, which must outlive it and keep their loops. Immutable.
class Attachments {
 public:
  Attachments(const schedule::State& state, const Bounds& bounds, bool gpu);

  // The stages attached to any loop of s, ascending; to loop i of it.
  const std::vector<int>& Inside(int s) const { return attached_[static_cast<size_t>(s)]; }
  std::vector<int> At(int s, int i) const;

  // Is s in the shared memory of a block?
  bool IsShared(int s) const;
  // Is s in the shared memory of all blocks of a cluster, a part in each?
  bool IsOfCluster(int s) const { return IsShared(s) && OwnClusterLoop(s) >= 0; }
  bool HasClusterLoop(int s) const;
  // Why the blocks of a cluster cannot share the stage out as it asks for; empty: nothing is wrong.
  std::string_view ClusterFault(int s) const;

  // The outermost loop that guards may stand around. It is inside the loops that contain a barrier,
  // because all threads must reach the barrier. -1: guards may stand around the whole stage.
  int OutermostGuardLevel(int s) const;

  // Does loop i of stage s, or one around it, run its body more than once in a thread?
  bool RunsRepeatedly(int s, int i) const;

  // Are reduction loops of s bound to threads?
  bool ReducesOverThreads(int s) const;

  bool Reads(int reader, int s) const;

 private:
  int OwnClusterLoop(int s) const;
  bool HasBarrier(int s) const;

  const schedule::State& state_;
  const Bounds& bounds_;
  const bool gpu_;
  std::vector<std::vector<int>> attached_;  // [stage]
};

}  // namespace kiln::lower
