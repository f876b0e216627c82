// kiln db prune deletes all records but the best ones of each computation, target and device, and
// those that somebody relies on.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/computations.h"
#include "client/cli/database/commands.h"
#include "client/cli/database/prune_rule.h"
#include "client/cli/record_filter.h"
#include "client/cli/records/deletion.h"
#include "client/cli/session_flags.h"
#include "client/local_archive.h"
#include "scheduler/words/format.h"
#include "store/autotvm_record.h"

namespace kiln::client {
namespace {

struct PruneFlags {
  // Number of best records to keep for each computation, target and device; for autotvm's records,
  // for each workload of a template and target. None: 1.
  std::optional<uint32_t> keep_best;
  // Only records older than this are deleted: days, or see ParseTime.
  std::string older_than;
  // Entries of the audit that are older than so many days are deleted. None: the audit stays.
  std::optional<uint32_t> audit_days;
  // True: says what would be deleted, and deletes nothing.
  bool dry_run = false;
  // Only records that match are deleted.
  RecordFilterFlags filter;
  // True: does not ask.
  bool yes = false;
};

// A number alone is one of days.
StatusOr<int64_t> TimeBefore(const std::string& text, int64_t now_s) {
  const bool is_days = text.find_first_not_of("0123456789") == std::string::npos;
  return ParseTime(is_days ? text + "d" : text, now_s);
}

bool HasEnded(const v1::JobStatus& job) {
  return job.state() == v1::SUCCEEDED || job.state() == v1::FAILED || job.state() == v1::CANCELLED;
}

StatusOr<PruneRule> RuleOf(const PruneFlags& flags, int64_t now_s,
                           const std::vector<v1::JobStatus>& jobs, Archive& archive) {
  if (!flags.keep_best.has_value() && flags.older_than.empty()) {
    return InvalidArgument(
        "say what goes: --keep-best N, --older-than DAYS, or both; or --audit-days N");
  }
  PruneRule rule;
  rule.keep = flags.keep_best.value_or(1);
  if (!flags.older_than.empty()) {
    KILN_ASSIGN_OR_RETURN(rule.before_s, TimeBefore(flags.older_than, now_s));
  }
  for (const v1::JobStatus& job : jobs) {
    if (!HasEnded(job)) rule.open_jobs.insert(job.id());
    for (const v1::TaskStatus& task : job.tasks()) {
      rule.named.insert(
          {task.best_record_id(), task.reference_record_id(), task.known_record_id()});
    }
  }
  KILN_ASSIGN_OR_RETURN(const auto pinned, archive.PinnedSchedules(""));
  for (const store::PinnedSchedule& schedule : pinned) {
    rule.pinned.insert({schedule.workload_id, schedule.target, schedule.steps});
  }
  return rule;
}

// Least columns of templates, arguments and targets in tables.
constexpr int kMinColumns = 10;

// `columns` describe the group of a row.
void PrintPlan(const Pruner& pruner, std::vector<Table::Column> columns) {
  for (const char* count : {"Records", "Failed", "To delete", "Kept", "Best"}) {
    columns.push_back({count, Table::kRight});
  }
  Table table(std::move(columns));
  for (const auto& [group, row] : pruner.rows()) {
    std::vector<std::string> cells = row.cells;
    for (const int64_t count : {row.records, row.failed, row.deleted, row.records - row.deleted}) {
      cells.push_back(FormatCount(count));
    }
    cells.push_back(LatencyCell(row.best_s));
    table.AddRow(std::move(cells));
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  std::fflush(stdout);
}

// The records of a prune, in the same order each time.
class Prunable {
 public:
  Prunable(const PruneFlags& flags, int64_t now_s, v1::ListRecordsRequest request, Archive& archive)
      : filter_(flags.filter), now_s_(now_s), request_(std::move(request)), archive_(archive) {
    filter_.errors = true;
    request_.set_include_errors(true);
  }

  Status Visit(const std::function<Status(const v1::Record&)>& visit) const {
    return archive_.VisitRecords(request_, visit);
  }
  Status VisitAutotvm(const std::function<Status(const store::AutotvmRecord&)>& visit) const {
    return VisitAutotvmRecords(filter_, now_s_, archive_, visit);
  }

 private:
  RecordFilterFlags filter_;
  int64_t now_s_;
  v1::ListRecordsRequest request_;
  Archive& archive_;
};

// The pruners of both kinds of records.
struct Pruners {
  Pruner records, autotvm;

  explicit Pruners(const PruneRule& rule) : records(rule), autotvm(rule) {}
  DeletionCounts Planned() const {
    return {records.deleted() + autotvm.deleted(), autotvm.deleted()};
  }
};

Status Plan(const Prunable& prunable, const Names& names, Pruners& pruners) {
  KILN_RETURN_IF_ERROR(prunable.Visit([&](const v1::Record& record) {
    Pruner::Row& row = pruners.records.See(CandidateOf(record));
    if (row.records == 1)
      row.cells = {NameOf(record, names), OneLine(ShortTarget(record.target())),
                   OneLine(record.result().device())};
    return OkStatus();
  }));
  KILN_RETURN_IF_ERROR(prunable.VisitAutotvm([&](const store::AutotvmRecord& record) {
    Pruner::Row& row = pruners.autotvm.See(CandidateOf(record));
    if (row.records == 1) {
      row.cells = {OneLine(record.task), AutotvmArguments(record.args),
                   OneLine(ShortTarget(record.target))};
    }
    return OkStatus();
  }));
  const auto count = [](const auto& record, Pruner& pruner) {
    const PruneCandidate candidate = CandidateOf(record);
    if (pruner.Deletes(candidate)) pruner.CountDeleted(candidate);
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(
      prunable.Visit([&](const v1::Record& record) { return count(record, pruners.records); }));
  return prunable.VisitAutotvm(
      [&](const store::AutotvmRecord& record) { return count(record, pruners.autotvm); });
}

void PrintPlans(const Pruners& pruners) {
  const bool of_autotvm = !pruners.autotvm.rows().empty();
  if (!pruners.records.rows().empty() || !of_autotvm) {
    PrintPlan(pruners.records, {{"Task", Table::kLeft, 24},
                                {"Target", Table::kLeft, 12},
                                {"Device", Table::kLeft, kMinColumns}});
    if (of_autotvm) fmt::print("\n");
  }
  if (!of_autotvm) return;
  PrintPlan(pruners.autotvm, {{"Template of autotvm", Table::kLeft, kMinColumns},
                              {"Arguments", Table::kLeft, kMinColumns},
                              {"Target", Table::kLeft, kMinColumns}});
}

// Deletes the given records, some thousands at a time.
class BatchDeleter {
 public:
  using Delete = std::function<StatusOr<uint64_t>(const std::vector<int64_t>& ids)>;

  explicit BatchDeleter(Delete remove) : remove_(std::move(remove)) {}

  Status Add(int64_t id) {
    constexpr size_t kBatch = 10'000;
    ids_.push_back(id);
    return ids_.size() < kBatch ? OkStatus() : Flush();
  }

  // Returns the number of records that existed.
  StatusOr<int64_t> Finish() {
    KILN_RETURN_IF_ERROR(Flush());
    return deleted_;
  }

 private:
  Status Flush() {
    if (ids_.empty()) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const uint64_t deleted, remove_(ids_));
    deleted_ += static_cast<int64_t>(deleted);
    ids_.clear();
    return OkStatus();
  }

  const Delete remove_;
  std::vector<int64_t> ids_;
  int64_t deleted_ = 0;
};

StatusOr<DeletionCounts> DeletePruned(const Prunable& prunable, const Pruners& pruners,
                                      Archive& archive) {
  BatchDeleter records([&](const auto& ids) { return archive.DeleteRecords(ids); });
  KILN_RETURN_IF_ERROR(prunable.Visit([&](const v1::Record& record) {
    return pruners.records.Deletes(CandidateOf(record)) ? records.Add(record.id()) : OkStatus();
  }));
  BatchDeleter of_autotvm([&](const auto& ids) { return archive.DeleteAutotvmRecords(ids); });
  KILN_RETURN_IF_ERROR(prunable.VisitAutotvm([&](const store::AutotvmRecord& record) {
    return pruners.autotvm.Deletes(CandidateOf(record)) ? of_autotvm.Add(record.id) : OkStatus();
  }));
  DeletionCounts deleted;
  KILN_ASSIGN_OR_RETURN(deleted.records, records.Finish());
  KILN_ASSIGN_OR_RETURN(deleted.autotvm, of_autotvm.Finish());
  deleted.records += deleted.autotvm;
  return deleted;
}

Status PruneAuditEntries(const PruneFlags& flags, int64_t now_s, const Session& session) {
  if (!session.scheduler.empty()) {
    return InvalidArgument(
        "--audit-days works on the file of the database, not through a scheduler: call kiln db "
        "prune on the scheduler's machine with --db; the scheduler may go on meanwhile");
  }
  const int64_t before_s = now_s - int64_t{*flags.audit_days} * 24 * 60 * 60;
  KILN_ASSIGN_OR_RETURN(const int64_t entries,
                        PruneAudit(session.db, before_s * 1000, flags.dry_run));
  if (session.json) {
    fmt::print("{{\"{}\":{}}}\n", flags.dry_run ? "would_delete_of_audit" : "deleted_of_audit",
               entries);
    return OkStatus();
  }
  fmt::print("{} of the audit {}\n", Counted(entries, "entry", "entries"),
             flags.dry_run ? "would be deleted" : "deleted");
  return OkStatus();
}

// Prints for each computation, target and device how many records are deleted and kept; then
// proceeds like kiln records delete.
Status PruneRecords(const PruneFlags& flags, const Session& session) {
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  KILN_ASSIGN_OR_RETURN(const auto request, RequestOf(flags.filter, now_s));
  if (flags.filter.top.has_value()) {
    return InvalidArgument("--top does not go with prune: --keep-best says what stays");
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  KILN_ASSIGN_OR_RETURN(const PruneRule rule, RuleOf(flags, now_s, jobs, *archive));
  const Prunable prunable(flags, now_s, request, *archive);
  Pruners pruners(rule);
  KILN_RETURN_IF_ERROR(Plan(prunable, NamesOf(jobs), pruners));
  if (!session.json) PrintPlans(pruners);
  const DeletionCounts planned = pruners.Planned();
  if (flags.dry_run) {
    PrintPlanned(planned, *archive, session);
    return OkStatus();
  }
  DeletionCounts deleted;
  if (planned.records > 0) {
    if (!flags.yes) KILN_RETURN_IF_ERROR(ConfirmDeletion(planned, archive->Name()));
    KILN_ASSIGN_OR_RETURN(deleted, DeletePruned(prunable, pruners, *archive));
  }
  PrintDeleted(deleted, *archive, session);
  return OkStatus();
}

Status Prune(const PruneFlags& flags, const Session& session) {
  const bool records = flags.keep_best.has_value() || !flags.older_than.empty();
  if (flags.audit_days.has_value()) {
    KILN_RETURN_IF_ERROR(PruneAuditEntries(flags, absl::ToUnixSeconds(absl::Now()), session));
    if (!records) return OkStatus();
  }
  return PruneRecords(flags, session);
}

}  // namespace

Run AddDbPrune(CLI::App& prune, SessionFlags& session) {
  const auto flags = std::make_shared<PruneFlags>();
  prune.description("delete all records but the best ones of each computation, target and device");
  prune.add_option("--keep-best", flags->keep_best,
                   "keep this many of the best of each computation, target and device [1]");
  prune
      .add_option("--older-than", flags->older_than,
                  "only records from before this time go: 90 days or 12h ago, or 2026-11-21")
      ->type_name("DAYS");
  prune
      .add_option("--audit-days", flags->audit_days,
                  "entries of kiln audit that are older than this go")
      ->type_name("DAYS");
  prune.add_flag("--dry-run", flags->dry_run, "say what would go, and delete nothing");
  prune.add_flag("--yes", flags->yes, "do not ask");
  AddRecordFilter(prune, session, flags->filter);
  return Plain([flags](const Session& session) { return Prune(*flags, session); });
}

}  // namespace kiln::client
