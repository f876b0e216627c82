#include "client/cli/default_records_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <set>

#include "base/text/counted.h"
#include "base/text/utf8.h"
#include "client/shipped/shipped_archive.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

constexpr size_t kDateLength = std::string_view("2026-11-29").size();

}  // namespace

void AddDefaultRecords(CLI::App& command, DefaultRecords& defaults) {
  CLI::Option* const none =
      command.add_flag("--no-default-records", defaults.left_out,
                       "ask only your own records, not those that ship with Kiln");
  command
      .add_option("--default-records", defaults.path,
                  "a file of kiln records ship, asked in place of the records that ship with Kiln")
      ->type_name("FILE")
      ->excludes(none);
}

std::string ShippedLines(const std::vector<v1::Record>& records, const DefaultRecords& defaults) {
  std::string lines;
  for (const v1::Record& record : records) {
    if (!IsShippedRecord(record)) continue;
    lines += fmt::format("trial {} is from {}, measured on {} on {}\n", TrialName(record),
                         defaults.Name(), OneLine(record.result().device()),
                         TimeText(record.result().timestamp_s()).substr(0, kDateLength));
  }
  return lines;
}

StatusOr<std::string> ShippedKernelsLine(const std::vector<std::string>& records,
                                         const DefaultRecords& defaults) {
  KILN_ASSIGN_OR_RETURN(const auto shipped, defaults.Read());
  int64_t count = 0;
  std::set<std::string> devices;
  for (const std::string& name : records) {
    const auto trial = ParseTrialName(name);
    if (!trial.has_value() || trial->job_id != store::kShippedJob) continue;
    ++count;
    if (trial->number < shipped.size()) {
      devices.insert(OneLine(shipped[trial->number].record.device));
    }
  }
  if (count == 0) return std::string();
  return fmt::format("{} with {} from {}, measured on {}\n", Counted(count, "kernel"),
                     count == 1 ? "a schedule" : "schedules", defaults.Name(),
                     fmt::join(devices, ", "));
}

}  // namespace kiln::client
