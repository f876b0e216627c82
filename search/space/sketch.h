// Sketches: the structure of a schedule with tile sizes left blank (Ansor, OSDI 2020, section 4.1).
//
// Rules are tried on (state, stage) pairs from the last stage to the first. A rule answers whether
// it applies and whether later rules are tried as well; an application gives one or more (state,
// next stage). A state whose next stage is -1 is a sketch. Breadth first, so the order of sketches
// is fixed.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

enum class RuleAnswer { kSkip, kApply, kApplyAndSkipRest };

using NextStates = std::vector<std::pair<schedule::State, int>>;

// Rules that are asked about many states at once, because an answer takes long. They are tried
// before the other rules.
class BatchedRules {
 public:
  // A rule that applies to a state.
  struct Applied {
    size_t state = 0;        // index in `states`
    bool skip_rest = false;  // no other rule is tried on the state
    NextStates made;
  };

  virtual ~BatchedRules() = default;
  // Returns the rules that apply, ordered by state and then by rule. If there is no answer, the
  // task has been stopped.
  virtual std::vector<Applied> Apply(std::span<const std::pair<schedule::State, int>> states) = 0;
};

// What rules know beside the state.
struct RuleContext {
  const Task& task;
  const Parameters& parameters;
  BatchedRules* batched = nullptr;  // null: there are none
};

// Stateless.
class SketchRule {
 public:
  virtual ~SketchRule() = default;
  virtual std::string_view name() const = 0;
  virtual RuleAnswer Condition(const RuleContext& context, const schedule::State& state,
                               int stage) const = 0;
  // Takes the state: most rules have one use for it.
  virtual NextStates Apply(const RuleContext& context, schedule::State state, int stage) const = 0;
};

// In the order of TVM v0.14 (src/auto_scheduler/search_policy/sketch_policy.cc), which decides the
// order of the sketches.
std::vector<std::unique_ptr<SketchRule>> CpuSketchRules();
std::vector<std::unique_ptr<SketchRule>> GpuSketchRules();

// A schedule with blanks. The length of a split that an rfactor follows is blank in `steps` but 1
// in `state`: an rfactor cannot be applied to a blank.
struct Sketch {
  schedule::State state;
  std::vector<schedule::StepPtr> steps;
};

// At least one: the last rule always applies. Without `rules`: those of the task's target.
// Choices multiply with the stages that have some. Where there would be more sketches than
// max_sketches (fewer for large computations), the last ones take the first choice from there on.
// None when the task is stopped.
std::vector<Sketch> GenerateSketches(const RuleContext& context);
std::vector<Sketch> GenerateSketches(const RuleContext& context,
                                     std::span<const std::unique_ptr<SketchRule>> rules);

}  // namespace kiln::search
