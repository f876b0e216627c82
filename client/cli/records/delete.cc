// kiln records delete deletes records by number, of a job, or by a filter.
#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/autotvm_list.h"
#include "client/cli/record_filter.h"
#include "client/cli/records/commands.h"
#include "client/cli/records/deletion.h"
#include "client/cli/session_flags.h"
#include "store/autotvm_record.h"

namespace kiln::client {
namespace {

struct DeleteFlags {
  // Numbers of records, and jobs.
  std::vector<std::string> what;
  // Further condition.
  RecordFilterFlags filter;
  // True: does not ask.
  bool yes = false;
};

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

// Returns the records of a word: those of a job of this name if there is one, otherwise one record.
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

// Numbers of records. Each kind of record has its own numbers.
struct Chosen {
  std::vector<int64_t> ids, autotvm_ids;

  size_t size() const { return ids.size() + autotvm_ids.size(); }
};

StatusOr<Chosen> SelectRecordsToDelete(const DeleteFlags& flags, Archive& archive) {
  std::set<int64_t> all;
  for (const std::string& word : flags.what) {
    KILN_ASSIGN_OR_RETURN(const auto ids, IdsOfWord(word, archive));
    all.insert(ids.begin(), ids.end());
  }
  Chosen chosen;
  if (IsSet(flags.filter)) {
    const int64_t now_s = absl::ToUnixSeconds(absl::Now());
    KILN_ASSIGN_OR_RETURN(const auto request, RequestOf(flags.filter, now_s));
    KILN_ASSIGN_OR_RETURN(const auto ids, IdsOf(request, archive));
    all.insert(ids.begin(), ids.end());
    KILN_RETURN_IF_ERROR(
        VisitAutotvmRecords(flags.filter, now_s, archive, [&](const store::AutotvmRecord& record) {
          chosen.autotvm_ids.push_back(record.id);
          return OkStatus();
        }));
  }
  chosen.ids.assign(all.begin(), all.end());
  return chosen;
}

// Also deletes matching records of autotvm (autotvm_list.h).
Status DeleteRecords(const DeleteFlags& flags, const Session& session) {
  if (flags.what.empty() && !IsSet(flags.filter)) {
    return InvalidArgument(
        "say which records: their numbers, jobs, or a filter as for records list");
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Chosen chosen, SelectRecordsToDelete(flags, *archive));
  if (chosen.size() == 0) return NotFound("{} has no such record", archive->Name());
  const auto of_autotvm = static_cast<int64_t>(chosen.autotvm_ids.size());
  const DeletionCounts planned = {static_cast<int64_t>(chosen.size()), of_autotvm};
  if (!flags.yes) KILN_RETURN_IF_ERROR(ConfirmDeletion(planned, archive->Name()));
  uint64_t records = 0, autotvm = 0;
  if (!chosen.ids.empty()) {
    KILN_ASSIGN_OR_RETURN(records, archive->DeleteRecords(chosen.ids));
  }
  if (!chosen.autotvm_ids.empty()) {
    KILN_ASSIGN_OR_RETURN(autotvm, archive->DeleteAutotvmRecords(chosen.autotvm_ids));
  }
  PrintDeleted({static_cast<int64_t>(records + autotvm), static_cast<int64_t>(autotvm)}, *archive,
               session);
  return OkStatus();
}

}  // namespace

Run AddRecordsDelete(CLI::App& remove, SessionFlags& session) {
  const auto flags = std::make_shared<DeleteFlags>();
  remove.description("delete records for good: by number, of a job, or by a filter");
  remove.add_option("what", flags->what, "numbers of records, or jobs");
  remove.add_flag("--yes", flags->yes, "do not ask");
  AddRecordFilter(remove, session, flags->filter);
  return Plain([flags](const Session& session) { return DeleteRecords(*flags, session); });
}

}  // namespace kiln::client
