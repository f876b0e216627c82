// kiln records delete, prune.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/terminal.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/computations.h"
#include "client/cli/record_list.h"
#include "client/cli/record_prune.h"
#include "client/view/format.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

bool IsSet(const RecordFilterFlags& flags) {
  return !flags.job.empty() || !flags.workload.empty() || !flags.arguments.op.empty() ||
         !flags.target.empty() || !flags.device.empty() || !flags.since.empty() ||
         !flags.until.empty() || flags.errors || flags.top.has_value();
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

void PrintDeleted(uint64_t deleted, const Archive& archive, const Session& session) {
  if (session.json) {
    fmt::print("{{\"deleted\":{}}}\n", deleted);
    return;
  }
  fmt::print("{} records deleted from {}\n", FormatCount(static_cast<int64_t>(deleted)),
             archive.Name());
}

// ---- prune ----------------------------------------------------------------------------------

StatusOr<PruneRule> RuleOf(const PruneFlags& flags, const std::vector<v1::JobStatus>& jobs) {
  if (!flags.keep.has_value() && flags.older_than.empty()) {
    return InvalidArgument("say what goes: --keep N, --older-than TIME, or both");
  }
  PruneRule rule;
  rule.keep = flags.keep.value_or(1);
  if (!flags.older_than.empty()) {
    KILN_ASSIGN_OR_RETURN(rule.before_s,
                          ParseTime(flags.older_than, absl::ToUnixSeconds(absl::Now())));
  }
  for (const v1::JobStatus& job : jobs) {
    if (job.state() == v1::QUEUED || job.state() == v1::RUNNING) rule.open_jobs.insert(job.id());
  }
  return rule;
}

// How many go.
int64_t CountDeleted(const Pruner& pruner) {
  int64_t deleted = 0;
  for (const auto& [group, row] : pruner.rows()) deleted += row.deleted;
  return deleted;
}

void PrintPlan(const Pruner& pruner, const Names& names) {
  Table table({{"Task", Table::kLeft, 24},
               {"Target", Table::kLeft, 12},
               {"Records", Table::kRight},
               {"Failed", Table::kRight},
               {"To delete", Table::kRight},
               {"Kept", Table::kRight},
               {"Best", Table::kRight}});
  for (const auto& [group, row] : pruner.rows()) {
    table.AddRow({NameOf(row.example, names), OneLine(ShortTarget(row.target)),
                  FormatCount(row.records), FormatCount(row.failed), FormatCount(row.deleted),
                  FormatCount(row.records - row.deleted), LatencyCell(row.best_s)});
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  std::fflush(stdout);
}

StatusOr<uint64_t> DeletePruned(const Pruner& pruner, const v1::ListRecordsRequest& request,
                                Archive& archive) {
  constexpr size_t kBatch = 10'000;
  std::vector<int64_t> ids;
  uint64_t deleted = 0;
  const auto flush = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const uint64_t of_batch, archive.DeleteRecords(ids));
    deleted += of_batch;
    ids.clear();
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    if (pruner.Deletes(record)) ids.push_back(record.id());
    return ids.size() < kBatch ? OkStatus() : flush();
  }));
  KILN_RETURN_IF_ERROR(flush());
  return deleted;
}

}  // namespace

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
  PrintDeleted(deleted, *archive, session);
  return OkStatus();
}

Status PruneRecordsCommand(const PruneFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(auto request, RequestOf(flags.filter, absl::ToUnixSeconds(absl::Now())));
  request.set_include_errors(true);
  if (flags.filter.top.has_value()) {
    return InvalidArgument("--top does not go with prune: --keep says what stays");
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  KILN_ASSIGN_OR_RETURN(PruneRule rule, RuleOf(flags, jobs));
  Pruner pruner(std::move(rule));
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    pruner.See(record);
    return OkStatus();
  }));
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) {
    if (pruner.Deletes(record)) pruner.CountDeleted(record);
    return OkStatus();
  }));
  if (!session.json) PrintPlan(pruner, NamesOf(jobs));
  const int64_t planned = CountDeleted(pruner);
  if (planned > 0 && !flags.yes) {
    KILN_RETURN_IF_ERROR(Confirm(static_cast<size_t>(planned), archive->Name()));
  }
  uint64_t deleted = 0;
  if (planned > 0) {
    KILN_ASSIGN_OR_RETURN(deleted, DeletePruned(pruner, request, *archive));
  }
  PrintDeleted(deleted, *archive, session);
  return OkStatus();
}

}  // namespace kiln::client
