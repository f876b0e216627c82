// A search policy: proposes candidates for one task and learns from their results.
//
// Asynchronous by design: proposals may be asked for while earlier ones are still being measured,
// and results come back in any order. One thread at a time. The same seed and the same sequence of
// calls give the same proposals.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/step.h"
#include "search/task.h"

namespace kiln::search {

struct Candidate {
  std::vector<schedule::StepPtr> steps;
  uint64_t hash = 0;  // schedule::HashSteps(steps): its identity
};

struct Observation {
  Candidate candidate;
  bool valid = false;  // false: the trial failed
  double cost_s = 0;   // mean, when valid
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Up to n new candidates, none proposed or observed before; all replay and lower. Fewer, in the
  // end none: the space is exhausted as far as the policy can tell.
  virtual StatusOr<std::vector<Candidate>> Propose(int n) = 0;

  // Results of proposals, or of earlier searches of the same task: those are not proposed again.
  virtual void Observe(std::span<const Observation> observations) = 0;
};

// Policies by name: "sketch.random". `parameters` override the defaults of facts §3.1 by name. An
// unknown name or parameter: error with the list of known ones. `task` must outlive the policy.
StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const std::map<std::string, double>& parameters = {});
std::vector<std::string> PolicyNames();

}  // namespace kiln::search
