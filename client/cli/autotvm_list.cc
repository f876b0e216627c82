#include "client/cli/autotvm_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/computations.h"
#include "client/view/json.h"
#include "scheduler/words/format.h"
#include "store/autotvm_log.h"
#include "store/distill.h"

namespace kiln::client {
namespace {

using Json = nlohmann::json;
using store::AutotvmRecord;

// Least columns of templates, arguments and targets in tables.
constexpr int kMinColumns = 10;

// Returns "float32[1, 768]" for ["TENSOR", [1, 768], "float32"].
std::string ArgumentText(const Json& argument) {
  const bool is_tensor = argument.is_array() && argument.size() == 3 && argument[0] == "TENSOR" &&
                         argument[1].is_array() && argument[2].is_string();
  if (is_tensor) {
    std::vector<std::string> extents;
    for (const Json& extent : argument[1]) extents.push_back(extent.dump());
    return fmt::format("{}[{}]", argument[2].get<std::string>(), fmt::join(extents, ", "));
  }
  return argument.is_string() ? argument.get<std::string>() : argument.dump();
}

std::string Outcome(const AutotvmRecord& record) {
  if (record.error != store::kNoError)
    return std::string(ErrorName(static_cast<uint32_t>(record.error)));
  return LatencyCell(MeanCost(record));
}

// Prints the record as JSON. Its arguments and entities are JSON already.
std::string JsonOf(const AutotvmRecord& record) {
  return fmt::format(
      "{{\"autotvm_task\":{},\"autotvm_record\":{},\"target\":{},\"args\":{},\"kwargs\":{},"
      "\"config_index\":{},\"entity\":{},\"costs_s\":[{}],\"error\":{},\"timestamp_s\":{}}}",
      JsonString(record.task), record.id, JsonString(record.target), record.args, record.kwargs,
      record.config_index, record.entities, fmt::join(record.costs_s, ","), record.error,
      record.timestamp_s);
}

// Returns the values of the knobs: "tile_k=[-1,48] auto_unroll_max_step=0".
std::string KnobsText(const AutotvmRecord& record) {
  const Json entities = Json::parse(record.entities, nullptr, /*allow_exceptions=*/false);
  if (!entities.is_array()) return OneLine(record.entities);
  std::string text;
  for (const Json& entity : entities) {
    if (!entity.is_array() || entity.size() != 3 || !entity[0].is_string()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", entity[0].get<std::string>(),
                        entity[2].dump());
  }
  return OneLine(text);
}

Table MakeTable() {
  constexpr int kMaxLines = 4;
  return Table({{"Template", Table::kLeft, 24, kMaxLines},
                {"Arguments", Table::kLeft, kMinColumns, kMaxLines},
                {"Target", Table::kLeft, kMinColumns, kMaxLines},
                {"Result", Table::kRight},
                {"Config", Table::kRight},
                {"Measured"}});
}

// Prints records as they come, with a table for each page.
class AutotvmPrinter {
 public:
  AutotvmPrinter(bool after_others, bool json)
      : after_others_(after_others), json_(json), table_(MakeTable()) {}

  void Add(const AutotvmRecord& record) {
    ++count_;
    if (json_) {
      fmt::print("{}\n", JsonOf(record));
      return;
    }
    table_.AddRow({OneLine(record.task), AutotvmArguments(record.args),
                   OneLine(BriefTarget(record.target)), Outcome(record),
                   fmt::format("{}", record.config_index),
                   ShortTimeText(static_cast<int64_t>(record.timestamp_s))});
    constexpr size_t kPage = 1'000;
    if (table_.rows() == kPage) Flush();
  }

  int64_t Finish() {
    if (table_.rows() > 0) Flush();
    return count_;
  }

 private:
  void Flush() {
    if (after_others_) fmt::print("\n");
    fmt::print("records of autotvm\n{}", table_.ToString(TerminalColumns(STDOUT_FILENO)));
    after_others_ = false;
    table_ = MakeTable();
  }

