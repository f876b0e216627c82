// kiln trace shows where the time of one trial went, or writes a whole job for a viewer of traces.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/text/counted.h"
#include "client/archive.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/resolve.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/job_rounds.h"
#include "client/view/job_trace.h"
#include "client/view/printable.h"
#include "client/view/trace_events.h"
#include "client/view/trial_steps.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// A file of more trials than these has no phases, so that a viewer can still open it.
constexpr uint32_t kMostWithPhases = 100'000;

struct TraceFlags {
  // JOB/N, or JOB.
  std::string what;
  // The file of a job; "-": stdout; "": a trial is shown as text.
  std::string output;
};

Status ShowTrial(const NamedTrial& name, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(v1::Record record, FindTrial(name, *archive));
  const std::vector<TrialStep> steps = StepsOf(record.result());
  if (steps.empty()) {
    return FailedPrecondition(
        "trial {} has no instants: it came from a log, or a Kiln before this one measured it; "
        "`{}` shows what is known of the times of its job",
        TrialName(record), session.Command(fmt::format("jobs {} --timing", name.job_id)));
  }
  if (session.json) {
    fmt::print("{}\n", StepsJson(record, steps));
    return OkStatus();
  }
  MakePrintable(record);
  fmt::print("{}", StepsText(record, steps, OutputColumns(STDOUT_FILENO)));
  return OkStatus();
}

// A file that appears when it is complete, or stdout.
class Output {
 public:
  static StatusOr<Output> Open(const std::string& path) {
    Output output;
    if (path == "-") return output;
    KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
    output.file_.emplace(std::move(file));
    return output;
  }
  Status Append(std::string_view bytes) {
    if (file_.has_value()) return file_->Append(bytes);
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return OkStatus();
    return Unavailable("cannot write to stdout");
  }
  Status Commit() { return file_.has_value() ? file_->Commit() : OkStatus(); }

 private:
  std::optional<AtomicFile> file_;
};

void PrintRemarks(const JobTrace& trace, bool with_phases, bool with_rounds) {
  if (trace.without_instants() > 0) {
    fmt::print(stderr, "{} left out, without instants: of a log, or of a Kiln before this one\n",
               Counted(trace.without_instants(), "trial"));
  }
  if (!with_phases) {
    fmt::print(stderr,
               "the phases within builds and runs are left out, as the job has more than "
               "{} trials; `kiln trace JOB/N` shows those of one\n",
               kMostWithPhases);
  }
  if (!with_rounds) {
    fmt::print(stderr, "the rounds of the search are left out until the job has ended\n");
  }
}

Status WriteJob(const TraceFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive->Job(flags.what));
  JobTrace::Options options;
  options.with_phases = job.trials_done() <= kMostWithPhases;
  const bool with_rounds = session.scheduler.empty() || IsFinal(job.state());
  if (with_rounds) {
    KILN_ASSIGN_OR_RETURN(options.rounds, RoundsOfJob(session, job.id()));
  }
  const bool with_phases = options.with_phases;
  KILN_ASSIGN_OR_RETURN(Output output, Output::Open(flags.output));
  TraceEvents events([&output](std::string_view bytes) { return output.Append(bytes); });
  JobTrace trace(job.id(), std::move(options), events);
  v1::ListRecordsRequest request;
  request.set_job_id(job.id());
  request.set_include_errors(true);
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    trace.Add(record);
    return OkStatus();
  }));
  trace.Finish();
  KILN_RETURN_IF_ERROR(events.Finish());
  if (trace.trials() == trace.without_instants()) {
    return FailedPrecondition(
        "no trial of job {} has instants: expected trials that this version "
        "of Kiln has measured, found {}",
        job.id(), Counted(trace.trials(), "other"));
  }
  KILN_RETURN_IF_ERROR(output.Commit());
  PrintRemarks(trace, with_phases, with_rounds);
  if (flags.output != "-") {
    fmt::print(stderr,
               "{} written to {}; open it at https://ui.perfetto.dev, in this browser, or "
               "chrome://tracing\n",
               Counted(trace.trials(), "trial"), flags.output);
  }
  return OkStatus();
}

Status Trace(const TraceFlags& flags, const Session& session) {
  const auto trial = ParseTrialName(flags.what);
  if (trial.has_value() && flags.output.empty()) return ShowTrial(*trial, session);
  if (trial.has_value()) {
    return InvalidArgument("a file has all trials of a job: expected -o with a job, found trial {}",
                           flags.what);
  }
  if (flags.output.empty()) {
    return InvalidArgument("found job {} and no file; expected a trial, `{}`, or a file, `{}`",
                           flags.what, session.Command(fmt::format("trace {}/0", flags.what)),
                           session.Command(fmt::format("trace {} -o job.json", flags.what)));
  }
  return WriteJob(flags, session);
}

}  // namespace

Run AddTrace(CLI::App& trace, SessionFlags& session) {
  const auto flags = std::make_shared<TraceFlags>();
  trace.description("where the time of a trial went, or of all trials of a job");
  trace.add_option("what", flags->what, "a trial, JOB/N, as a table; with -o a job")->required();
  trace
      .add_option("-o,--output", flags->output,
                  "write the job for Perfetto and chrome://tracing; - = stdout")
      ->type_name("FILE");
  session.AddPlace(trace);
  return Plain([flags](const Session& session) { return Trace(*flags, session); });
}

}  // namespace kiln::client
