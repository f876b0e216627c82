// A search policy: proposes candidates for one task and learns from their results.
//
// Proposals may be asked for while earlier ones are still being measured, and results come back in
// any order. One thread at a time. The same seed and the same sequence of calls give the same
// proposals.
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
#include "search/policies/kept_allowance.h"
#include "search/policies/models.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"
#include "search/space/score.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

class BaseModel;  // search/templates/tuners/base_model.h
class Template;   // search/templates/template.h

struct Candidate {
  std::vector<schedule::StepPtr> steps;
  // The candidate's identity: schedule::HashSteps(steps), or HashKernelPoint for a hand-written
  // kernel.
  uint64_t hash = 0;
  // The candidate's origin, for people: "sketch 0, random", "sketch 1, tile sizes of conv2d.rc, 2
  // changes from trial 17".
  std::string origin = {};
  // The prediction of the model of that time, and the rank that it gave among the round's
  // candidates, from 1. kNoScore and 0 if the candidate was chosen at random.
  double score = kNoScore;
  int rank = 0;
  // Set instead of steps: a hand-written kernel with values for its parameters.
  std::optional<handwritten::KernelPoint> kernel = {};
};

// Prints the part of a candidate that jobs, requests and records keep, as JSON: its steps, or its
// kernel's values.
std::string PrintCandidate(const Candidate& candidate);
// Parses a candidate and sets its hash; its origin is not known. Errors are those of ParseSteps and
// ParseKernelPoint.
StatusOr<Candidate> ParseCandidate(std::string_view text);

struct Observation {
  Candidate candidate;
  bool valid = false;  // false: the trial failed
  double cost_s = 0;   // mean; set if valid
  uint32_t trial = 0;  // its number in the job, for origins
  int64_t record = 0;  // for an earlier job's result: the record's number instead
  // True for further readings of a candidate that was observed before: they give its cost now, or
  // it has failed. Then the candidate has only its hash.
  bool corrects = false;
  // The time of one run of the unscheduled loops on the device. Empty if it is not known.
  std::optional<double> reference_s = {};
  // The time of its build, if the device had waited for it. Empty: it is not known, or the program
  // waited for the device.
  std::optional<double> awaited_build_s = {};
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Returns up to n new candidates, none of which was proposed or observed before. All of them
  // replay and lower. Fewer than n, and in the end none, mean that the space is exhausted as far as
  // the policy can tell. Cancelled, soon, when the task is stopped.
  virtual StatusOr<std::vector<Candidate>> Propose(int n) = 0;

  // Takes results of proposals, or of earlier searches of the same task, which are not proposed
  // again.
  virtual void Observe(std::span<const Observation> observations) = 0;

  // Never proposes candidates with these hashes. Such candidates are known already, and need not be
  // learned from. Cheap for thousands.
  virtual void Avoid(std::span<const uint64_t> hashes) = 0;

  // Takes the fastest known results of another task that does the same sums (SumsKey), because a
  // schedule that was fast there may be worth a try here. Repeated results cost nothing. A policy
  // may ignore them.
  virtual void Suggest(std::span<const Observation> of_another) { (void)of_another; }

  // Returns the report of the last Propose.
  virtual const RoundReport& last_round() const = 0;
};

struct PolicyOptions {
  // Parameters by name that override the defaults of search/space/parameters.h.
  std::map<std::string, double> parameters = {};
  // A policy that learns needs models that learn. A policy that only ranks by the analytic model
  // needs that one alone.
  Models models = {};
  // The learned model ranks once this task has so many results. 0: it ranks as soon as it is
  // trained, which another task may have caused.
  int min_own_results = 0;
  // Whether many tasks are searched beside each other, so that the first rounds of each should be
  // cheap.
  bool one_of_many = false;
  // Threads of a call to Propose or Observe. Results do not depend on their number. 0: one for each
  // CPU.
  int threads = 0;
  // Bounds what all tasks keep together. Outlives the policy. Null: there is no bound.
  KeptAllowance* allowance = nullptr;
  // Sketch rules that are tried before those of the target, if the policy takes rules. They are
  // asked when the policy is made. Null: there are none.
  BatchedRules* rules = nullptr;
  // The template of a policy that searches one. Null: the template that Kiln ships for the task's
  // operator.
  std::shared_ptr<const Template> schedule_template = {};
  // The base model of a policy that learns from points: it comes from earlier searches of its
  // template with the same parameters (template_history.h). Null: there is none.
  std::shared_ptr<const BaseModel> base_model = {};
};

// A policy by name: a row of the table in policies.cc. Each row is defined beside its policy.
struct PolicyKind {
  std::string_view name;
  std::string_view what;  // one line for people
  // Name of the cost model that the policy learns with, as in costmodel/make_cost_model.h. Empty:
  // none.
  std::string_view learned_model = {};
  bool uses_analytic_model = false;
  bool uses_template = false;
  bool takes_rules = false;  // PolicyOptions::rules
  // Whether the policy prefers candidates that are built soon where builds are the limit.
  bool weighs_builds = false;
  // Whether the policy's model learns from measured points of its template, also those of earlier
  // jobs.
  bool learns_from_points = false;
  // `task` outlives the policy. The options have the models and the template that the row asks for.
  std::unique_ptr<Policy> (*make)(const Task& task, Parameters parameters, uint64_t seed,
                                  const PolicyOptions& options);
};

// The first policy is the default.
std::span<const PolicyKind* const> Policies();
std::vector<std::string> PolicyNames();
// InvalidArgument lists the known names.
StatusOr<const PolicyKind*> FindPolicy(std::string_view name);

// Fails with the list of known names if a policy or parameter is unknown, and with the reason if
// the template, or every template, cannot schedule the task's computation. `task` must outlive the
// policy.
StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options = {});

}  // namespace kiln::search
