// Prints a schedule as primitives, a step at a time. PrintPrimitives (print.h) uses it. <kind>.cc
// (kinds.h) or another dialect has the form of each kind of step.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/source/names.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

class SourcePrinter;

// Functions that print a step, and a stage whose loops are its axes and get these names. Both add
// lines.
struct SourceDialect {
  void (*step)(const Step& step, SourcePrinter& out);
  void (*axes)(const Stage& stage, std::string_view name, std::string_view loops,
               SourcePrinter& out);
  // Words that may not be names of stages and loops.
  std::span<const std::string_view> reserved = {};
};
// The dialect of schedules as source.
extern const SourceDialect kKilnDialect;

class SourcePrinter {
 public:
  // Begins with the loops of all stages.
  explicit SourcePrinter(const dag::DagPtr& dag, const SourceDialect& dialect = kKilnDialect);
  // Applies the step, which must apply, and prints it.
  void Add(const StepPtr& step);
  std::string Finish() && { return std::move(text_); }

  // ---- for the kinds of steps. Stages and loops are those of `before`.
  const State& before() const { return before_; }
  const State& after() const { return after_; }
  const std::string& Stage(int stage) const { return names_.Stage(stage); }
  const std::string& Loop(int stage, int loop) const;
  std::string Loops(int stage, const std::vector<int>& loops) const;
  // Returns the name of the loop that an earlier SP step has split.
  const std::string& SplitBy(int step) const { return split_by_.at(step); }

  // Return names of the loops that the step makes, as lists: the `pieces` of a loop, and the loop
  // fused out of others.
  std::string Pieces(int stage, int loop, int pieces);
  std::string Fused(int stage, const std::vector<int>& loops);
  // Returns the name of the stage that the step inserts at `position`. Its axes are printed behind
  // the step. `resets` are the numbers after the step of stages with fresh loops, whose axes are
  // printed last.
  const std::string& NewStage(int position, const std::vector<int>& resets = {});
  // Tells that the step has moved the stage `from` to a smaller number.
  void MoveStage(int from, int to) { names_.MoveStage(from, to); }
  // Tells that the step has given some stages other operators. Their axes are printed behind the
  // step.
  void FreshLoops();

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

 private:
  void DeclareAxes(int stage);

  const SourceDialect& dialect_;
  // The states before and after the step, because a step is printed from both. Two states are
  // cheaper than a copy for each step, except for a step that makes a DAG.
  State before_, after_;
  SourceNames names_;
  // Indexed by step.
  std::unordered_map<int, std::string> split_by_;
  // Stages whose axes are to be declared.
  std::vector<int> fresh_;
  std::string text_;
};

}  // namespace kiln::schedule
