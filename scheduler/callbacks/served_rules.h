// The sketch rules of one task, which the user's process serves.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "scheduler/callbacks/served_search.h"
#include "search/space/sketch.h"

namespace kiln::scheduler {

// One call asks all rules about all states of a level. The steps that a rule adds are applied to
// the state, so an illegal step fails the search with its reason. One thread.
class ServedRules final : public search::BatchedRules {
 public:
  ServedRules(ServedSearch& search, int task) : search_(search), task_(task) {}

  std::vector<Applied> Apply(std::span<const std::pair<schedule::State, int>> states) override;

 private:
  StatusOr<std::vector<Applied>> Answer(std::span<const std::pair<schedule::State, int>> states);
  // Returns the states that a rule has made of `before`.
  StatusOr<search::NextStates> Made(const schedule::State& before,
                                    const v1::AppliedRule& applied) const;

  ServedSearch& search_;
  const int task_;
  int levels_ = 0;  // calls so far
};

}  // namespace kiln::scheduler
