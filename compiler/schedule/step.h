// One schedule transformation. Each kind is one file in steps/ and one row of the table in
// steps/kinds.cc: that is all it takes to add one.
//
// Steps are immutable values. Stage and loop numbers refer to the numbering at the time the step is
// applied (facts §2.2).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

class Step {
 public:
  virtual ~Step() = default;
  virtual std::string_view tag() const = 0;   // "SP", ...
  virtual std::string_view name() const = 0;  // "split", ...: the word for people
  virtual int stage() const = 0;              // the stage it works on
  // Called by State::Apply, which has checked that the stage exists. Checks everything first and
  // edits then, so that a refusal leaves the state as it was. The step has not been appended yet:
  // state.steps().size() is its own number. The refusal is the bare reason; State::Apply says which
  // step it was.
  virtual Status ApplyTo(State& state) const = 0;
  // The JSON array of facts §2.2, one line, ", " between items.
  virtual std::string ToJson() const = 0;
  // Lines of primitives; `before` is the state the step is applied to, `after` the result.
  virtual std::string ToPrimitives(const State& before, const State& after) const = 0;
  virtual uint64_t Hash() const = 0;
};

// "[["SP", 2, 0, 512, [32], 1], ...]". The error names the step number, what was found and what was
// expected.
StatusOr<std::vector<StepPtr>> ParseSteps(std::string_view json);
// Why the text is no list of steps; OK: it is one. What the steps do is not known here.
Status CheckStepsText(std::string_view json);
std::string PrintSteps(
    std::span<const StepPtr> steps);  // the same form; ParseSteps(PrintSteps(x)) == x

}  // namespace kiln::schedule
