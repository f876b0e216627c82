// kiln choice query tells which schedule a computation gets if nothing is searched, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/units.h"
#include "base/text/utf8.h"
#include "base/thread_pool.h"
#include "client/archive.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/default_records_flags.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/schedules/requested_computation.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/view/json.h"
#include "client/view/render.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/target/target.h"
#include "rpc/hardware_message.h"
#include "scheduler/words/format.h"
#include "store/autotvm_log.h"

namespace kiln::client {
namespace {

// Options of the schedule that a computation gets if nothing is searched (search/choice/context.h).
struct ChoiceFlags {
  SubjectFlags subject;
  // Form in which the schedule is printed too, as for kiln show; "": it is not printed.
  std::string form;
  // True: no record of another computation or another target is used.
  bool without_compatible = false;
  // True: no schedule that is chosen without measuring is used.
  bool without_sample = false;
  // Seed of that choice.
  uint64_t seed = 1;
  // Arguments of a template of autotvm as JSON; then `subject.what` names the template. "": it is
  // no template.
  std::string template_args, template_kwargs = "{}";
  DefaultRecords defaults;
};

// The chosen schedule and the reason.
struct Answer {
  // `see` is a command; "": none.
  std::string schedule, because, see;
};

constexpr char kNoneIsSet[] = "no schedule is set for it";

std::string NoRecordMessage(const ChoiceFlags& flags) {
  return fmt::format("{}, and it has no record for this target{}", kNoneIsSet,
                     flags.without_compatible
                         ? ""
                         : "; nor has a computation with the same stages one that could be reused");
}

// A record without a number is a shipped one.
Answer ShippedAnswer(const v1::QueryScheduleReply& reply, const ChoiceFlags& flags) {
  return {fmt::format("from {}, {} on {}", flags.defaults.Name(), LatencyCell(reply.cost_s()),
                      OneLine(reply.device())),
          fmt::format("{}, and it has no record of yours for this target", kNoneIsSet), ""};
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
      if (trial.empty()) return ShippedAnswer(reply, flags);
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
      return Answer{"none: the loops as they are declared", NoRecordMessage(flags), ""};
  }
}

std::string QueryJson(const RequestedComputation& asked, const v1::QueryScheduleReply& reply) {
  return fmt::format("{{\"workload_id\":{},\"name\":{},\"target\":{},\"choice\":{}}}",
                     JsonString(dag::WorkloadId(*asked.dag)), JsonString(asked.name),
                     JsonString(target::PrintTarget(asked.target)), JsonOf(reply));
}

Status PrintAnswer(const RequestedComputation& asked, const v1::QueryScheduleReply& reply,
                   const ChoiceFlags& flags, const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const Answer answer, AnswerOf(reply, flags, session, archive));
  // Lines above a schedule become comments of its text.
  const std::string_view mark = flags.form == "schedule" ? "# " : "";
  if (flags.form.empty() || flags.form == "schedule") {
    fmt::print("{}{} for {}\n{}  schedule  {}\n{}  because   {}\n", mark, asked.name,
               OneLine(target::PrintTarget(asked.target)), mark, answer.schedule, mark,
               answer.because);
    if (!answer.see.empty()) fmt::print("{}  see       {}\n", mark, answer.see);
  }
  if (flags.form.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::string text,
                        Render({.dag = asked.dag,
                                .steps = reply.steps().empty() ? "[]" : reply.steps(),
                                .target = target::PrintTarget(asked.target)},
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

Status QueryChoice(const ChoiceFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, OpenBestRecords(session, flags.defaults));
  if (!flags.template_args.empty()) return QueryConfig(flags, session, *archive);
  KILN_ASSIGN_OR_RETURN(const RequestedComputation asked,
                        RequestedComputationOf(flags.subject, session, *archive));
  v1::QueryScheduleRequest request;
  request.set_dag(dag::PrintDag(*asked.dag));
  request.set_target(target::PrintTarget(asked.target));
  *request.mutable_hardware() =
      HardwareMessage(target::DefaultHardware(asked.target, AvailableCpus()));
  request.set_include_compatible(!flags.without_compatible);
  request.set_or_sample(!flags.without_sample);
  request.set_seed(flags.seed);
  request.set_as_deployed(flags.subject.as_deployed);
  KILN_ASSIGN_OR_RETURN(const v1::QueryScheduleReply reply, archive->QuerySchedule(request));
  if (!session.json) return PrintAnswer(asked, reply, flags, session, *archive);
  fmt::print("{}\n", QueryJson(asked, reply));
  return OkStatus();
}

}  // namespace

Run AddChoiceQuery(CLI::App& query, SessionFlags& session) {
  const auto flags = std::make_shared<ChoiceFlags>();
  query.description("the schedule that kiln compile would take, and why that one");
  AddSubject(query, session, flags->subject, "the target [llvm; of a record its own]");
  AddDeployment(query, flags->subject);
  AddDefaultRecords(query, flags->defaults);
  query.add_option("--as", flags->form, "print the schedule as well, in a form of kiln show")
      ->check(CLI::IsMember(RenderForms()));
  query.add_flag("--without-compatible", flags->without_compatible,
                 "ignore records of other computations and targets");
  query.add_flag("--without-sample", flags->without_sample,
                 "refuse a schedule that is chosen without measuring");
  query.add_option("--seed", flags->seed, "of a schedule that is chosen without measuring")
      ->check(NotNegative())
      ->capture_default_str();
  CLI::Option* template_args =
      query
          .add_option("--template-args", flags->template_args,
                      "instead the configuration of a template of autotvm: of the one named, "
                      "with these arguments as a line of its logs has them")
          ->type_name("JSON");
  query
      .add_option("--template-kwargs", flags->template_kwargs,
                  "with --template-args: its keyword arguments")
      ->type_name("JSON")
      ->needs(template_args)
      ->capture_default_str();
  return Plain([flags](const Session& session) { return QueryChoice(*flags, session); });
}

}  // namespace kiln::client
