// kiln cancel ends a job.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/jobs/commands.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/local_archive.h"

namespace kiln::client {
namespace {

struct CancelFlags {
  std::string job_id;
};

Status Cancel(const CancelFlags& flags, const Session& session) {
  if (session.scheduler.empty()) {
    KILN_RETURN_IF_ERROR(CancelInDatabase(session.db, flags.job_id));
  } else {
    KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
    KILN_RETURN_IF_ERROR(client->Cancel(flags.job_id));
  }
  if (!session.json) fmt::print("job {} cancelled; its records are kept\n", flags.job_id);
  return OkStatus();
}

}  // namespace

Run AddCancel(CLI::App& cancel, SessionFlags& session) {
  const auto flags = std::make_shared<CancelFlags>();
  cancel.description("cancel a job; its records are kept");
  cancel.add_option("job", flags->job_id, "id of the job")->required();
  session.AddPlace(cancel);
  return Plain([flags](const Session& session) { return Cancel(*flags, session); });
}

}  // namespace kiln::client
