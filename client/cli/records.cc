// kiln best, show and trial print measured programs in every form.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/packed_key.h"
#include "base/shell_word.h"
#include "base/terminal.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/check/reproduce.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/bindings.h"
#include "client/cli/commands.h"
#include "client/cli/compilation_target.h"
#include "client/cli/resolve.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "client/view/kernel_values.h"
#include "client/view/printable.h"
#include "client/view/render.h"
#include "client/view/render_kernel.h"
#include "client/view/sketches.h"
#include "client/view/summary.h"
#include "client/view/variant_groups.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/extensions.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "store/distill.h"
#include "store/import_log.h"
#include "store/measure_log.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kLeastColumns = 10;

// A record of another variant of the same computation, on the same target.
struct FasterVariant {
  // The record that it beats.
  v1::Record than;
  std::string variant, preparation;
  v1::Record record;
};

bool FasterThan(const v1::Record& a, const v1::Record& b) {
  return CostOf(a.result()) < CostOf(b.result());
}

// Returns faster variants of the records' workload, which jobs have tuned as its alternatives.
StatusOr<std::vector<FasterVariant>> FasterVariants(const std::vector<v1::Record>& records,
                                                    const std::vector<v1::JobStatus>& jobs,
                                                    Archive& archive) {
  // Variants by computation.
  std::map<std::string, v1::TaskSpec> variants;
  for (const v1::JobStatus& job : jobs) {
    for (int i = 0; i < job.tasks_size(); ++i) {
      const v1::TaskStatus& task = job.tasks(i);
      const v1::TaskStatus& of = job.tasks(VariantsOf(job, i)[0]);
      if (&of == &task || of.workload_id() != records[0].workload_id()) continue;
      variants.emplace(task.workload_id(), task.spec());
    }
  }
  std::vector<FasterVariant> faster;
  for (const v1::Record& record : records) {
    for (const auto& [id, spec] : variants) {
      v1::BestRequest request;
      request.set_workload_id(id);
      request.set_target(record.target());
      KILN_ASSIGN_OR_RETURN(const auto best, archive.Best(request));
      const auto first = std::min_element(best.begin(), best.end(), FasterThan);
      if (first == best.end() || !FasterThan(*first, record)) continue;
      faster.push_back({record, spec.variant(), spec.preparation(), *first});
    }
  }
  return faster;
}

std::string FasterVariantJson(const FasterVariant& variant) {
  return fmt::format(
      "{{\"faster_than\":{},\"variant\":{},\"preparation\":{},\"record\":{},\"cost_s\":{}}}",
      variant.than.id(), JsonString(variant.variant), JsonString(variant.preparation),
      variant.record.id(), CostOf(variant.record.result()));
}

// Returns the record with its DAG.
StatusOr<Rendered> RenderedRecord(const v1::Record& record, const Subject& subject,
                                  const std::string& form, Archive& archive) {
  Rendered rendered;
  rendered.steps = record.steps();
  rendered.target = record.target();
  rendered.caveat = UncheckedLines({record}) + RewrittenLines({record});
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
  return fmt::format("# trial {} (record {}), {}{}\n# target {}\n", TrialName(record), record.id(),
                     LatencyCell(CostOf(record.result())), device.empty() ? "" : " on " + device,
                     OneLine(record.target()));
}

struct Shown {
  Rendered what;
  // "": the schedule has no record.
  std::string heading;
};

StatusOr<Shown> WhatToShow(const SubjectFlags& flags, const std::string& form,
                           const std::string& steps_path, const Session& session) {
  if (!steps_path.empty()) {
    KILN_ASSIGN_OR_RETURN(const Rendered what, FromSteps(flags, form, steps_path, session));
    return Shown{what, ""};
  }
  if (form == "dag" && flags.record == 0) {
    KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
    if (workload.has_value()) return Shown{{.dag = workload->dag, .target = {}}, ""};
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, *archive));
  const bool any_target = subject.record.has_value();
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags, *archive));
  KILN_ASSIGN_OR_RETURN(Rendered rendered, RenderedRecord(record, subject, form, *archive));
  if (any_target && !flags.target.empty()) rendered.target = flags.target;
  return Shown{std::move(rendered), Heading(record)};
}

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

