// A schedule step: one transformation of a state. A kind of step is a struct in steps/steps.h,
// which also lists the kinds, and a file in steps/. docs/steps.md describes each kind, and
// docs/howto/add-a-step.md how to add one.
//
// Steps are immutable values. Stage and loop numbers refer to the numbering at the time the step is
// applied.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

class Step {
 public:
  virtual ~Step() = default;
  virtual std::string_view tag() const = 0;   // "SP", ...: to print. As<> tells kinds apart
  virtual std::string_view name() const = 0;  // "split", ...: the word for people
  virtual int stage() const = 0;              // the stage it works on
  // Called by State::Apply, which has checked that the stage exists. Checks everything first and
  // edits then, so that a refusal leaves the state as it was. The step has not been appended yet:
  // state.steps().size() is its own number. The refusal is the bare reason; State::Apply says which
  // step it was.
  virtual Status ApplyTo(State& state) const = 0;
  // The JSON array of a measure record (docs/steps.md), on one line, ", " between items.
  virtual std::string ToJson() const = 0;
  // Of the fields that have an effect.
  virtual uint64_t Hash() const = 0;
  // The same without what a search may choose anew where the rest of a schedule stays (tile
  // lengths, a layout, the value of a hint): equal for steps that differ in nothing else.
  virtual uint64_t ShapeHash() const { return Hash(); }
  // Is it of our own? TVM's measure records do not have such steps.
  virtual bool IsExtension() const { return false; }
};

// The step as one of its kind (steps/steps.h); null: it is of another. The one place that tells
// kinds apart.
template <typename StepT>
const StepT* As(const Step& step) {
  static_assert(std::is_base_of_v<Step, StepT> && std::is_final_v<StepT>);
  return step.tag() == StepT::kTag ? static_cast<const StepT*>(&step) : nullptr;
}
template <typename StepT>
bool Is(const Step& step) {
  return As<StepT>(step) != nullptr;
}

// "[["SP", 2, 0, 512, [32], 1], ...]". The error names the step number, what was found and what was
// expected.
StatusOr<std::vector<StepPtr>> ParseSteps(std::string_view json);
// Of all kinds, in the order of the list of kinds.
std::span<const std::string_view> StepTags();
// Why the text is no list of steps; OK: it is one. What the steps do is not known here.
Status CheckStepsText(std::string_view json);
std::string PrintSteps(
    std::span<const StepPtr> steps);  // the same form; ParseSteps(PrintSteps(x)) == x

}  // namespace kiln::schedule
