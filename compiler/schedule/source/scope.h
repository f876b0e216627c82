// The meanings of the names in a schedule that is source: stages, and loops of stages. They change
// from statement to statement.
//
// A stage that moves up because another one was inserted keeps its name. A loop that was split or
// fused is still known, so that errors can say what became of it and splits can be followed.
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
  // Knows the names of the stages (names.h), and no loops. The statements change `state`, which
  // must outlive this object.
  explicit SourceScope(const State& state);

  // Returns the present number of the stage. Errors list the stages.
  StatusOr<int> Stage(const SourceToken& name) const;
  // Returns the number of the loop among the loops of this stage. Errors say what became of the
  // loop, and list the stage's loops.
  StatusOr<int> Loop(const SourceToken& name, int stage) const;
  // Returns the SP step that split the loop of this name.
  StatusOr<int> SplitOf(const SourceToken& name) const;

  void BindStage(const SourceToken& name, int stage);
  void BindLoop(const SourceToken& name, int stage, int loop);
  // Tells that the step with this number splits the loop.
  void NoteSplit(int stage, int loop, int step);
  // Tells that a step has inserted a stage at `position` and has given `resets` (numbers after it)
  // fresh loops.
  void NoteInsertion(int position, std::span<const int> resets);
  // Tells that a step has moved the stage `from` to a smaller number.
  void NoteMove(int from, int to);
  // Tells that a step has given the stage fresh loops.
  void NoteFreshLoops(int stage) { ++stages_[order_[stage]].generation; }

 private:
  // A stage or a loop, which keeps its identity while numbers change.
  struct Thing {
    // Index into stages_.
    int stage = -1;
    // Generation of the stage's loops. -1: the stage itself.
    int generation = -1;
    // Index into Stage::iters.
    int32_t iter = -1;
    auto operator<=>(const Thing&) const = default;
    bool is_stage() const { return generation < 0; }
  };
  struct Known {
    // Present number of the stage.
    int number = -1;
    // Counts how often the stage was given fresh loops.
    int generation = 0;
  };

  // Gives the stages from `first` on their present numbers.
  void Number(int first);
  StatusOr<Thing> Find(const SourceToken& name, std::string_view what) const;
  Thing LoopThing(int stage, int loop) const;
  // Returns the names of a stage's loops, as "C_i, C_j". Loops without a name are described.
  std::string LoopsOf(int stage) const;
  std::string StageName(int stage) const;

  const State& state_;
  // Indexed by identity.
  std::vector<Known> stages_;
  // Identities by number.
  std::vector<int> order_;
  std::unordered_map<std::string, Thing> things_;
  // Numbers of steps.
  std::map<Thing, int> splits_;
};

}  // namespace kiln::schedule