// Returns a line for each configuration, and how to get the source of a kernel with these values.
std::string ConfigurationLines(const std::vector<v1::Record>& records, const Session& session) {
  std::string lines;
  for (const v1::Record& record : records) {
    const std::string configuration = ConfigurationOf(record);
    if (configuration.empty()) continue;
    const std::string trial = TrialName(record);
    lines += fmt::format("trial {}: {}\n", trial, configuration);
    if (!handwritten::IsKernelPoint(record.steps())) continue;
    const auto target = target::ParseTarget(record.target());
    const bool is_gpu = target.ok() && target->is_gpu();
    lines += fmt::format("  its source, with these values: {}\n",
                         session.Command(fmt::format("show {} --as {}", trial,
                                                     is_gpu ? "cuda" : std::string(kCForm))));
  }
  return lines;
}

bool IsOfSeveral(const std::vector<v1::Record>& records,
                 const std::function<std::string(const v1::Record&)>& what) {
  std::set<std::string> all;
  for (const v1::Record& record : records) all.insert(what(record));
  return all.size() > 1;
}

// Returns a table that fits 80 columns, in a pipe too. It has the devices if there are several.
// kiln show prints the whole target and the number of the record.
std::string BestTable(const std::vector<v1::Record>& records, const Names& names) {
  constexpr int kMostLines = 3;
  const auto device = [](const v1::Record& record) { return OneLine(record.result().device()); };
  const bool with_devices = IsOfSeveral(records, device);
  std::vector<Table::Column> columns = {{"Trial"},
                                        {"Task", Table::kLeft, kLeastColumns, kMostLines},
                                        {"Latency", Table::kRight},
                                        {"Speed", Table::kRight},
                                        {"Target", Table::kLeft, kLeastColumns, kMostLines},
                                        {"Error", Table::kRight}};
  if (with_devices) columns.insert(columns.begin() + 5, {"Device", Table::kLeft, 6, kMostLines});
  Table table(std::move(columns));
  for (const v1::Record& record : records) {
    const double cost_s = CostOf(record.result());
    std::vector<std::string> cells = {TrialName(record),
                                      NameOf(record, names),
                                      LatencyCell(cost_s),
                                      SpeedCell(record.flop_count(), cost_s),
                                      OneLine(BriefTarget(record.target())),
                                      ErrorCell(record.result())};
    if (with_devices) cells.insert(cells.begin() + 5, device(record));
    table.AddRow(std::move(cells));
  }
  return table.ToString(TerminalColumns(STDOUT_FILENO));
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

// Returns whether the subject is an operator without arguments: "matmul".
bool IsOperatorAlone(const SubjectFlags& flags) {
  return flags.arguments.op.empty() && flags.arguments.args.empty() && flags.record == 0 &&
         !FileExists(flags.what) && dag::FindOp(flags.what).ok();
}

// Prints the best records of all computations of an operator, found by the jobs' names.
Status BestOfOperator(const SubjectFlags& flags, const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const dag::OpInfo* const op, dag::FindOp(flags.what));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(std::nullopt));
  std::set<std::string> ids;
  for (const v1::JobStatus& job : jobs) {
    for (const v1::TaskStatus& task : job.tasks()) {
      const std::string& description = task.spec().description();
      const auto names = {flags.what, std::string(op->name)};
      const bool is_one = std::ranges::any_of(
          names, [&](const std::string& name) { return description.starts_with(name + " "); });
      if (is_one && !task.workload_id().empty()) ids.insert(task.workload_id());
    }
  }
  std::vector<v1::Record> records;
  for (const std::string& id : ids) {
    Subject subject;
    subject.workload_id = id;
    const StatusOr<std::vector<v1::Record>> best = BestOf(subject, flags, archive);
    if (best.status().code() == StatusCode::kNotFound) continue;
    KILN_RETURN_IF_ERROR(best.status());
    records.insert(records.end(), best->begin(), best->end());
  }
  if (records.empty()) {
    return NotFound("{} has no record of {}{}; {}", archive.Name(), flags.what,
                    flags.target.empty() ? "" : " for target " + flags.target, dag::Signature(*op));
  }
  if (session.json) {
    for (const v1::Record& record : records) fmt::print("{}\n", JsonOf(record));
    return OkStatus();
  }
  for (v1::Record& record : records) MakePrintable(record);
  fmt::print("{}{}{}\none of them: {}\n", BestTable(records, NamesOf(jobs)),
             UncheckedLines(records), RewrittenLines(records),
             session.Command(fmt::format("best {} --args ...", flags.what)));
  return OkStatus();
}

}  // namespace

