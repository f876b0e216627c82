// kiln why says why a job waits or is slow, and what would help.
#include "scheduler/words/why.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/console/terminal.h"
#include "base/text/utf8.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/farm_answers.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct WhyFlags {
  std::string job_id;
};

// Prints the words of the text in lines that fit the terminal. `first` stands before the first
// line, and as many blanks before the others.
void PrintWrapped(std::string_view first, const std::string& text) {
  const size_t columns = static_cast<size_t>(TerminalColumns(STDOUT_FILENO));
  const std::string printable = Printable(text);
  std::string line(first);
  const std::string blanks(first.size(), ' ');
  bool is_empty = true;
  for (size_t at = 0; at < printable.size();) {
    const size_t end = std::min(printable.find(' ', at), printable.size());
    const std::string word = printable.substr(at, end - at);
    at = end + 1;
    if (!is_empty && line.size() + 1 + word.size() > columns) {
      fmt::print("{}\n", line);
      line = blanks;
      is_empty = true;
    }
    line += (is_empty ? "" : " ") + word;
    is_empty = false;
  }
  fmt::print("{}\n", line);
}

void PrintWhy(const v1::JobStatus& job, const FarmAnswers& farm) {
  const std::string estimate = EstimateText(job, farm);
  PrintWrapped("", fmt::format("job {}, {}{}{}", job.id(), JobStateName(job.state()),
                               estimate.empty() ? "" : ", ", estimate));
  for (const Reason& reason : WhyOf(job, farm)) {
    fmt::print("\n");
    PrintWrapped("why   ", reason.text);
    for (const std::string& detail : reason.details) PrintWrapped("      - ", detail);
    PrintWrapped("help  ", reason.remedy);
  }
}

// Returns the job and what its farm tells. A database tells of ended and paused jobs alone.
StatusOr<v1::JobStatus> Ask(const std::string& job_id, const Session& session, FarmAnswers& farm) {
  if (!session.scheduler.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
    KILN_ASSIGN_OR_RETURN(v1::JobStatus job, client->Job(job_id));
    KILN_ASSIGN_OR_RETURN(farm, AskFarm(session, *client));
    AskForLimits(*client, job.spec().user(), farm);
    return job;
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(v1::JobStatus job, archive->Job(job_id));
  if (job.state() == v1::QUEUED || job.state() == v1::RUNNING) {
    return FailedPrecondition(
        "job {} is {} by {}, and only the scheduler that works on it can say why: name it with "
        "--scheduler HOST:PORT, or go on with the job by `{}`",
        job.id(), JobStateName(job.state()), archive->Name(),
        session.Command("tune --resume " + job.id()));
  }
  return job;
}

Status Why(const WhyFlags& flags, const Session& session) {
  FarmAnswers farm;
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, Ask(flags.job_id, session, farm));
  if (session.json) {
    fmt::print("{}\n", WhyJson(job, farm));
  } else {
    PrintWhy(job, farm);
  }
  return OkStatus();
}

}  // namespace

Run AddWhy(CLI::App& why, SessionFlags& session) {
  const auto flags = std::make_shared<WhyFlags>();
  why.description("say why a job waits or is slow, and what would help");
  why.add_option("job", flags->job_id, "id of the job")->required();
  session.AddPlace(why);
  return Plain([flags](const Session& session) { return Why(*flags, session); });
}

}  // namespace kiln::client
