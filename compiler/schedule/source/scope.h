// What the names of a schedule that is source stand for, along its statements: stages, and loops of
// them.
//
// A stage that moves up because another one was inserted keeps its name. A loop that was split or
// fused is known further on, so that errors can say what became of it and splits can be followed.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/source/syntax.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

class SourceScope {
 public:
  // Knows the stages by their names (names.h), and no loops. `state` outlives it and is the one
  // that the statements change.
  explicit SourceScope(const State& state);

  // The number that the stage has now. Errors name what there is.
  StatusOr<int> Stage(const SourceToken& name) const;
  // The number of the loop among the loops of this stage. Errors say what became of it, and which
  // loops there are.
  StatusOr<int> Loop(const SourceToken& name, int stage) const;
  // The step that split the loop of this name: an SP.
  StatusOr<int> SplitOf(const SourceToken& name) const;

  void BindStage(const SourceToken& name, int stage);
  void BindLoop(const SourceToken& name, int stage, int loop);
  // A step with this number splits the loop.
  void NoteSplit(int stage, int loop, int step);
  // A step has put a stage at `position`; it has given `reset` (a number after it) fresh loops.
  void NoteInsertion(int position, int reset);
  // A step has given the stage fresh loops.
  void NoteFreshLoops(int stage) { ++stages_[order_[stage]].generation; }

 private:
  // What keeps its identity while numbers change.
  struct Thing {
    int stage = -1;       // index into kinds_of_stage
    int generation = -1;  // of the stage's loops; -1: the stage itself
    int32_t iter = -1;    // index into Stage::iters
    auto operator<=>(const Thing&) const = default;
    bool is_stage() const { return generation < 0; }
  };
  struct Known {
    int number = -1;     // of the stage, now
    int generation = 0;  // how often it was given fresh loops
  };

  StatusOr<Thing> Find(const SourceToken& name, std::string_view what) const;
  Thing LoopThing(int stage, int loop) const;
  // "C_i, C_j": the names of a stage's loops; of one without a name what it is.
  std::string LoopsOf(int stage) const;
  std::string StageName(int stage) const;

  const State& state_;
  std::vector<Known> stages_;  // by identity
  std::vector<int> order_;     // identities by number
  std::unordered_map<std::string, Thing> things_;
  std::map<Thing, int> splits_;  // steps
};

}  // namespace kiln::schedule