  bool after_others_;
  const bool json_;
  Table table_;
  int64_t count_ = 0;
};

bool ExcludesAutotvmRecords(const RecordFilterFlags& flags) {
  return !flags.job.empty() || !flags.arguments.op.empty() || !flags.device.empty() ||
         flags.distance.has_value() || IsWorkloadId(flags.workload) ||
         flags.workload.starts_with('[');
}

// A period; both ends are included.
struct Times {
  std::optional<int64_t> since_s, until_s;

  bool Take(const AutotvmRecord& record) const {
    return (!since_s || record.timestamp_s >= static_cast<double>(*since_s)) &&
           (!until_s || record.timestamp_s <= static_cast<double>(*until_s));
  }
};

StatusOr<Times> TimesOf(const RecordFilterFlags& flags, int64_t now_s) {
  Times times;
  if (!flags.since.empty()) {
    KILN_ASSIGN_OR_RETURN(times.since_s, ParseTime(flags.since, now_s));
  }
  if (!flags.until.empty()) {
    KILN_ASSIGN_OR_RETURN(times.until_s, ParseTime(flags.until, now_s));
  }
  return times;
}

}  // namespace

std::string AutotvmArguments(std::string_view json) {
  const Json arguments = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!arguments.is_array()) return OneLine(json);
  std::vector<std::string> texts;
  for (const Json& argument : arguments) texts.push_back(ArgumentText(argument));
  return OneLine(fmt::format("{}", fmt::join(texts, ", ")));
}

Status VisitAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s, Archive& archive,
                           const std::function<Status(const AutotvmRecord&)>& visit) {
  if (ExcludesAutotvmRecords(flags)) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const Times times, TimesOf(flags, now_s));
  v1::ListAutotvmRecordsRequest request;
  request.set_task(flags.workload);
  request.set_target(flags.target);
  request.set_include_errors(flags.errors);
  // The best records for --top, by cost.
  std::multimap<double, AutotvmRecord> best;
  KILN_RETURN_IF_ERROR(archive.VisitAutotvmRecords(request, [&](const AutotvmRecord& record) {
    if (!times.Take(record)) return OkStatus();
    if (!flags.top.has_value()) return visit(record);
    if (record.error != store::kNoError) return OkStatus();
    best.emplace(MeanCost(record), record);
    if (best.size() > *flags.top) best.erase(std::prev(best.end()));
    return OkStatus();
  }));
  for (const auto& [cost_s, record] : best) KILN_RETURN_IF_ERROR(visit(record));
  return OkStatus();
}

StatusOr<int64_t> ListAutotvmRecords(const RecordFilterFlags& flags, int64_t now_s,
                                     bool after_others, const Session& session, Archive& archive) {
  AutotvmPrinter printer(after_others, session.json);
  KILN_RETURN_IF_ERROR(VisitAutotvmRecords(flags, now_s, archive, [&](const AutotvmRecord& record) {
    printer.Add(record);
    return OkStatus();
  }));
  return printer.Finish();
}

StatusOr<int64_t> PrintBestOfTemplate(const std::string& name, const std::string& target,
                                      const Session& session, Archive& archive) {
  v1::ListAutotvmRecordsRequest request;
  request.set_task(name);
  request.set_target(target);
  store::AutotvmDistiller distiller;
  KILN_RETURN_IF_ERROR(archive.VisitAutotvmRecords(
      request, [&](const AutotvmRecord& record) { return distiller.Add(record); }));
  const std::vector<AutotvmRecord> best = distiller.Finish();
  AutotvmPrinter printer(/*after_others=*/false, session.json);
  for (const AutotvmRecord& record : best) printer.Add(record);
  const int64_t count = printer.Finish();
  if (session.json) return count;
  for (const AutotvmRecord& record : best) PrintConfiguration(record);
  return count;
}

void PrintConfiguration(const AutotvmRecord& record) {
  fmt::print("configuration {} of {}, {}: {}\n", record.config_index, AutotvmArguments(record.args),
             Outcome(record), KnobsText(record));
}

}  // namespace kiln::client
