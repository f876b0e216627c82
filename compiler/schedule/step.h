// A schedule step: one transformation of a state. A kind of step is a struct in steps/steps.h,
// which also lists the kinds, and a file in steps/. docs/steps.md describes each kind, and
// docs/howto/add-a-step.md how to add one.
//
// Steps are immutable values. Stage and loop numbers refer to the numbering at the time when the
// step is applied.
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
  // A tag like "SP", for printing. As<> tells kinds apart.
  virtual std::string_view tag() const = 0;
  // A word for people, like "split".
  virtual std::string_view name() const = 0;
  // The stage that the step works on.
  virtual int stage() const = 0;
  // State::Apply calls this after it has checked that the stage exists. All checks must come before
  // the first edit, so that a refusal leaves the state as it was. The step has not been appended
  // yet: state.steps().size() is its own number. The error is only the reason; State::Apply adds
  // the step.
  virtual Status ApplyTo(State& state) const = 0;
  // Returns the JSON array of a measure record (docs/steps.md), on one line, with ", " between
  // items.
  virtual std::string ToJson() const = 0;
  // Returns a hash of the fields that have an effect.
  virtual uint64_t Hash() const = 0;
  // Returns a hash without the fields that a search may choose anew while the rest of a schedule
  // stays (tile lengths, a layout, the value of a hint). Steps that differ only in these have equal
  // hashes.
  virtual uint64_t ShapeHash() const { return Hash(); }
  // Returns true for a step of Kiln's own, which TVM's measure records do not have.
  virtual bool IsExtension() const { return false; }
};

// Returns the step as one of its kind (steps/steps.h), or null if it is of another kind. Kinds are
// only told apart here.
template <typename StepT>
const StepT* As(const Step& step) {
  static_assert(std::is_base_of_v<Step, StepT> && std::is_final_v<StepT>);
  return step.tag() == StepT::kTag ? static_cast<const StepT*>(&step) : nullptr;
}
template <typename StepT>
bool Is(const Step& step) {
  return As<StepT>(step) != nullptr;
}

// Parses [["SP", 2, 0, 512, [32], 1], ...]. The error names the step number, the text that was
// found and what was expected.
StatusOr<std::vector<StepPtr>> ParseSteps(std::string_view json);
// Returns the tags of all kinds, in the order of the list of kinds.
std::span<const std::string_view> StepTags();
// Returns why the text is no list of steps, or OK. The effects of the steps are not checked.
Status CheckStepsText(std::string_view json);
std::string PrintSteps(
    std::span<const StepPtr> steps);  // in the form of ParseSteps: ParseSteps(PrintSteps(x)) == x

}  // namespace kiln::schedule
