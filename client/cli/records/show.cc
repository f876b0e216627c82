// kiln show prints a schedule in every form, and the sketches of a computation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/text/utf8.h"
#include "client/cli/compilation_target.h"
#include "client/cli/default_records_flags.h"
#include "client/cli/records/commands.h"
#include "client/cli/resolve.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/shipped/shipped_archive.h"
#include "client/view/json.h"
#include "client/view/render.h"
#include "client/view/sketches.h"
#include "client/view/summary.h"
#include "device/device_state.h"
#include "rpc/device_state_message.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct ShowFlags {
  SubjectFlags subject;
  std::string form = "schedule";
  // A file with steps instead of a record's; "none": the unscheduled loops.
  std::string steps_path;
  // Compiler passes that do not run.
  std::vector<std::string> leave_out;
  // True: the sketches of the computation are printed, schedules with blanks.
  bool sketches = false;
  DefaultRecords defaults;
};

// Returns the record with its DAG.
StatusOr<Rendered> RenderedRecord(const v1::Record& record, const Subject& subject,
                                  const std::string& form, Archive& archive) {
  Rendered rendered;
  rendered.steps = record.steps();
  rendered.target = record.target();
  rendered.caveat = UncheckedLines({record}) + MarkedLines({record}) + RewrittenLines({record});
  // If the job was deleted, parameters are shown without their source.
  if (const auto job = archive.Job(record.job_id()); job.ok())
    rendered.kernel = job->spec().options().kernel();
  // Steps need no computation.
  if (form == "steps") return rendered;
  KILN_ASSIGN_OR_RETURN(rendered.dag, DagOfRecord(record, subject, archive));
  return rendered;
}

StatusOr<Rendered> FromSteps(const SubjectFlags& flags, const std::string& form,
                             const std::string& steps_path, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (!workload.has_value()) {
    return InvalidArgument("--steps needs an operator or a text file: --op and --args");
  }
  Rendered rendered;
  rendered.dag = workload->dag;
  rendered.target = flags.target;
  if (FormNeedsTarget(form)) {
    KILN_ASSIGN_OR_RETURN(rendered.target, TargetOrDefault(flags.target, session));
  }
  if (steps_path == "none") return rendered;
  KILN_ASSIGN_OR_RETURN(rendered.steps, ReadFile(steps_path));
  return rendered;
}

// Returns comments that describe a schedule, to stand above it.
std::string Heading(const v1::Record& record) {
  const std::string device = OneLine(record.result().device());
  const std::string number =
      IsShippedRecord(record) ? "" : fmt::format(" (record {})", record.id());
  std::string text = fmt::format("# trial {}{}, {}{}\n# target {}\n", TrialName(record), number,
                                 LatencyCell(CostOf(record.result())),
                                 device.empty() ? "" : " on " + device, OneLine(record.target()));
  const std::string runner = OneLine(record.result().runner());
  if (!runner.empty()) text += fmt::format("# measured by runner {}\n", runner);
  const std::string state = device::PrintDeviceState(DeviceStateOf(record.result().device_state()));
  if (!state.empty()) text += fmt::format("# device at the time: {}\n", OneLine(state));
  return text;
}

struct Shown {
  Rendered what;
  // "": the schedule has no record.
  std::string heading;
};

StatusOr<Shown> SelectRecordToShow(const SubjectFlags& flags, const std::string& form,
                                   const std::string& steps_path, const DefaultRecords& defaults,
                                   const Session& session) {
  if (!steps_path.empty()) {
    KILN_ASSIGN_OR_RETURN(const Rendered what, FromSteps(flags, form, steps_path, session));
    return Shown{what, ""};
  }
  if (form == "dag" && flags.record == 0) {
    KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
    if (workload.has_value()) return Shown{{.dag = workload->dag, .target = {}}, ""};
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, OpenBestRecords(session, defaults));
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, *archive));
  const bool any_target = subject.record.has_value();
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags, *archive));
  KILN_ASSIGN_OR_RETURN(Rendered rendered, RenderedRecord(record, subject, form, *archive));
  if (any_target && !flags.target.empty()) rendered.target = flags.target;
  return Shown{std::move(rendered), Heading(record)};
}

Status ShowSchedule(const ShowFlags& flags, const Session& session) {
  const std::string& form = flags.form;
  KILN_ASSIGN_OR_RETURN(Shown shown, SelectRecordToShow(flags.subject, form, flags.steps_path,
                                                        flags.defaults, session));
  shown.what.leave_out = flags.leave_out;
  KILN_ASSIGN_OR_RETURN(const std::string text, Render(shown.what, form));
  if (session.json) {
    fmt::print("{}\n", ShownJson(form, shown.what.target, shown.what.steps, text));
    return OkStatus();
  }
  if (form == "schedule") fmt::print("{}", shown.heading);
  std::fwrite(text.data(), 1, text.size(), stdout);
  // The remark goes to stderr, since stdout may go into a file.
  fmt::print(stderr, "{}", shown.what.caveat);
  return OkStatus();
}

Status ShowSketches(const SubjectFlags& flags, const DefaultRecords& defaults,
                    const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  Rendered of{.dag = workload.has_value() ? workload->dag : nullptr, .target = flags.target};
  if (of.dag == nullptr) {
    KILN_ASSIGN_OR_RETURN(const Shown shown,
                          SelectRecordToShow(flags, "schedule", "", defaults, session));
    of = shown.what;
  } else {
    KILN_ASSIGN_OR_RETURN(of.target, TargetOrDefault(flags.target, session));
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, PrintSketches(of.dag, of.target, session.json));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return OkStatus();
}

Status Show(const ShowFlags& flags, const Session& session) {
  return flags.sketches ? ShowSketches(flags.subject, flags.defaults, session)
                        : ShowSchedule(flags, session);
}

}  // namespace

Run AddShow(CLI::App& show, SessionFlags& session) {
  const auto flags = std::make_shared<ShowFlags>();
  show.description("a schedule in every form, the best one by default");
  AddSubject(show, session, flags->subject);
  AddKernelSpace(show, flags->subject);
  show.add_option("--as", flags->form, "the form")
      ->check(CLI::IsMember(RenderForms()))
      ->capture_default_str();
  AddRecord(show, flags->subject);
  AddDefaultRecords(show, flags->defaults);
  show.add_option("--steps", flags->steps_path,
                  "with --op: a file with steps as JSON; none: the unscheduled loops")
      ->type_name("FILE");
  show.add_option("--leave-out", flags->leave_out,
                  "a pass of the compiler that does not run, as --as passes names it (may be "
                  "repeated)")
      ->type_name("PASS");
  show.add_flag(
          "--sketches", flags->sketches,
          "the sketches that a search fills in: loops with blanks, for --target [as for kiln tune]")
      ->excludes("--as")
      ->excludes("--steps");
  return Plain([flags](const Session& session) { return Show(*flags, session); });
}

}  // namespace kiln::client
