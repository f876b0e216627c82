// kiln choice tells which schedule a computation gets if nothing is searched, and why, and sets
// schedules.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/commands.h"
#include "client/cli/compilation_target.h"
#include "client/cli/resolve.h"
#include "client/cli/schedule_source.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "client/view/render.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "compiler/target/meaning.h"
#include "compiler/target/recorded.h"
#include "compiler/target/target.h"
#include "rpc/hardware_message.h"
#include "store/autotvm_log.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kLeastColumns = 10;

// The computation that is meant, and its target.
struct Asked {
  dag::DagPtr dag;
  // Name for people.
  std::string name;
  target::Target target;
};

Status CheckHasSchedules(const v1::Record& record) {
  if (!handwritten::IsKernelPoint(record.steps())) return OkStatus();
  return InvalidArgument(
      "trial {} is of a hand-written kernel, which has parameters and no schedule: kiln best and "
      "kiln show print them",
      TrialName(record));
}

// Returns the record's computation and target as a question.
StatusOr<Asked> AskedOfRecord(const v1::Record& record, const Subject& subject, const Names& names,
                              Archive& archive) {
  KILN_RETURN_IF_ERROR(CheckHasSchedules(record));
  Asked asked;
  KILN_ASSIGN_OR_RETURN(asked.dag, DagOfRecord(record, subject, archive));
  KILN_ASSIGN_OR_RETURN(target::RecordedTarget recorded,
                        target::ParseRecordedTarget(record.target()));
  asked.target = std::move(recorded.target);
  asked.name = NameOf(record, names);
  return asked;
}

StatusOr<Asked> AskedOf(const SubjectFlags& flags, const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (workload.has_value()) {
    Asked asked;
    KILN_ASSIGN_OR_RETURN(const std::string target, TargetOrDefault(flags.target, session));
    KILN_ASSIGN_OR_RETURN(asked.target, CompilationTarget(target, session));
    asked.dag = workload->dag;
    asked.name = OneLine(workload->description);
    return asked;
  }
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags, archive));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(std::nullopt));
  return AskedOfRecord(record, subject, NamesOf(jobs), archive);
}

std::string TargetText(const target::Target& target) { return target::PrintTarget(target); }

// ---- query ----------------------------------------------------------------------------------

// The chosen schedule and the reason.
struct Answer {
  // `see` is a command; "": none.
  std::string schedule, because, see;
};

constexpr char kNoneIsSet[] = "no schedule is set for it";

std::string NothingIsKnown(const ChoiceFlags& flags) {
  return fmt::format("{}, and it has no record for this target{}", kNoneIsSet,
                     flags.without_compatible
                         ? ""
                         : "; nor has a computation with the same stages one that could be reused");
}

StatusOr<Answer> AnswerOf(const v1::QueryScheduleReply& reply, const ChoiceFlags& flags,
                          const Session& session, Archive& archive) {
  std::string trial;
  if (reply.record_id() != 0) {
    KILN_ASSIGN_OR_RETURN(const v1::Record record, archive.GetRecord(reply.record_id()));
    trial = TrialName(record);
  }
  const std::string see = trial.empty() ? "" : session.Command("show " + trial);
  switch (reply.source()) {
    case v1::SCHEDULE_SET:
      return Answer{"one that is set", "what kiln choice pin has set goes before all records", ""};
    case v1::SCHEDULE_RECORD:
      return Answer{fmt::format("trial {} (record {}), {}{}", trial, reply.record_id(),
                                LatencyCell(reply.cost_s()),
                                reply.device().empty() ? "" : " on " + OneLine(reply.device())),
                    fmt::format("{}; of its records for this target this is the best", kNoneIsSet),
                    see};
    case v1::SCHEDULE_COMPATIBLE:
      return Answer{
          fmt::format("that of trial {} (record {}), of {}", trial, reply.record_id(),
                      OneLine(reply.reused_from())),
          fmt::format("{}, and it has no record for this target; of all with the same stages this "
                      "one has the least cost times distance ({:g}). How fast it is here was never "
                      "measured",
                      kNoneIsSet, reply.distance()),
          see};
    case v1::SCHEDULE_SAMPLE:
      return Answer{
          fmt::format("{}, {} predicted", OneLine(reply.origin()),
                      FormatSeconds(reply.predicted_s())),
          fmt::format(
              "{}, and no record for this target{} is known to be faster; chosen "
              "without measuring",
              kNoneIsSet,
              flags.without_compatible ? "" : ", nor one of a computation with the same stages,"),
          ""};
    default:
      return Answer{"none: the loops as they are declared", NothingIsKnown(flags), ""};
  }
}

std::string QueryJson(const Asked& asked, const v1::QueryScheduleReply& reply) {
  return fmt::format("{{\"workload_id\":{},\"name\":{},\"target\":{},\"choice\":{}}}",
                     JsonString(dag::WorkloadId(*asked.dag)), JsonString(asked.name),
                     JsonString(TargetText(asked.target)), JsonOf(reply));
}

Status PrintAnswer(const Asked& asked, const v1::QueryScheduleReply& reply,
                   const ChoiceFlags& flags, const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const Answer answer, AnswerOf(reply, flags, session, archive));
  // Lines above a schedule become comments of its text.
  const std::string_view mark = flags.form == "schedule" ? "# " : "";
  if (flags.form.empty() || flags.form == "schedule") {
    fmt::print("{}{} for {}\n{}  schedule  {}\n{}  because   {}\n", mark, asked.name,
               OneLine(TargetText(asked.target)), mark, answer.schedule, mark, answer.because);
    if (!answer.see.empty()) fmt::print("{}  see       {}\n", mark, answer.see);
  }
  if (flags.form.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::string text,
                        Render({.dag = asked.dag,
                                .steps = reply.steps().empty() ? "[]" : reply.steps(),
                                .target = TargetText(asked.target)},
                               flags.form));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return OkStatus();
}

