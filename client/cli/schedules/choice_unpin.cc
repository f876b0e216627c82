// kiln choice unpin removes the pinned schedules of the subject's computations.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/resolve.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/target/meaning.h"

namespace kiln::client {
namespace {

// Texts of the subject's computations by identity.
using Texts = std::map<std::string, std::string>;

StatusOr<Texts> TextsOfJob(const std::string& job_id, const SubjectFlags& flags, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(job_id));
  Texts texts;
  for (int i = 0; i < job.tasks_size(); ++i) {
    if (flags.task.has_value() && *flags.task != i) continue;
    texts.emplace(job.tasks(i).workload_id(), job.tasks(i).spec().dag());
  }
  return texts;
}

StatusOr<Texts> TextsOf(const SubjectFlags& flags, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (workload.has_value())
    return Texts{{dag::WorkloadId(*workload->dag), dag::PrintDag(*workload->dag)}};
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, archive));
  if (!subject.job_id.empty()) return TextsOfJob(subject.job_id, flags, archive);
  KILN_ASSIGN_OR_RETURN(const auto records, BestOf(subject, flags, archive));
  Texts texts;
  for (const v1::Record& record : records) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, DagOfRecord(record, subject, archive));
    texts.emplace(dag::WorkloadId(*dag), dag::PrintDag(*dag));
  }
  return texts;
}

// Returns whether the pinned schedule is for the target: a prefix of its text, or a target that
// means the same; "" means any target.
bool IsFor(const std::string& target, const store::PinnedSchedule& pinned) {
  return pinned.target.starts_with(target) || target::MeanSame(pinned.target, {}, target, {});
}

Status Unpin(const SubjectFlags& subject, const Session& session) {
  if (subject.what.empty() && subject.arguments.op.empty())
    return InvalidArgument("expected what to end the schedule of: an operator, a trial, a job");
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Texts texts, TextsOf(subject, *archive));
  int64_t ended = 0;
  for (const auto& [id, text] : texts) {
    KILN_ASSIGN_OR_RETURN(const auto all, archive->PinnedSchedules(id));
    for (const store::PinnedSchedule& pinned : all) {
      if (!IsFor(subject.target, pinned)) continue;
      v1::SetScheduleRequest request;
      request.set_dag(text);
      request.set_target(pinned.target);
      KILN_ASSIGN_OR_RETURN(const bool was_set, archive->SetSchedule(request));
      ended += was_set;
    }
  }
  if (ended == 0) {
    return NotFound("no schedule is set for it{} in {}; kiln choice list lists those that are",
                    subject.target.empty() ? "" : " and target " + OneLine(subject.target),
                    archive->Name());
  }
  if (session.json) {
    fmt::print("{{\"ended\":{}}}\n", ended);
  } else {
    fmt::print("{} no longer set\n", FormatCount(ended));
  }
  return OkStatus();
}

}  // namespace

Run AddChoiceUnpin(CLI::App& unpin, SessionFlags& session) {
  const auto flags = std::make_shared<SubjectFlags>();
  unpin.description("remove the pinned schedule of a computation, so that records count again");
  AddSubject(unpin, session, *flags);
  return Plain([flags](const Session& session) { return Unpin(*flags, session); });
}

}  // namespace kiln::client