Status BestCommand(const SubjectFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  if (IsOperatorAlone(flags)) return BestOfOperator(flags, session, *archive);
  const StatusOr<Subject> resolved = Resolve(flags, *archive);
  if (resolved.status().code() == StatusCode::kNotFound && !flags.what.empty()) {
    // The word may be a template of autotvm's logs.
    KILN_ASSIGN_OR_RETURN(const int64_t printed,
                          PrintBestOfTemplate(flags.what, flags.target, session, *archive));
    if (printed > 0) return OkStatus();
  }
  KILN_RETURN_IF_ERROR(resolved.status());
  const Subject& subject = *resolved;
  KILN_ASSIGN_OR_RETURN(auto records, BestOf(subject, flags, *archive));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  KILN_ASSIGN_OR_RETURN(const auto computations, ComputationsOfRecords(records, *archive));
  const bool several = subject.is_workload() && computations.size() > 1;
  std::vector<FasterVariant> faster;
  if (subject.is_workload() && !several) {
    KILN_ASSIGN_OR_RETURN(faster, FasterVariants(records, jobs, *archive));
  }
  if (session.json) {
    for (const v1::Record& record : records) fmt::print("{}\n", JsonOf(record));
    for (const FasterVariant& variant : faster) fmt::print("{}\n", FasterVariantJson(variant));
    return OkStatus();
  }
  for (v1::Record& record : records) MakePrintable(record);
  const Names names = NamesOf(jobs);
  fmt::print("{}{}{}{}", BestTable(records, names), ConfigurationLines(records, session),
             UncheckedLines(records), RewrittenLines(records));
  if (several) {
    fmt::print("{} computations have this key:\n", computations.size());
    for (const NamedComputation& computation : computations) {
      fmt::print("  {}\n", ComputationText(computation));
    }
  }
  for (const FasterVariant& variant : faster) {
    fmt::print("faster than trial {}: {}, {}, trial {}\n  takes prepared inputs: {}\n",
               TrialName(variant.than), OneLine(variant.variant),
               LatencyCell(CostOf(variant.record.result())), TrialName(variant.record),
               OneLine(variant.preparation));
  }
  return OkStatus();
}

Status ShowCommand(const SubjectFlags& flags, const ShowFlags& show, const Session& session) {
  const std::string& form = show.form;
  KILN_ASSIGN_OR_RETURN(Shown shown, WhatToShow(flags, form, show.steps_path, session));
  shown.what.leave_out = show.leave_out;
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

Status SketchesCommand(const SubjectFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  Rendered of{.dag = workload.has_value() ? workload->dag : nullptr, .target = flags.target};
  if (of.dag == nullptr) {
    KILN_ASSIGN_OR_RETURN(const Shown shown, WhatToShow(flags, "schedule", "", session));
    of = shown.what;
  } else {
    KILN_ASSIGN_OR_RETURN(of.target, TargetOrDefault(flags.target, session));
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, PrintSketches(of.dag, of.target, session.json));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return OkStatus();
}

Status TrialCommand(const std::string& trial, const std::string& keep, const Session& session) {
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

}  // namespace kiln::client
