// kiln choice pin pins a schedule: from now on the subject's computation gets it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/resolve.h"
#include "client/cli/schedule_source.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/schedules/requested_computation.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct PinFlags {
  SubjectFlags subject;
  // File of the schedule (docs/schedules.md), "-": stdin; "": the subject's best record.
  std::string schedule;
};

Status Pin(const RequestedComputation& asked, const std::string& steps, const std::string& what,
           const Session& session, Archive& archive) {
  v1::SetScheduleRequest request;
  request.set_dag(dag::PrintDag(*asked.dag));
  request.set_target(target::PrintTarget(asked.target));
  request.set_steps(steps);
  KILN_ASSIGN_OR_RETURN(const bool was_set, archive.SetSchedule(request));
  if (session.json) {
    fmt::print("{{\"workload_id\":{},\"target\":{},\"was_set\":{}}}\n",
               JsonString(dag::WorkloadId(*asked.dag)), JsonString(request.target()), was_set);
    return OkStatus();
  }
  fmt::print("{} for {}: set to {}{}\n", asked.name, OneLine(ShortTarget(request.target())), what,
             was_set ? ", in the place of another" : "");
  return OkStatus();
}

// Pins the best record of each task of a job, or of a workload for each target.
Status PinRecords(const SubjectFlags& flags, const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, archive));
  KILN_ASSIGN_OR_RETURN(const auto records, BestOf(subject, flags, archive));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.JobsWithoutResults());
  const Names names = NamesOf(jobs);
  for (const v1::Record& record : records) KILN_RETURN_IF_ERROR(CheckHasSchedules(record));
  for (const v1::Record& record : records) {
    KILN_ASSIGN_OR_RETURN(const RequestedComputation asked,
                          RequestedComputationOfRecord(record, subject, names, archive));
    KILN_RETURN_IF_ERROR(Pin(asked, record.steps(),
                             fmt::format("the schedule of trial {}, {}", TrialName(record),
                                         LatencyCell(CostOf(record.result()))),
                             session, archive));
  }
  return OkStatus();
}

Status PinSchedule(const PinFlags& flags, const Session& session) {
  const SubjectFlags& subject = flags.subject;
  const std::string& path = flags.schedule;
  if (subject.what.empty() && subject.arguments.op.empty())
    return InvalidArgument("expected what to set a schedule for: an operator, a trial, a job");
  // The schedule of a file may be the first entry of a new database.
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/!path.empty()));
  if (path.empty()) return PinRecords(subject, session, *archive);
  KILN_ASSIGN_OR_RETURN(const RequestedComputation asked,
                        RequestedComputationOf(subject, session, *archive));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, ReadSchedule(path, asked.dag));
  return Pin(asked, schedule::PrintSteps(state.steps()),
             fmt::format("the schedule of {}", path == "-" ? "stdin" : OneLine(path)), session,
             *archive);
}

}  // namespace

Run AddChoicePin(CLI::App& pin, SessionFlags& session) {
  const auto flags = std::make_shared<PinFlags>();
  pin.description(
      "set a schedule for a computation and target: it goes before all records, for all who use "
      "the database or scheduler");
  AddSubject(pin, session, flags->subject,
             "with --schedule: the target [llvm; of a record its own]; else only targets that "
             "start so");
  pin.add_option("--schedule", flags->schedule,
                 "this schedule, as `kiln show --as schedule` prints it; - = stdin [the best "
                 "record]")
      ->type_name("FILE");
  return Plain([flags](const Session& session) { return PinSchedule(*flags, session); });
}

}  // namespace kiln::client
