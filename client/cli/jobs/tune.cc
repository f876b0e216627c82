// kiln tune makes a job, runs it and shows it to its end.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/process/stop_signal.h"
#include "base/server/grpc_server.h"
#include "base/text/utf8.h"
#include "client/check/baseline.h"
#include "client/cli/compilation_target.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/follow.h"
#include "client/cli/jobs/job_flags.h"
#include "client/cli/jobs/job_preview.h"
#include "client/cli/jobs/run_job.h"
#include "client/cli/session_flags.h"
#include "client/jobs/job_spec.h"
#include "client/jobs/workload_source.h"
#include "client/network.h"
#include "compiler/target/target.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct TuneFlags {
  JobFlags job;
  FollowOptions follow;
  ClusterFlags cluster;
  // An unfinished job of the database that is followed instead of a new one; "last": the newest.
  std::string resume;
  // File with the results of an earlier release; "": none.
  std::string baseline;
};

// Returns the job to resume: the named one, or the newest job that was left unfinished or
// cancelled, as by Ctrl-C.
StatusOr<v1::JobStatus> JobToResume(const std::string& wanted, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  for (const v1::JobStatus& job : jobs) {
    if (wanted == "last" ? !IsFinal(job.state()) || job.state() == v1::CANCELLED
                         : job.id() == wanted) {
      return job;
    }
  }
  if (wanted == "last") {
    return NotFound("{} has no job that was left unfinished or cancelled", archive->Name());
  }
  return NotFound("there is no job {} in {}", wanted, archive->Name());
}

// If the user has chosen no variants, prints that others exist.
void PrintOtherVariants(const JobDescription& job, const Session& session) {
  if (session.json || !job.variants.empty() || !job.tasks_path.empty() ||
      IsNetwork(job.arguments.op))
    return;
  const auto target = target::ParseTarget(job.target);
  const auto variants = LoadVariants(job.arguments, kAllVariants, target.ok() && target->is_gpu());
  if (!variants.ok() || variants->size() < 2) return;
  fmt::print(
      "{} has another variant, {}, for weights that are prepared before: --variants all tunes "
      "both\n",
      job.arguments.op, variants->back().name);
}

StatusOr<int> Resume(const TuneFlags& flags, const Session& session, StopSignal& stop,
                     const Baseline* baseline) {
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, JobToResume(flags.resume, session));
  if (job.spec().tasks().empty()) {
    return FailedPrecondition(
        "job {} has no tasks to go on with: it is one of imported records, or what was asked for "
        "is damaged; expected a job that kiln jobs lists with a task",
        OneLine(job.id()));
  }
  return ResumeJob(job, flags.cluster, flags.follow, session, stop, baseline);
}

StatusOr<int> Tune(const TuneFlags& flags, const Session& session) {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  // A baseline that cannot be read is said before anything is tuned.
  std::optional<Baseline> baseline;
  if (!flags.baseline.empty()) {
    KILN_ASSIGN_OR_RETURN(baseline, ReadBaseline(flags.baseline));
  }
  const Baseline* const compared = baseline.has_value() ? &*baseline : nullptr;
  // A resumed job has its own target.
  if (!flags.resume.empty()) return Resume(flags, session, stop, compared);
  KILN_ASSIGN_OR_RETURN(const ChosenTarget target, ChooseTarget(flags.job.Target(), session));
  const JobDescription job = flags.job.Job(target.text);
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(job));
  SayTarget(target.note, session);
  if (spec.options().trials() == 0) {
    KILN_ASSIGN_OR_RETURN(const std::string preview, PreviewJob(spec, session.json));
    fmt::print("{}", preview);
    return 0;
  }
  if (!flags.follow.quiet) PrintOtherVariants(job, session);
  return RunJob(std::move(spec), flags.cluster, flags.follow, session, stop, compared);
}

}  // namespace

Run AddTune(CLI::App& tune, SessionFlags& session) {
  const auto flags = std::make_shared<TuneFlags>();
  tune.description("tune an operator and watch it; without --scheduler on this machine");
  flags->job.AddTo(tune);
  session.AddPlace(tune);
  AddFollow(tune, flags->follow);
  tune.add_option("--resume", flags->resume,
                  "go on with a job that was left unfinished, cancelled or failed; alone: the "
                  "newest unfinished or cancelled one")
      ->expected(0, 1)
      ->default_str("last")
      ->type_name("JOB");
  tune.add_option(
          "--baseline", flags->baseline,
          "compare the best programs at the end with this file of an earlier release (a log "
          "of records, the output of tune --json, or a compiled network); exit status 1 if "
          "one is slower")
      ->type_name("FILE")
      ->group("Output");
  AddCluster(tune, flags->cluster);
  MarkMostUsed(tune, "--db");
  return [flags](const Session& session) { return Tune(*flags, session); };
}

}  // namespace kiln::client