// Queries the configuration of a template of autotvm.
Status QueryConfig(const ChoiceFlags& flags, const Session& session, Archive& archive) {
  if (flags.subject.target.empty()) {
    return InvalidArgument(
        "--template-args: expected the target as well, for instance --target \"cuda -model=t4\"");
  }
  v1::QueryConfigRequest request;
  request.set_target(flags.subject.target);
  request.set_task(flags.subject.what);
  request.set_args(flags.template_args);
  request.set_kwargs(flags.template_kwargs);
  KILN_ASSIGN_OR_RETURN(const v1::QueryConfigReply reply, archive.QueryConfig(request));
  if (reply.line().empty()) {
    return NotFound("{} has no record of {} with these arguments for a target such as {}",
                    archive.Name(), OneLine(flags.subject.what), OneLine(flags.subject.target));
  }
  if (session.json) {
    fmt::print("{}\n", reply.line());
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const store::AutotvmRecord record, store::ParseAutotvmLine(reply.line()));
  PrintConfiguration(record);
  return OkStatus();
}

// ---- pin ------------------------------------------------------------------------------------

Status Pin(const Asked& asked, const std::string& steps, const std::string& what,
           const Session& session, Archive& archive) {
  v1::SetScheduleRequest request;
  request.set_dag(dag::PrintDag(*asked.dag));
  request.set_target(TargetText(asked.target));
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
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(std::nullopt));
  const Names names = NamesOf(jobs);
  for (const v1::Record& record : records) KILN_RETURN_IF_ERROR(CheckHasSchedules(record));
  for (const v1::Record& record : records) {
    KILN_ASSIGN_OR_RETURN(const Asked asked, AskedOfRecord(record, subject, names, archive));
    KILN_RETURN_IF_ERROR(Pin(asked, record.steps(),
                             fmt::format("the schedule of trial {}, {}", TrialName(record),
                                         LatencyCell(CostOf(record.result()))),
                             session, archive));
  }
  return OkStatus();
}

// ---- unpin ----------------------------------------------------------------------------------

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

std::string NameOfPinned(const store::PinnedSchedule& pinned, const Names& names) {
  const auto found = names.by_id.find(pinned.workload_id);
  return found == names.by_id.end() ? std::string("-") : found->second;
}

size_t StepsOf(const store::PinnedSchedule& pinned) {
  const auto steps = schedule::ParseSteps(pinned.steps);
  return steps.ok() ? steps->size() : 0;
}

}  // namespace

Status QueryChoiceCommand(const ChoiceFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  if (!flags.template_args.empty()) return QueryConfig(flags, session, *archive);
  KILN_ASSIGN_OR_RETURN(const Asked asked, AskedOf(flags.subject, session, *archive));
  v1::QueryScheduleRequest request;
  request.set_dag(dag::PrintDag(*asked.dag));
  request.set_target(TargetText(asked.target));
  *request.mutable_hardware() =
      HardwareMessage(target::DefaultHardware(asked.target, AvailableCpus()));
  request.set_include_compatible(!flags.without_compatible);
  request.set_or_sample(!flags.without_sample);
  request.set_seed(flags.seed);
  KILN_ASSIGN_OR_RETURN(const v1::QueryScheduleReply reply, archive->QuerySchedule(request));
  if (!session.json) return PrintAnswer(asked, reply, flags, session, *archive);
  fmt::print("{}\n", QueryJson(asked, reply));
  return OkStatus();
}

Status PinCommand(const SubjectFlags& subject, const std::string& path, const Session& session) {
  if (subject.what.empty() && subject.arguments.op.empty())
    return InvalidArgument("expected what to set a schedule for: an operator, a trial, a job");
  // The schedule of a file may be the first entry of a new database.
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/!path.empty()));
  if (path.empty()) return PinRecords(subject, session, *archive);
  KILN_ASSIGN_OR_RETURN(const Asked asked, AskedOf(subject, session, *archive));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, ReadSchedule(path, asked.dag));
  return Pin(asked, schedule::PrintSteps(state.steps()),
             fmt::format("the schedule of {}", path == "-" ? "stdin" : OneLine(path)), session,
             *archive);
}

Status UnpinCommand(const SubjectFlags& subject, const Session& session) {
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

Status ListPinnedCommand(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto all, archive->PinnedSchedules(""));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  const Names names = NamesOf(jobs);
  Table table({{"Task", Table::kLeft, kLeastColumns},
               {"Target", Table::kLeft, kLeastColumns},
               {"Steps", Table::kRight},
               {"Set"},
               {"Computation", Table::kLeft, kLeastColumns}});
  for (const store::PinnedSchedule& pinned : all) {
    if (session.json) {
      fmt::print("{{\"workload_id\":{},\"name\":{},\"target\":{},\"set_s\":{},\"steps\":{}}}\n",
                 JsonString(pinned.workload_id), JsonString(NameOfPinned(pinned, names)),
                 JsonString(pinned.target), pinned.pinned_s, JsonString(pinned.steps));
      continue;
    }
    table.AddRow({NameOfPinned(pinned, names), OneLine(ShortTarget(pinned.target)),
                  fmt::format("{}", StepsOf(pinned)), TimeText(pinned.pinned_s),
                  pinned.workload_id});
  }
  if (!session.json) fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  return OkStatus();
}

}  // namespace kiln::client
