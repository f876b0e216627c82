// Prints a schedule as primitives, a step at a time: what PrintPrimitives (print.h) is made of. How
// each kind of step reads is in <kind>.cc (kinds.h), or in the dialect of somebody else.
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

// What is printed: of a step, and of a stage whose loops are its axes and get these names. Both add
// lines.
struct SourceDialect {
  void (*step)(const Step& step, SourcePrinter& out);
  void (*axes)(const Stage& stage, std::string_view name, std::string_view loops,
               SourcePrinter& out);
  std::span<const std::string_view> reserved = {};  // words that stages and loops may not have
};
// That of schedules as source.
extern const SourceDialect kKilnDialect;

class SourcePrinter {
 public:
  // Begins with the loops of all stages.
  explicit SourcePrinter(const dag::DagPtr& dag, const SourceDialect& dialect = kKilnDialect);
  // Applies the step, which must apply, and prints it.
  void Add(const StepPtr& step);
  std::string Finish() && { return std::move(text_); }

  // ---- for the kinds of steps; stages and loops are those of `before`
  const State& before() const { return before_; }
  const State& after() const { return after_; }
  const std::string& Stage(int stage) const { return names_.Stage(stage); }
  const std::string& Loop(int stage, int loop) const;
  std::string Loops(int stage, const std::vector<int>& loops) const;
  // The name of the loop that an earlier step, an SP, has split.
  const std::string& SplitBy(int step) const { return split_by_.at(step); }

  // Names for what the step makes, as lists: the `pieces` of a loop, and the loop fused out of
  // others.
  std::string Pieces(int stage, int loop, int pieces);
  std::string Fused(int stage, const std::vector<int>& loops);
  // The stage that the step puts at `position`. Its axes are printed behind the step; those of
  // `reset`, a number after the step, which has fresh loops, behind them.
  const std::string& NewStage(int position, int reset = -1);
  // The step has given others than these operators to some stages: their axes are printed behind it.
  void FreshLoops();

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

 private:
  void DeclareAxes(int stage);

  const SourceDialect& dialect_;
  // One step apart: a step is printed from both. Cheaper than a copy for each step, but where the
  // step makes a DAG.
  State before_, after_;
  SourceNames names_;
  std::unordered_map<int, std::string> split_by_;  // by step
  std::vector<int> fresh_;                         // stages whose axes are to be declared
  std::string text_;
};

}  // namespace kiln::schedule
