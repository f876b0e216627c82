// kiln best prints the best records of a subject.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/computations.h"
#include "client/cli/default_records_flags.h"
#include "client/cli/records/commands.h"
#include "client/cli/resolve.h"
#include "client/cli/session_flags.h"
#include "client/cli/subject_flags.h"
#include "client/view/json.h"
#include "client/view/kernel_values.h"
#include "client/view/printable.h"
#include "client/view/render_kernel.h"
#include "client/view/summary.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/target/target.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kMinColumns = 10;

// A record of another variant of the same computation, on the same target.
struct FasterVariant {
  // The record that it beats.
  v1::Record than;
  std::string variant, preparation;
  v1::Record record;
};

bool FasterThan(const v1::Record& a, const v1::Record& b) {
  return store::RankOf(a) < store::RankOf(b);
}

// Costs of different ways of measuring are not comparable.
void KeepMeasuredAs(const std::string& way, std::vector<v1::Record>& records) {
  std::erase_if(records,
                [&](const v1::Record& record) { return record.result().measured_as() != way; });
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
      KILN_ASSIGN_OR_RETURN(auto best, archive.Best(request));
      KeepMeasuredAs(record.result().measured_as(), best);
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
  constexpr int kMaxLines = 3;
  const auto device = [](const v1::Record& record) { return OneLine(record.result().device()); };
  const auto way = [](const v1::Record& record) { return OneLine(record.result().measured_as()); };
  const bool with_devices = IsOfSeveral(records, device), with_ways = IsOfSeveral(records, way);
  std::vector<Table::Column> columns = {{"Trial"},
                                        {"Task", Table::kLeft, kMinColumns, kMaxLines},
                                        {"Latency", Table::kRight},
                                        {"Speed", Table::kRight},
                                        {"Target", Table::kLeft, kMinColumns, kMaxLines},
                                        {"Error", Table::kRight}};
  if (with_devices) columns.insert(columns.begin() + 5, {"Device", Table::kLeft, 6, kMaxLines});
  if (with_ways) columns.insert(columns.begin() + 5, {"Measured as", Table::kLeft, 6, kMaxLines});
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
    if (with_ways) cells.insert(cells.begin() + 5, way(record));
    table.AddRow(std::move(cells));
  }
  return table.ToString(TerminalColumns(STDOUT_FILENO));
}

// Returns a line for each record that other finalists equal.
StatusOr<std::string> EqualLines(const std::vector<v1::Record>& records, Archive& archive) {
  std::string lines;
  for (const v1::Record& record : records) {
    std::vector<std::string> names;
    for (const int64_t id : record.equal_record_ids()) {
      const StatusOr<v1::Record> equal = archive.GetRecord(id);
      // Somebody may have deleted it meanwhile.
      if (equal.status().code() == StatusCode::kNotFound) continue;
      KILN_RETURN_IF_ERROR(equal.status());
      names.push_back(TrialName(*equal));
    }
    if (names.empty()) continue;
    lines += fmt::format("trial {} is not significantly different from trial{} {}\n",
                         TrialName(record), names.size() == 1 ? "" : "s", fmt::join(names, ", "));
  }
  return lines;
}

// Returns whether the subject is an operator without arguments: "matmul".
bool IsOperatorAlone(const SubjectFlags& flags) {
  return flags.arguments.op.empty() && flags.arguments.args.empty() && flags.record == 0 &&
         !FileExists(flags.what) && dag::FindOp(flags.what).ok();
}

// Prints the best records of all computations of an operator, found by the jobs' names.
Status BestOfOperator(const SubjectFlags& flags, const DefaultRecords& defaults,
                      const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const dag::OpInfo* const op, dag::FindOp(flags.what));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.JobsWithoutResults());
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
  KILN_ASSIGN_OR_RETURN(const std::string equal, EqualLines(records, archive));
  fmt::print("{}{}{}{}{}{}\none of them: {}\n", BestTable(records, NamesOf(jobs)), equal,
             ShippedLines(records, defaults), UncheckedLines(records), MarkedLines(records),
             RewrittenLines(records),
             session.Command(fmt::format("best {} --args ...", flags.what)));
  return OkStatus();
}

Status PrintBest(const SubjectFlags& flags, const DefaultRecords& defaults,
                 const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, OpenBestRecords(session, defaults));
  if (IsOperatorAlone(flags)) return BestOfOperator(flags, defaults, session, *archive);
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
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->JobsWithoutResults());
  const Names names = NamesOf(jobs);
  const std::vector<NamedComputation> computations = ComputationsOfRecords(records, names);
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
  KILN_ASSIGN_OR_RETURN(const std::string equal, EqualLines(records, *archive));
  fmt::print("{}{}{}{}{}{}{}", BestTable(records, names), equal, ShippedLines(records, defaults),
             ConfigurationLines(records, session), UncheckedLines(records), MarkedLines(records),
             RewrittenLines(records));
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

}  // namespace

Run AddBest(CLI::App& best, SessionFlags& session) {
  const auto flags = std::make_shared<SubjectFlags>();
  const auto defaults = std::make_shared<DefaultRecords>();
  best.description("the best record of a workload, a job, a kernel or a template of autotvm");
  AddSubject(best, session, *flags);
  AddKernelSpace(best, *flags);
  AddDeployment(best, *flags);
  AddDefaultRecords(best, *defaults);
  return Plain(
      [flags, defaults](const Session& session) { return PrintBest(*flags, *defaults, session); });
}

}  // namespace kiln::client
