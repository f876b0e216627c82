// kiln submit hands a job to a scheduler.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/compilation_target.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/job_flags.h"
#include "client/cli/jobs/job_preview.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/jobs/job_spec.h"
#include "client/jobs/model_source.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

Status Submit(const JobFlags& flags, const Session& session) {
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "submit needs a scheduler: give --scheduler HOST:PORT or set KILN_SCHEDULER; `kiln tune` "
        "works without one");
  }
  KILN_ASSIGN_OR_RETURN(const ChosenTarget target, ChooseTarget(flags.Target(), session));
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(flags.Job(target.text)));
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
  submit.description("hand a job to a scheduler and print its id");
  flags->AddTo(submit);
  session.AddPlace(submit);
  MarkMostUsed(submit, "--scheduler");
  return Plain([flags](const Session& session) { return Submit(*flags, session); });
}

}  // namespace kiln::client
