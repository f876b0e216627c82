// Tells which stages are computed inside which loops, in which memory their results are, and which
// loops therefore contain barriers.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// A view of the state and its bounds, which must outlive this object and keep their loops.
// Immutable.
class Attachments {
 public:
  Attachments(const schedule::State& state, const Bounds& bounds, bool gpu);

  // Return the stages attached to any loop of s, and those attached to loop i of s, ascending.
  const std::vector<int>& Inside(int s) const { return attached_[static_cast<size_t>(s)]; }
  std::vector<int> At(int s, int i) const;

  // Returns true if s is in the shared memory of a block.
  bool IsShared(int s) const;
  // Returns true if s is in the shared memory of all blocks of a cluster, a part in each.
  bool IsOfCluster(int s) const { return IsShared(s) && OwnClusterLoop(s) >= 0; }
  bool HasClusterLoop(int s) const;
  // Returns why the stage cannot be divided among the blocks of a cluster as it asks for. Empty: it
  // can.
  std::string_view ClusterFault(int s) const;

  // Returns the outermost loop that guards may stand around. It is inside the loops that contain a
  // barrier, because all threads must reach the barrier. -1: guards may stand around the whole
  // stage.
  int OutermostGuardLevel(int s) const;

  // Returns true if loop i of stage s, or one around it, runs its body more than once in a thread.
  bool RunsRepeatedly(int s, int i) const;

  // Returns true if reduction loops of s are bound to threads.
  bool ReducesOverThreads(int s) const;

  bool Reads(int reader, int s) const;

 private:
  int OwnClusterLoop(int s) const;
  bool HasBarrier(int s) const;

  const schedule::State& state_;
  const Bounds& bounds_;
  const bool gpu_;
  // Indexed by stage.
  std::vector<std::vector<int>> attached_;
};

}  // namespace kiln::lower
