// One statement of a schedule that is source, as its primitive reads it: arguments by what they
// have to be, and what the results will name.
//
// The first mistake sticks: later reads return zeros, and Make reports it. Errors name line and
// column, what was found and what was expected.
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

// What a statement gives names to: one of these.
struct SourceResults {
  int stage = -1;
  int first = 0, count = 0;  // loops of the stage, once the step was applied
  int new_stage = -1;        // or the stage that the step puts there
  int reset = -1;            // with it: a stage (its number after the step) that gets fresh loops
};

class SourceCall {
 public:
  // All of them outlive it.
  SourceCall(const SourceStatement& statement, const SourceScope& scope, const State& state);

  const State& state() const { return state_; }
  // Of s[stage].
  int stage() const { return stage_; }

  // ---- the arguments without a word, in order; `what` is for errors
  int Stage(std::string_view what);
  int Loop(std::string_view what) { return Loop(what, stage_); }
  int Loop(std::string_view what, int stage);
  std::vector<int> Loops(std::string_view what);  // all that are left
  int64_t Int(std::string_view what, int64_t lowest, int64_t highest);
  std::vector<int> Ints(std::string_view what, int lowest, int highest);  // all that are left
  std::vector<int> Stages(std::string_view what);                         // a list
  std::string_view Text(std::string_view what);
  bool HasNext() const;
  // ---- those with a word; `Has` first
  bool Has(std::string_view word) const;
  int64_t IntOf(std::string_view word, int64_t lowest, int64_t highest);
  std::vector<int64_t> IntsOf(std::string_view word, int64_t lowest, int64_t highest);  // or one
  bool FlagOf(std::string_view word);
  int SplitOf(std::string_view word);                // a loop: the step that split it
  std::vector<int> SplitsOf(std::string_view word);  // a list of them

  // What the results name.
  void ResultsAre(SourceResults results) { results_ = results; }
  const SourceResults& results() const { return results_; }

  // Notes that something else was expected at the word of the statement.
  void Fail(std::string_view expected);
  bool ok() const { return status_.ok(); }

  // The step, when every argument was right, none is left, and the results have names.
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
  std::vector<bool> taken_;  // arguments
  SourceResults results_;
  Status status_;
};

}  // namespace kiln::schedule
