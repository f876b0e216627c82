// The names that stages and loops have in a schedule that is source: identifiers of a Python-like
// text, each of one thing at a time.
//
//   stage   its operator's name with "_" for what no identifier may have: "T_relu", "data_shared"
//   axis    the stage and the axis: "T_relu_ax0"
//   split   the loop and the piece's number: "T_relu_ax0_0"
//   fused   the stage and the loops: "T_relu_ax0_0_ax1_0"
// A name that is taken gets a number: "T_add_1". Taken are the names of all loops that there were:
// a text may speak of a loop that was split. Only where a step gives a stage fresh loops, the names
// of those that it had are free again, so that an axis keeps its name.
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
  // Names the stages. Their loops have no names yet: NameAxes. `reserved`: words that are no names
  // either, beside those of Python.
  explicit SourceNames(const State& state, std::span<const std::string_view> reserved = {});

  // Python's words, and "s".
  static bool IsReserved(std::string_view word);

  const std::string& Stage(int stage) const { return stages_[stage].name; }
  // Of an iterator (an index into Stage::iters) that was named.
  const std::string& Loop(int stage, int32_t iter) const { return stages_[stage].iters[iter].name; }

  // The loops of a stage that has all its axes and nothing else. Returns them as a list: "C_i, C_j".
  std::string NameAxes(const schedule::Stage& stage, int number);
  // What a step has made: `pieces` loops from `loop` on, of iterator `parent`; the one fused out of
  // `parents`.
  std::string NamePieces(const schedule::Stage& stage, int number, int32_t parent, int loop,
                         int pieces);
  std::string NameFused(const schedule::Stage& stage, int number,
                        const std::vector<int32_t>& parents, int loop);
  // A step has put a stage at `position`: those from there on have moved up.
  void InsertStage(const schedule::Stage& stage, int position);
  // A step has given the stage fresh loops; `before` is what it was.
  void DropLoops(const schedule::Stage& before, int number);

 private:
  struct LoopNames {
    std::string name;
    std::string part;  // of it, behind the stage's: what names of pieces begin with
  };
  struct StageNames {
    std::string name;
    std::vector<LoopNames> iters;
  };

  const std::string& Give(int stage, int32_t iter, std::string part);
  std::string Unique(std::string name);

  std::vector<StageNames> stages_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> numbers_;  // the last one given, by name
};

}  // namespace kiln::schedule
