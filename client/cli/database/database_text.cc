#include "client/cli/database/database_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "base/console/terminal.h"
#include "base/json/json_cursor.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "proto/scheduler.pb.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Least columns of an example and of an advice in a table that is too wide.
constexpr int kMinColumns = 16;

StatusOr<std::string> IdentityOf(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(text));
  return dag::WorkloadId(*dag);
}

Status CheckCandidate(std::string_view text) {
  if (handwritten::IsKernelPoint(text)) return handwritten::ParseKernelPoint(text).status();
  return schedule::CheckStepsText(text);
}

Status CheckJobSpec(std::string_view bytes) {
  v1::JobSpec spec;
  if (spec.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return OkStatus();
  return DataLoss("{} bytes that are no JobSpec", bytes.size());
}

void PrintJson(const store::DatabaseReport& report, const std::string& path) {
  for (const store::Finding& finding : report.findings) {
    fmt::print("{{\"place\":{},\"fault\":{},\"count\":{},\"example\":{},\"advice\":{}}}\n",
               JsonQuote(finding.place), JsonQuote(finding.fault), finding.count,
               JsonQuote(finding.example), JsonQuote(finding.advice));
  }
  fmt::print(
      "{{\"file\":{},\"bytes\":{},\"records\":{},\"jobs\":{},\"schema\":{},\"known_schema\":{},"
      "\"findings\":{}}}\n",
      JsonQuote(path), report.size.bytes, report.size.records, report.size.jobs, report.size.schema,
      report.known_schema, report.findings.size());
}

}  // namespace

StatusOr<store::DatabaseReport> CheckAllOf(const std::string& path) {
  return store::CheckDatabaseFile(
      path, {.identity = IdentityOf, .steps = CheckCandidate, .job_spec = CheckJobSpec});
}

void PrintReport(const store::DatabaseReport& report, const std::string& path,
                 const Session& session) {
  if (session.json) return PrintJson(report, path);
  Table table({{"In"},
               {"Found", Table::kLeft, kMinColumns},
               {"Times", Table::kRight},
               {"First", Table::kLeft, kMinColumns},
               {"What to do", Table::kLeft, kMinColumns}});
  for (const store::Finding& finding : report.findings) {
    table.AddRow({finding.place, finding.fault, FormatCount(finding.count),
                  OneLine(finding.example), finding.advice});
  }
  if (!report.findings.empty()) fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  if (!report.is_readable) {
    fmt::print("{} is damaged ({})\n", path, FormatBytes(report.size.bytes));
    return;
  }
  fmt::print("{} has {} and {} ({}, schema {}){}\n", path, Counted(report.size.records, "record"),
             Counted(report.size.jobs, "job"), FormatBytes(report.size.bytes), report.size.schema,
             report.findings.empty() ? ": nothing is wrong" : "");
  if (report.size.schema < report.known_schema) {
    fmt::print("it is brought to schema {} when it is opened for writing\n", report.known_schema);
  }
}

}  // namespace kiln::client
