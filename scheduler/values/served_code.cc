#include "scheduler/values/served_code.h"

#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "proto/job_defaults.h"
#include "search/policies/policy.h"

namespace kiln::scheduler {
namespace {

Status CheckModel(const v1::TuneOptions& options, const search::PolicyKind& policy) {
  if (policy.learned_model.empty() || policy.uses_template) {
    return InvalidArgument(
        "policy {} ranks by no cost model of schedules, and the job serves one; expected policy {}",
        policy.name, search::Policies().front()->name);
  }
  if (options.cost_model().empty() && options.model_parameters().empty()) return OkStatus();
  return InvalidArgument(
      "the job serves a cost model, and names one of the scheduler or parameters of one; expected "
      "one of them");
}

Status CheckRules(const v1::ServedCode& served, const search::PolicyKind& policy) {
  if (!policy.takes_rules) {
    return InvalidArgument(
        "policy {} makes no sketches, and the job serves sketch rules; expected a policy sketch.*",
        policy.name);
  }
  std::set<std::string_view> names;
  for (const std::string& name : served.sketch_rules()) {
    if (name.empty()) return InvalidArgument("a served sketch rule has no name, expected one");
    if (!names.insert(name).second)
      return InvalidArgument("two served sketch rules are named {}, expected different names",
                             name);
  }
  return OkStatus();
}

Status CheckObjective(int tasks) {
  if (tasks <= kMostTasksOfServedObjective) return OkStatus();
  return InvalidArgument(
      "the job has {} tasks and serves an objective, expected at most {}: each call asks for the "
      "objective at one list of latencies for each task; split the job, or name an objective of "
      "the scheduler",
      tasks, kMostTasksOfServedObjective);
}

Status CheckBuilds(const v1::JobSpec& spec) {
  if (spec.served().builds() > kMostServedBuilds) {
    return InvalidArgument("served.builds is {}, expected 0 to {}", spec.served().builds(),
                           kMostServedBuilds);
  }
  if (spec.options().kernel().empty()) return OkStatus();
  return InvalidArgument(
      "the job has a hand-written kernel and serves builds, expected one of them: the text of a "
      "kernel names the options of its compiler");
}

}  // namespace

Status CheckServed(v1::JobSpec& spec) {
  if (!spec.has_served()) return OkStatus();
  v1::ServedCode& served = *spec.mutable_served();
  const bool serves = HasServedModel(served) || served.objective() ||
                      served.sketch_rules_size() > 0 || served.builds() > 0;
  if (!serves) {
    spec.clear_served();
    return OkStatus();
  }
  if (!std::isfinite(served.timeout_s()) || served.timeout_s() < 0 ||
      served.timeout_s() > kLongestCallback_s) {
    return InvalidArgument("served.timeout_s is {}, expected 0 to {}", served.timeout_s(),
                           kLongestCallback_s);
  }
  if (served.timeout_s() == 0) served.set_timeout_s(kDefaultCallbackTimeout_s);
  KILN_ASSIGN_OR_RETURN(const search::PolicyKind* const policy,
                        search::FindPolicy(spec.options().policy()));
  if (served.builds() > 0) KILN_RETURN_IF_ERROR(CheckBuilds(spec));
  if (served.objective()) KILN_RETURN_IF_ERROR(CheckObjective(spec.tasks_size()));
  if (HasServedModel(served)) KILN_RETURN_IF_ERROR(CheckModel(spec.options(), *policy));
  if (served.sketch_rules_size() > 0) KILN_RETURN_IF_ERROR(CheckRules(served, *policy));
  return OkStatus();
}

std::string ServedParts(const v1::ServedCode& served) {
  std::vector<std::string_view> parts;
  if (HasServedModel(served)) parts.push_back("cost model");
  if (served.sketch_rules_size() > 0) parts.push_back("sketch rules");
  if (served.objective()) parts.push_back("objective");
  if (served.builds() > 0) parts.push_back("build function");
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace kiln::scheduler
