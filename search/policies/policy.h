// A search policy: proposes candidates for one task and learns from their results.
//
// Asynchronous by design: proposals may be asked for while earlier ones are still being measured,
// and results come back in any order. One thread at a time. The same seed and the same sequence of
// calls give the same proposals.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "search/policies/models.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"
#include "search/space/score.h"
#include "search/space/task.h"

namespace kiln::search {

class BaseModel;  // search/templates/tuners/base_model.h
class Template;   // search/templates/template.h

struct Candidate {
  std::vector<schedule::StepPtr> steps;
  // Its identity: schedule::HashSteps(steps), or of a hand-written kernel HashKernelPoint.
  uint64_t hash = 0;
  // Where it comes from, for people: "sketch 0, random", "sketch 1, tile sizes of conv2d.rc, 2
  // changes from trial 17".
  std::string origin = {};
  // What the model of that time predicted, and the place among the round's candidates that gave it,
  // from 1. kNoScore and 0: chosen by chance.
  double score = kNoScore;
  int rank = 0;
  // Instead of steps: a kernel that a person wrote, with values for its parameters.
  std::optional<handwritten::KernelPoint> kernel = {};
};

// What jobs, requests and records keep of a candidate: its steps, or its kernel's values, as JSON.
std::string PrintCandidate(const Candidate& candidate);
// With its hash; nothing is known of where it comes from. Errors of ParseSteps and
// ParseKernelPoint.
StatusOr<Candidate> ParseCandidate(std::string_view text);

struct Observation {
  Candidate candidate;
  bool valid = false;  // false: the trial failed
  double cost_s = 0;   // mean, when valid
  uint32_t trial = 0;  // its number in the job, for origins
  int64_t record = 0;  // of an earlier job: its number in the store instead
  // Further readings of what was observed before: this is its cost now, or it has failed. Of the
  // candidate only the hash is set.
  bool corrects = false;
  // The time of one run of the unscheduled loops on the device; none: not known.
  std::optional<double> reference_s = {};
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

  // The fastest results of another task that does the same sums (SumsKey), as far as they are
  // known: what was fast there may be tried here. Told again they cost nothing. Policies may ignore
  // them.
  virtual void Suggest(std::span<const Observation> of_another) { (void)of_another; }

  // How the last Propose went.
  virtual const RoundReport& last_round() const = 0;
};

struct PolicyOptions {
  // Override the defaults of search/space/parameters.h, by name.
  std::map<std::string, double> parameters = {};
  // A policy that learns needs one that learns, and one that only ranks by the analytic model that.
  Models models = {};
  // The learned model ranks from so many results of this task on; 0: as soon as it is trained,
  // which another task may have done.
  int min_own_results = 0;
  // Many tasks are searched beside each other: the first rounds of each are to be cheap.
  bool one_of_many = false;
  // Of a call to Propose or Observe; results do not depend on it. 0: one for each CPU.
  int threads = 0;
  // Of a policy that searches one. Null: that which Kiln ships for the task's operator.
  std::shared_ptr<const Template> schedule_template = {};
  // Of a policy that learns from points: of earlier searches of its template, with the same
  // parameters (template_history.h). Null: there is none.
  std::shared_ptr<const BaseModel> base_model = {};
};

// A policy by name: a row of the table in policies.cc. The row stands beside the policy.
struct PolicyKind {
  std::string_view name;
  std::string_view what;  // for people, one line
  // The cost model that it learns with, as costmodel/make_cost_model.h calls it; empty: none.
  std::string_view learned_model = {};
  bool uses_analytic_model = false;
  bool uses_template = false;
  // Its model learns from measured points of its template, those of earlier jobs too.
  bool learns_from_points = false;
  // `task` outlives the policy. The options have models and a template as the row says.
  std::unique_ptr<Policy> (*make)(const Task& task, Parameters parameters, uint64_t seed,
                                  const PolicyOptions& options);
};

// The first is the default.
std::span<const PolicyKind* const> Policies();
std::vector<std::string> PolicyNames();
// InvalidArgument with the list of known ones.
StatusOr<const PolicyKind*> FindPolicy(std::string_view name);

// An unknown name or parameter: error with the list of known ones. A template that cannot schedule
// the task's computation, or none that can: the reason. `task` must outlive the policy.
StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options = {});

}  // namespace kiln::search
