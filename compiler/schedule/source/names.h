// The names that stages and loops have in a schedule that is source: identifiers of a Python-like
// text, each of which names one stage or loop at a time.
//
//   stage   its operator's name with "_" for characters that no identifier may have: "T_relu"
//   axis    the stage and the axis: "T_relu_ax0"
//   split   the loop and the piece's number: "T_relu_ax0_0"
//   fused   the stage and the loops: "T_relu_ax0_0_ax1_0"
// A name that is taken gets a number: "T_add_1". The names of all loops that ever existed are
// taken, because a text may refer to a loop that was split. If a step gives a stage fresh loops,
// the names of its former loops are free again, so that an axis keeps its name.
//
// Follows a schedule step by step, since a name depends on those given before. A value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

class SourceNames {
 public:
  // Names the stages. NameAxes names their loops later. `reserved` are words that may not be names,
  // in addition to those of Python.
  explicit SourceNames(const State& state, std::span<const std::string_view> reserved = {});

  // True for Python's words, and for "s".
  static bool IsReserved(std::string_view word);

  const std::string& Stage(int stage) const { return stages_[stage].name; }
  // Returns the name of an iterator (an index into Stage::iters) that was named.
  const std::string& Loop(int stage, int32_t iter) const { return stages_[stage].iters[iter].name; }

  // Names the loops of a stage whose loops are exactly its axes. Returns them as a list: "C_i,
  // C_j".
  std::string NameAxes(const schedule::Stage& stage, int number);
  // Name the loops that a step has made: the `pieces` loops from `loop` on, of iterator `parent`,
  // or the loop that was fused out of `parents`.
  std::string NamePieces(const schedule::Stage& stage, int number, int32_t parent, int loop,
                         int pieces);
  std::string NameFused(const schedule::Stage& stage, int number,
                        const std::vector<int32_t>& parents, int loop);
  // Tells that a step has inserted a stage at `position`. The stages from there on have moved up.
  void InsertStage(const schedule::Stage& stage, int position);
  // Tells that a step has moved the stage `from` to a smaller number.
  void MoveStage(int from, int to);
  // Tells that a step has given the stage fresh loops. `before` is the stage before the step.
  void DropLoops(const schedule::Stage& before, int number);

 private:
  struct LoopNames {
    std::string name;
    // The part of the name behind the stage's name. Names of pieces begin with it.
    std::string part;
  };
  struct StageNames {
    std::string name;
    std::vector<LoopNames> iters;
  };

  const std::string& Give(int stage, int32_t iter, std::string part);
  std::string Unique(std::string name);

  std::vector<StageNames> stages_;
  std::unordered_set<std::string> taken_;
  // The last number that was given to each name.
  std::unordered_map<std::string, int> numbers_;
};

}  // namespace kiln::schedule
