// A search policy: proposes candidates for one task and learns from their results.
//
// Asynchronous by design: proposals may be asked for while earlier ones are still being measured,
// and results come back in any order. One thread at a time. The same seed and the same sequence of
// calls give the same proposals.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/step.h"
#include "search/models.h"
#include "search/round_report.h"
#include "search/task.h"

namespace kiln::search {

inline constexpr double kNoScore = -std::numeric_limits<double>::infinity();

struct Candidate {
  std::vector<schedule::StepPtr> steps;
  uint64_t hash = 0;  // schedule::HashSteps(steps): its identity
  // Where it comes from, for people: "sketch 0, random", "sketch 1, tile sizes of conv2d.rc, 2
  // changes from trial 17".
  std::string origin = {};
  // What the model of that time predicted, and the place among the round's candidates that gave it,
  // from 1. kNoScore and 0: chosen by chance.
  double score = kNoScore;
  int rank = 0;
};

struct Observation {
  Candidate candidate;
  bool valid = false;  // false: the trial failed
  double cost_s = 0;   // mean, when valid
  uint32_t trial = 0;  // its number in the job, for origins
  int64_t record = 0;  // of an earlier job: its number in the store instead
  // Further readings of what was observed before: this is its cost now, or it has failed. Of the
  // candidate only the hash is set.
  bool corrects = false;
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Up to n new candidates, none proposed or observed before; all replay and lower. Fewer, in the
  // end none: the space is exhausted as far as the policy can tell. Cancelled, soon, when the task
  // is stopped.
  virtual StatusOr<std::vector<Candidate>> Propose(int n) = 0;

  // Results of proposals, or of earlier searches of the same task: those are not proposed again.
  virtual void Observe(std::span<const Observation> observations) = 0;

  // Never proposes them: what is known already and need not be learned from. Cheap for thousands.
  virtual void Avoid(std::span<const uint64_t> hashes) = 0;

  // How the last Propose went.
  virtual const RoundReport& last_round() const = 0;
};

// `parameters` override the defaults of facts §3.1 by name (parameters.h).
struct PolicyOptions {
  std::map<std::string, double> parameters = {};
  // sketch.xgb without one that learns, and sketch.analytic without a draft, are errors.
  Models models = {};
  // The learned model ranks from so many results of this task on; 0: as soon as it is trained,
  // which another task may have done.
  int min_own_results = 0;
  // Of a call to Propose or Observe; results do not depend on it. 0: one for each CPU.
  int threads = 0;
};

// "sketch.xgb", "sketch.analytic", "sketch.random", "empty". An unknown name or parameter: error
// with the list of known ones. `task` must outlive the policy.
StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options = {});
std::vector<std::string> PolicyNames();

}  // namespace kiln::search
