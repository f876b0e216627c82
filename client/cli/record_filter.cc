#include "client/cli/record_filter.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "absl/time/time.h"
#include "client/cli/computations.h"
#include "client/cli/session_flags.h"
#include "client/cli/workload_flags.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {

void AddRecordSelection(CLI::App& command, RecordFilterFlags& filter) {
  command.add_option("--job", filter.job, "only of this job");
  command.add_option("--workload", filter.workload,
                     "only of this workload key, or of this computation by its identity");
  command.add_option("--op", filter.arguments.op,
                     "only of this operator or text file, with --args");
  AddWorkloadArguments(command, filter.arguments);
  command.add_option("--device", filter.device, "only of this device, by its name");
  command.add_option("--since", filter.since,
                     "only from this time on: 30m, 12h, 7d ago, or 2026-11-21");
  command.add_option("--until", filter.until, "only up to this time, said as --since");
}

void AddTop(CLI::App& command, RecordFilterFlags& filter) {
  command.add_option("--top", filter.top, "only so many, the best ones, best first");
}

void AddRecordFilter(CLI::App& command, SessionFlags& session, RecordFilterFlags& filter) {
  AddRecordSelection(command, filter);
  AddTop(command, filter);
  command.add_option("--target", filter.target, "only targets that begin with this text");
  command.add_flag("--errors", filter.errors, "failed trials too");
  session.AddPlace(command);
}

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

namespace {

int64_t UnitSeconds(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3'600;
    case 'd':
      return 86'400;
    default:
      return 0;
  }
}

}  // namespace

StatusOr<int64_t> ParseTime(const std::string& text, int64_t now_s) {
  if (!text.empty() && UnitSeconds(text.back()) > 0) {
    const auto count = WholeNumber(std::string_view(text).substr(0, text.size() - 1));
    constexpr int64_t kMax = 1'000'000'000;
    if (count.has_value() && *count < kMax) return now_s - *count * UnitSeconds(text.back());
  }
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"}) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &error)) {
      return absl::ToUnixSeconds(time);
    }
  }
  return InvalidArgument(
      "'{}' is no time: expected for instance 30m, 12h, 7d, 2026-11-21 or \"2026-11-21 09:45\"",
      text);
}

StatusOr<v1::ListRecordsRequest> RequestOf(const RecordFilterFlags& flags, int64_t now_s) {
  v1::ListRecordsRequest request;
  request.set_job_id(flags.job);
  if (!flags.arguments.op.empty()) {
    if (!flags.workload.empty()) {
      return InvalidArgument("--workload and an operator are both given, expected one of them");
    }
    KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(flags.arguments));
    request.set_workload_id(dag::WorkloadId(*workload.dag));
    for (const std::string& key : dag::WorkloadKeys(*workload.dag)) request.add_workload_keys(key);
  } else if (IsWorkloadId(flags.workload)) {
    request.set_workload_id(flags.workload);
  } else if (!flags.workload.empty()) {
    request.add_workload_keys(dag::NormalizedKey(flags.workload));
  }
  request.set_target(flags.target);
  request.set_device(flags.device);
  if (!flags.since.empty()) {
    KILN_ASSIGN_OR_RETURN(const int64_t since_s, ParseTime(flags.since, now_s));
    request.set_since_s(since_s);
  }
  if (!flags.until.empty()) {
    KILN_ASSIGN_OR_RETURN(const int64_t until_s, ParseTime(flags.until, now_s));
    request.set_until_s(until_s);
  }
  request.set_include_errors(flags.errors);
  request.set_top(flags.top.value_or(0));
  return request;
}

}  // namespace kiln::client
