// kiln records list prints records, one a line.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/console/terminal.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/computations.h"
#include "client/cli/record_filter.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/jobs/workload_source.h"
#include "client/view/json.h"
#include "client/view/kernel_values.h"
#include "compiler/dag/workload_key.h"
#include "scheduler/words/format.h"
#include "search/choice/workload_distance.h"

namespace kiln::client {
namespace {

std::string Outcome(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  if (result.error() != v1::NO_ERROR) return std::string(ErrorName(result.error()));
  return LatencyCell(CostOf(result)) + (result.stopped_early() ? ", stopped early" : "") +
         (record.mark().empty() ? "" : ", marked");
}

// A record, and the distance of its workload from the wanted one.
struct Near {
  v1::Record record;
  double distance = 1;

  // Returns the approximate cost of the wanted workload with the same tiles.
  double Expected() const { return CostOf(record.result()) * distance; }
};

// Prints records as they come. A long list has a table for each page, so that memory holds one page
// only.
class ListPrinter {
 public:
  ListPrinter(const Session& session, Names names, bool with_distance)
      : json_(session.json), with_distance_(with_distance), names_(std::move(names)) {}

  void Add(const v1::Record& record, double distance) {
    if (json_) {
      fmt::print("{}\n", JsonOf(record));
      return;
    }
    std::vector<std::string> cells = {fmt::format("{}", record.id()),
                                      NameOf(record, names_),
                                      OneLine(BriefTarget(record.target())),
                                      Outcome(record),
                                      fmt::format("{}/{}", record.job_id(), record.trial()),
                                      ShortTimeText(record.result().timestamp_s())};
    if (with_distance_) cells.insert(cells.begin() + 3, fmt::format("{:g}", distance));
    rows_.push_back(std::move(cells));
    if (const std::string configuration = ConfigurationOf(record); !configuration.empty())
      configurations_ += fmt::format("record {}: {}\n", record.id(), configuration);
    constexpr size_t kPage = 1'000;
    if (rows_.size() == kPage) Flush();
  }

  // Returns whether a table was printed.
  bool Finish() {
    if (!rows_.empty()) Flush();
    return printed_;
  }

  // Prints the header of an empty table.
  void PrintNone() {
    if (!json_) Flush();
  }

 private:
  void Flush() {
    constexpr int kMaxLines = 3;
    std::vector<Table::Column> columns = {{"Record", Table::kRight},
                                          {"Task", Table::kLeft, 12, kMaxLines},
                                          {"Target", Table::kLeft, 10, kMaxLines},
                                          {"Result", Table::kRight, 9, kMaxLines},
                                          {"Trial"},
                                          {"Measured"}};
    if (with_distance_) columns.insert(columns.begin() + 3, {"Distance", Table::kRight});
    Table table(std::move(columns));
    for (std::vector<std::string>& cells : rows_) table.AddRow(std::move(cells));
    // A pipe gets the table too; --json has all of a record.
    fmt::print("{}{}", table.ToString(TerminalColumns(STDOUT_FILENO)), configurations_);
    rows_.clear();
    configurations_.clear();
    printed_ = true;
  }

  const bool json_, with_distance_;
  const Names names_;
  std::vector<std::vector<std::string>> rows_;
  // Lines about records of the page that are configurations.
  std::string configurations_;
  bool printed_ = false;
};

// Returns the keys of the workload from which distances are measured, of all versions of TVM.
StatusOr<std::vector<std::string>> WantedKeys(const RecordFilterFlags& flags) {
  if (!flags.arguments.op.empty()) {
    KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(flags.arguments));
    return dag::WorkloadKeys(*workload.dag);
  }
  if (flags.workload.empty() || IsWorkloadId(flags.workload)) {
    return InvalidArgument(
        "--distance is from a workload: expected --op with --args, or --workload with a key");
  }
  return std::vector{dag::NormalizedKey(flags.workload)};
}

// Visits records of workloads with the same stages, whatever their extents.
Status VisitNear(const RecordFilterFlags& flags, v1::ListRecordsRequest request, Archive& archive,
                 const std::function<void(Near)>& visit) {
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> keys, WantedKeys(flags));
  request.clear_workload_id();
  request.clear_workload_keys();
  request.clear_top();
  for (const std::string& key : keys) {
    request.set_key_prefix(fmt::format("[\"{}\"", search::WorkloadHash(key)));
    KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
      const auto distance = search::WorkloadDistance(key, record.workload_key());
      if (distance.has_value() && *distance <= *flags.distance) visit({record, *distance});
      return OkStatus();
    }));
  }
  return OkStatus();
}

Status ListNear(const RecordFilterFlags& flags, const v1::ListRecordsRequest& request,
                Archive& archive, ListPrinter& printer) {
  if (!flags.top.has_value()) {
    return VisitNear(flags, request, archive,
                     [&](const Near& near) { printer.Add(near.record, near.distance); });
  }
  // The best records by expected cost.
  std::multimap<double, Near> best;
  KILN_RETURN_IF_ERROR(VisitNear(flags, request, archive, [&](Near near) {
    if (near.record.result().error() != v1::NO_ERROR || near.record.result().stopped_early()) {
      return;
    }
    const double expected_s = near.Expected();
    best.emplace(expected_s, std::move(near));
    if (best.size() > *flags.top) best.erase(std::prev(best.end()));
  }));
  for (const auto& [expected_s, near] : best) printer.Add(near.record, near.distance);
  return OkStatus();
}

Status ListRecords(const RecordFilterFlags& flags, const Session& session) {
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  KILN_ASSIGN_OR_RETURN(const auto request, RequestOf(flags, now_s));
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  if (!flags.job.empty()) KILN_RETURN_IF_ERROR(archive->Job(flags.job).status());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  ListPrinter printer(session, NamesOf(jobs), flags.distance.has_value());
  if (flags.distance.has_value()) {
    KILN_RETURN_IF_ERROR(ListNear(flags, request, *archive, printer));
  } else {
    KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
      printer.Add(record, 1);
      return OkStatus();
    }));
  }
  const bool printed = printer.Finish();
  KILN_ASSIGN_OR_RETURN(const int64_t of_autotvm,
                        ListAutotvmRecords(flags, now_s, printed, session, *archive));
  if (!printed && of_autotvm == 0) printer.PrintNone();
  return OkStatus();
}

}  // namespace

Run AddRecordsList(CLI::App& list, SessionFlags& session) {
  const auto flags = std::make_shared<RecordFilterFlags>();
  list.description("records, one a line");
  AddRecordFilter(list, session, *flags);
  list.add_option("--distance", flags->distance,
                  "also workloads with other extents, up to this distance, as TVM's "
                  "auto_scheduler measures it (1: none); with --top ranked by cost x distance")
      ->check(CLI::Range(1.0, 1e18));
  return Plain([flags](const Session& session) { return ListRecords(*flags, session); });
}

}  // namespace kiln::client
