#include "client/cli/record_list.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <set>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/terminal.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/computations.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

// The number that the whole text is.
std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

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

std::string Outcome(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  if (result.error() != v1::NO_ERROR) return std::string(ErrorName(result.error()));
  return LatencyCell(CostOf(result)) + (result.stopped_early() ? ", stopped early" : "");
}

bool IsSet(const RecordFilterFlags& flags) {
  return !flags.job.empty() || !flags.workload.empty() || !flags.arguments.op.empty() ||
         !flags.target.empty() || !flags.device.empty() || !flags.since.empty() || flags.errors ||
         flags.top.has_value();
}

StatusOr<std::vector<int64_t>> IdsOf(const v1::ListRecordsRequest& request, Archive& archive) {
  std::vector<int64_t> ids;
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    ids.push_back(record.id());
    return OkStatus();
  }));
  return ids;
}

// What a word names: a job if there is one of this name, otherwise a record.
StatusOr<std::vector<int64_t>> IdsOfWord(const std::string& word, Archive& archive) {
  const auto job = archive.Job(word);
  if (job.ok()) {
    v1::ListRecordsRequest request;
    request.set_job_id(word);
    request.set_include_errors(true);
    return IdsOf(request, archive);
  }
  if (job.status().code() != StatusCode::kNotFound) return job.status();
  const auto id = WholeNumber(word);
  if (!id.has_value()) {
    return NotFound("'{}' is no job of {} and no number of a record", word, archive.Name());
  }
  KILN_RETURN_IF_ERROR(archive.GetRecord(*id).status());
  return std::vector<int64_t>{*id};
}

StatusOr<std::vector<int64_t>> WhatToDelete(const DeleteFlags& flags, Archive& archive) {
  std::set<int64_t> all;
  for (const std::string& word : flags.what) {
    KILN_ASSIGN_OR_RETURN(const auto ids, IdsOfWord(word, archive));
    all.insert(ids.begin(), ids.end());
  }
  if (IsSet(flags.filter)) {
    KILN_ASSIGN_OR_RETURN(const auto request,
                          RequestOf(flags.filter, absl::ToUnixSeconds(absl::Now())));
    KILN_ASSIGN_OR_RETURN(const auto ids, IdsOf(request, archive));
    all.insert(ids.begin(), ids.end());
  }
  return std::vector<int64_t>(all.begin(), all.end());
}

Status Confirm(size_t records, const std::string& place) {
  if (!IsTerminal(STDIN_FILENO)) {
    return InvalidArgument("{} records of {} would be deleted: say --yes", records, place);
  }
  fmt::print("delete {} records of {}? [y/N] ", FormatCount(static_cast<int64_t>(records)), place);
  std::fflush(stdout);
  char answer[16] = {};
  const bool answered = std::fgets(answer, sizeof(answer), stdin) != nullptr;
  if (answered && (answer[0] == 'y' || answer[0] == 'Y')) return OkStatus();
  return Cancelled("nothing was deleted");
}

}  // namespace

StatusOr<int64_t> ParseSince(const std::string& text, int64_t now_s) {
  if (!text.empty() && UnitSeconds(text.back()) > 0) {
    const auto count = WholeNumber(std::string_view(text).substr(0, text.size() - 1));
    constexpr int64_t kMost = 1'000'000'000;
    if (count.has_value() && *count < kMost) return now_s - *count * UnitSeconds(text.back());
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
    KILN_ASSIGN_OR_RETURN(const int64_t since_s, ParseSince(flags.since, now_s));
    request.set_since_s(since_s);
  }
  request.set_include_errors(flags.errors);
  request.set_top(flags.top.value_or(0));
  return request;
}

Status ListRecordsCommand(const RecordFilterFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto request, RequestOf(flags, absl::ToUnixSeconds(absl::Now())));
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  if (!flags.job.empty()) KILN_RETURN_IF_ERROR(archive->Job(flags.job).status());
  if (session.json) {
    return archive->VisitRecords(request, [](const v1::Record& record) {
      fmt::print("{}\n", JsonOf(record));
      return OkStatus();
    });
  }
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  const Names names = NamesOf(jobs);
  Table table({{"Record", Table::kRight},
               {"Task", Table::kLeft, 24},
               {"Target", Table::kLeft, 12},
               {"Result", Table::kRight},
               {"Trial"},
               {"Measured"},
               {"Device", Table::kLeft, 8}});
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    table.AddRow({fmt::format("{}", record.id()), NameOf(record, names), OneLine(record.target()),
                  Outcome(record), fmt::format("{}/{}", record.job_id(), record.trial()),
                  TimeText(record.result().timestamp_s()), OneLine(record.result().device())});
    return OkStatus();
  }));
  fmt::print("{}", table.ToString());
  return OkStatus();
}

Status DeleteRecordsCommand(const DeleteFlags& flags, const Session& session) {
  if (flags.what.empty() && !IsSet(flags.filter)) {
    return InvalidArgument(
        "say which records: their numbers, jobs, or a filter as for records list");
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto ids, WhatToDelete(flags, *archive));
  if (ids.empty()) return NotFound("{} has no such record", archive->Name());
  if (!flags.yes) KILN_RETURN_IF_ERROR(Confirm(ids.size(), archive->Name()));
  KILN_ASSIGN_OR_RETURN(const uint64_t deleted, archive->DeleteRecords(ids));
  if (session.json) {
    fmt::print("{{\"deleted\":{}}}\n", deleted);
  } else {
    fmt::print("{} records deleted from {}\n", FormatCount(static_cast<int64_t>(deleted)),
               archive->Name());
  }
  return OkStatus();
}

}  // namespace kiln::client
