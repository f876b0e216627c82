// One statement of a schedule that is source, as its primitive reads it. It gives access to the
// arguments by their expected kinds, and receives the stages or loops that the results name.
//
// The first mistake sticks: later reads return zeros, and Make reports the mistake. Errors name
// line and column, the text that was found and what was expected.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/source/scope.h"
#include "compiler/schedule/source/syntax.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

// The stage or loops that the results of a statement name.
struct SourceResults {
  int stage = -1;
  // Loops of the stage after the step was applied.
  int first = 0, count = 0;
  // A stage that the step moves, and the number that it gets.
  int moved = -1, moved_to = -1;
  // A stage that the step inserts, instead of loops.
  int new_stage = -1;
  // For new_stage: the numbers after the step of stages that get fresh loops.
  std::vector<int> resets = {};
};

class SourceCall {
 public:
  // All arguments must outlive this object.
  SourceCall(const SourceStatement& statement, const SourceScope& scope, const State& state);

  const State& state() const { return state_; }
  // The stage of s[stage].
  int stage() const { return stage_; }

  // ---- arguments without a word, in order. `what` is for errors.
  int Stage(std::string_view what);
  int Loop(std::string_view what) { return Loop(what, stage_); }
  int Loop(std::string_view what, int stage);
  // Returns all remaining arguments.
  std::vector<int> Loops(std::string_view what);
  int64_t Int(std::string_view what, int64_t lowest, int64_t highest);
  // Returns all remaining arguments.
  std::vector<int> Ints(std::string_view what, int lowest, int highest);
  // Reads a list.
  std::vector<int> Stages(std::string_view what);
  std::string_view Text(std::string_view what);
  bool HasNext() const;
  // ---- arguments with a word. Call `Has` first.
  bool Has(std::string_view word) const;
  int64_t IntOf(std::string_view word, int64_t lowest, int64_t highest);
  // Also accepts a single integer.
  std::vector<int64_t> IntsOf(std::string_view word, int64_t lowest, int64_t highest);
  bool FlagOf(std::string_view word);
  // The argument is a loop. Returns the step that split it.
  int SplitOf(std::string_view word);
  // The argument is a list of loops.
  std::vector<int> SplitsOf(std::string_view word);

  // Sets the stage or loops that the results name.
  void ResultsAre(SourceResults results) { results_ = std::move(results); }
  const SourceResults& results() const { return results_; }

  // Notes that something else was expected at the word of the statement.
  void Fail(std::string_view expected);
  bool ok() const { return status_.ok(); }

  // Makes the step. Fails if an argument was wrong, arguments are left, or the results lack names.
  template <typename StepT, typename... Args>
  StatusOr<StepPtr> Make(Args&&... args) {
    KILN_RETURN_IF_ERROR(Finish());
    return StepPtr(std::make_shared<const StepT>(std::forward<Args>(args)...));
  }

 private:
  const SourceValue* Next(std::string_view what, SourceValue::Kind kind);
  const SourceValue* Of(std::string_view word, std::string_view what, SourceValue::Kind kind);
  int64_t Number(const SourceValue& value, std::string_view what, int64_t lowest, int64_t highest);
  template <typename T>
  T Take(StatusOr<T> found);
  void Note(const Status& status);
  Status Finish();

  const SourceStatement& statement_;
  const SourceScope& scope_;
  const State& state_;
  int stage_ = 0;
  size_t next_ = 0;
  // Flags of the arguments.
  std::vector<bool> taken_;
  SourceResults results_;
  Status status_;
};

}  // namespace kiln::schedule
