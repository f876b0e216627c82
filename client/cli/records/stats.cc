// kiln records stats counts records by their computations, templates and targets.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/arrays/packed_key.h"
#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/computations.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"
#include "scheduler/words/format.h"
#include "store/autotvm_record.h"
#include "store/record.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kMinColumns = 10;

void KeepBest(double cost_s, std::optional<double>& best_s) {
  if (!best_s.has_value() || cost_s < *best_s) best_s = cost_s;
}

std::string BestJson(const std::optional<double>& best_s) {
  return best_s.has_value() ? fmt::format("{}", *best_s) : "null";
}

// ---- schedules ------------------------------------------------------------------------------

struct ScheduleRow {
  int64_t records = 0, failed = 0;
  std::optional<double> best_s;
  double flop_count = 0;
  std::set<std::string> jobs;
  std::string name;
};

struct ScheduleStats {
  // Rows by key, computation and target.
  std::map<std::array<std::string, 3>, ScheduleRow> rows;
  int64_t rewritten_layouts = 0;
};

void Count(const v1::Record& record, const Names& names, ScheduleStats& stats) {
  ScheduleRow& row = stats.rows[{record.workload_key(), record.workload_id(), record.target()}];
  if (row.name.empty()) row.name = NameOf(record, names);
  const double cost_s = CostOf(record.result());
  ++row.records;
  if (record.result().error() != v1::NO_ERROR) ++row.failed;
  const bool rewritten = HasUnsaidLayouts(record.layout_rewrite_option(), record.workload_key());
  stats.rewritten_layouts += rewritten;
  if (cost_s > 0 && !record.result().stopped_early() && !rewritten) KeepBest(cost_s, row.best_s);
  row.flop_count = record.flop_count();
  row.jobs.insert(record.job_id());
}

void PrintJson(const ScheduleStats& stats) {
  for (const auto& [key, row] : stats.rows) {
    fmt::print(
        "{{\"workload_key\":{},\"workload_id\":{},\"target\":{},\"jobs\":{},\"records\":{},"
        "\"failed\":{},\"best_cost_s\":{}}}\n",
        JsonString(key[0]), JsonString(key[1]), JsonString(key[2]), row.jobs.size(), row.records,
        row.failed, BestJson(row.best_s));
  }
}

void PrintTable(const ScheduleStats& stats) {
  Table table({{"Task", Table::kLeft, kMinColumns},
               {"Target", Table::kLeft, kMinColumns},
               {"Jobs", Table::kRight},
               {"Records", Table::kRight},
               {"Failed", Table::kRight},
               {"Best", Table::kRight},
               {"Speed", Table::kRight}});
  for (const auto& [key, row] : stats.rows) {
    table.AddRow({row.name, OneLine(ShortTarget(key[2])), fmt::format("{}", row.jobs.size()),
                  FormatCount(row.records), FormatCount(row.failed),
                  LatencyCell(row.best_s.value_or(0)),
                  SpeedCell(row.flop_count, row.best_s.value_or(0))});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  if (stats.rewritten_layouts > 0) {
    fmt::print(
        "{} of logs measured with inputs laid out for the program: such latencies cannot be "
        "compared "
        "with others and are left out of Best\n",
        Counted(stats.rewritten_layouts, "record"));
  }
}

// ---- autotvm --------------------------------------------------------------------------------

struct AutotvmRow {
  int64_t records = 0;
  std::array<int64_t, store::kNumErrorKinds> by_error{};
  // Best seconds by arguments.
  std::map<std::string, std::optional<double>> best_s;
};

// Rows by template and target.
using AutotvmStats = std::map<std::array<std::string, 2>, AutotvmRow>;

void Count(const store::AutotvmRecord& record, AutotvmStats& stats) {
  AutotvmRow& row = stats[{record.task, record.target}];
  ++row.records;
  ++row.by_error[static_cast<size_t>(record.error)];
  std::optional<double>& best_s = row.best_s[record.args];
  if (record.error == store::kNoError) KeepBest(MeanCost(record), best_s);
}

void PrintJson(const AutotvmStats& stats) {
  for (const auto& [key, row] : stats) {
    fmt::print(
        "{{\"autotvm_task\":{},\"target\":{},\"workloads\":{},\"records\":{},\"by_error\":[{}]}}\n",
        JsonString(key[0]), JsonString(key[1]), row.best_s.size(), row.records,
        fmt::join(row.by_error, ","));
  }
}

// Returns "432 bad schedule (1), 25 compile error (2)", or "-".
std::string ErrorsCell(const AutotvmRow& row) {
  std::string cell;
  for (size_t error = 1; error < row.by_error.size(); ++error) {
    if (row.by_error[error] == 0) continue;
    cell += fmt::format("{}{} {} ({})", cell.empty() ? "" : ", ", FormatCount(row.by_error[error]),
                        ErrorName(static_cast<uint32_t>(error)), error);
  }
  return cell.empty() ? "-" : cell;
}

void PrintTable(const AutotvmStats& stats) {
  Table table({{"Template of autotvm", Table::kLeft, kMinColumns},
               {"Target", Table::kLeft, kMinColumns},
               {"Workloads", Table::kRight},
               {"Tuned", Table::kRight},
               {"Records", Table::kRight},
               {"Errors", Table::kLeft, kMinColumns}});
  for (const auto& [key, row] : stats) {
    int64_t tuned = 0;
    for (const auto& [args, best_s] : row.best_s) tuned += best_s.has_value();
    table.AddRow({OneLine(key[0]), OneLine(ShortTarget(key[1])), FormatCount(row.best_s.size()),
                  FormatCount(tuned), FormatCount(row.records), ErrorsCell(row)});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
}

Status PrintStats(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  const Names names = NamesOf(jobs);
  v1::ListRecordsRequest request;
  request.set_include_errors(true);
  ScheduleStats schedules;
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    Count(record, names, schedules);
    return OkStatus();
  }));
  v1::ListAutotvmRecordsRequest autotvm_request;
  autotvm_request.set_include_errors(true);
  AutotvmStats autotvm;
  KILN_RETURN_IF_ERROR(
      archive->VisitAutotvmRecords(autotvm_request, [&](const store::AutotvmRecord& record) {
        Count(record, autotvm);
        return OkStatus();
      }));
  if (session.json) {
    PrintJson(schedules);
    PrintJson(autotvm);
    return OkStatus();
  }
  if (!schedules.rows.empty() || autotvm.empty()) PrintTable(schedules);
  if (!schedules.rows.empty() && !autotvm.empty()) fmt::print("\n");
  if (!autotvm.empty()) PrintTable(autotvm);
  return OkStatus();
}

}  // namespace

Run AddRecordsStats(CLI::App& stats, SessionFlags& session) {
  stats.description("count the records of each task and target, with the best");
  session.AddPlace(stats);
  return Plain(PrintStats);
}

}  // namespace kiln::client
