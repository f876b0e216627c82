// kiln trial builds and measures a recorded trial again, or tries a schedule that a person wrote.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/server/grpc_server.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/check/reproduce.h"
#include "client/cli/measuring_flags.h"
#include "client/cli/records/commands.h"
#include "client/cli/records/schedule_trial.h"
#include "client/cli/resolve.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "client/view/summary.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct TrialFlags {
  // The trial, or the computation of the schedule.
  SubjectFlags subject;
  // Path of a schedule's text; "-": stdin; "": the recorded trial is repeated.
  std::string schedule;
  // Folder for requests and binaries; "": they are not kept.
  std::string keep;
  // Never added: a trial is measured with the usual options.
  MeasuringFlags measuring;
};

StatusOr<TrialRequest> RequestOf(const std::string& name, Archive& archive) {
  const auto trial = ParseTrialName(name);
  if (!trial.has_value()) {
    return InvalidArgument("'{}' is no trial: expected JOB/NUMBER, for instance 4f3a/12", name);
  }
  TrialRequest request;
  KILN_ASSIGN_OR_RETURN(request.record, FindTrial(*trial, archive));
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(trial->job_id));
  request.spec = job.spec();
  return request;
}

std::string OutcomeText(uint32_t error, const std::string& message, double cost_s) {
  if (error == v1::NO_ERROR) return FormatSeconds(cost_s);
  return fmt::format("{}: {}", ErrorName(error), message);
}

void PrintReplay(const TrialRequest& request, const TrialReplay& replay) {
  const v1::TrialResult& then = request.record.result();
  fmt::print("then      {}\n", OutcomeText(then.error(), FirstLine(then.message()), CostOf(then)));
  const bool built = replay.build.error() == v1::NO_ERROR;
  if (!built) {
    fmt::print("now       {}\n", OutcomeText(replay.build.error(), replay.build.message(), 0));
  } else if (!replay.reference_problem.empty()) {
    fmt::print("now       built, but not its reference: {}\n", replay.reference_problem);
  } else {
    const v1::TrialResult& now = replay.measure.result();
    fmt::print("now       {}\n", OutcomeText(now.error(), now.message(), CostOf(now)));
    if (now.error() == v1::NO_ERROR) {
      v1::Record record = request.record;
      *record.mutable_result() = now;
      fmt::print("checked   {}\n", CheckText(record));
    }
  }
}

Status RepeatTrial(const std::string& trial, const std::string& keep, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(TrialRequest request, RequestOf(trial, *archive));
  KILN_ASSIGN_OR_RETURN(const TempDir temporary, TempDir::Make("kiln-trial"));
  const std::string& folder = keep.empty() ? temporary.path() : keep;
  KILN_RETURN_IF_ERROR(MakeDirs(folder));
  KILN_ASSIGN_OR_RETURN(TrialReplay replay, ReplayTrial(request, folder));
  if (session.json) {
    replay.build.mutable_artifact()->clear_binary();
    fmt::print("{{\"trial\":{},\"build\":{},\"measure\":{}}}\n", JsonOf(request.record),
               JsonOf(replay.build), JsonOf(replay.measure));
    return OkStatus();
  }
  MakePrintable(request.record);
  MakePrintable(request.spec);
  MakePrintable(replay.build);
  MakePrintable(replay.measure);
  PrintReplay(request, replay);
  if (keep.empty()) {
    fmt::print("to keep the files in ./kiln-trial and get the commands: {}\n",
               session.Command(fmt::format("trial {} --keep kiln-trial", trial)));
    return OkStatus();
  }
  fmt::print("build     {}\n", replay.build_command);
  if (!replay.measure_command.empty()) fmt::print("measure   {}\n", replay.measure_command);
  return OkStatus();
}

StatusOr<int> Try(const TrialFlags& flags, const Session& session) {
  if (flags.schedule.empty()) {
    if (flags.subject.what.empty())
      return InvalidArgument("expected a trial, JOB/N, or a schedule with --schedule FILE");
    KILN_RETURN_IF_ERROR(RepeatTrial(flags.subject.what, flags.keep, session));
    return 0;
  }
  InitGrpc();
  v1::TuneOptions options;
  flags.measuring.Set(/*may_idle=*/false, options);
  return TrySchedule({flags.subject, flags.schedule, options.measure(), options.build_timeout_ms()},
                     session);
}

}  // namespace

Run AddTrial(CLI::App& trial, SessionFlags& session) {
  const auto flags = std::make_shared<TrialFlags>();
  trial.description(
      "build and measure one recorded trial again, alone; or a "
      "schedule that you wrote, and keep it");
  AddSubject(trial, session, flags->subject);
  CLI::Option* schedule =
      trial
          .add_option("--schedule", flags->schedule,
                      "a schedule as `kiln show --as schedule` prints it, of the operator, text "
                      "file or record; - = stdin")
          ->type_name("FILE");
  trial.add_option("--keep", flags->keep, "keep requests and binaries in this folder")
      ->excludes(schedule);
  return [flags](const Session& session) { return Try(*flags, session); };
}

}  // namespace kiln::client
