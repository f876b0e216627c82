// kiln submit hands a job to a scheduler.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/compilation_target.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/job_flags.h"
#include "client/cli/jobs/job_preview.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/jobs/job_spec.h"
#include "client/jobs/model_source.h"
#include "client/view/json.h"
#include "proto/job_defaults.h"

namespace kiln::client {
namespace {

// Parts of the search that a process of the user serves.
struct ServedFlags {
  std::vector<std::string> model;
  bool objective = false;
  std::vector<std::string> rules;
  uint32_t builds = 0;
  double timeout_s = kDefaultCallbackTimeout_s;

  void AddTo(CLI::App& command) {
    command
        .add_option("--served-model", model,
                    "the job ranks by a cost model that a process of yours serves; it gets the "
                    "feature rows of programs, their steps, or both")
        ->check(CLI::IsMember({kRows, kSteps}))
        ->delimiter(',')
        ->type_name("rows,steps")
        ->group(kGroup);
    command
        .add_flag("--served-objective", objective,
                  "the job makes a function of latencies small that a process of yours serves")
        ->group(kGroup);
    command
        .add_option("--served-rule", rules,
                    "name of a sketch rule that a process of yours serves; any number of them")
        ->allow_extra_args(false)
        ->group(kGroup);
    command
        .add_option("--served-builds", builds,
                    "a process of yours makes the binary of each candidate from its source, so "
                    "many at once")
        ->check(CLI::Range(0u, kMostServedBuilds))
        ->group(kGroup);
    command
        .add_option("--served-timeout", timeout_s,
                    "seconds that one answer of the process may take")
        ->check(CLI::Range(0.001, kLongestCallback_s))
        ->capture_default_str()
        ->group(kGroup);
  }

  void SetIn(v1::JobSpec& spec) const {
    if (model.empty() && !objective && rules.empty() && builds == 0) return;
    v1::ServedCode& served = *spec.mutable_served();
    served.set_model_reads_rows(std::ranges::find(model, kRows) != model.end());
    served.set_model_reads_steps(std::ranges::find(model, kSteps) != model.end());
    served.set_objective(objective);
    served.mutable_sketch_rules()->Assign(rules.begin(), rules.end());
    served.set_builds(builds);
    served.set_timeout_s(timeout_s);
  }

 private:
  static constexpr const char* kGroup = "Code of the user (docs/python.md)";
  static constexpr const char* kRows = "rows";
  static constexpr const char* kSteps = "steps";
};

Status Submit(const JobFlags& flags, const ServedFlags& served, const Session& session) {
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "submit needs a scheduler: give --scheduler HOST:PORT or set KILN_SCHEDULER; `kiln tune` "
        "works without one");
  }
  KILN_ASSIGN_OR_RETURN(const ChosenTarget target, ChooseTarget(flags.Target(), session));
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(flags.Job(target.text)));
  served.SetIn(spec);
  SayTarget(target.note, session);
  if (spec.options().trials() == 0) {
    KILN_ASSIGN_OR_RETURN(const std::string preview, PreviewJob(spec, session.json));
    fmt::print("{}", preview);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_RETURN_IF_ERROR(KeepModelOf(*client, spec));
  KILN_ASSIGN_OR_RETURN(const std::string job_id, client->Submit(spec));
  if (session.json) {
    fmt::print("{}\n", StartEvent(job_id, spec, client->Name()));
  } else {
    fmt::print("{}\n", job_id);
  }
  return OkStatus();
}

}  // namespace

Run AddSubmit(CLI::App& submit, SessionFlags& session) {
  const auto flags = std::make_shared<JobFlags>();
  const auto served = std::make_shared<ServedFlags>();
  submit.description("hand a job to a scheduler and print its id");
  flags->AddTo(submit);
  served->AddTo(submit);
  session.AddPlace(submit);
  MarkMostUsed(submit, "--scheduler");
  return Plain(
      [flags, served](const Session& session) { return Submit(*flags, *served, session); });
}

}  // namespace kiln::client
