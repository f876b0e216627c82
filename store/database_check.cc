#include "store/database_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/file/file.h"
#include "base/hash/digest.h"
#include "base/text/counted.h"
#include "store/record.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/sqlite_rows.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::OpenOptions;
using sqlite::Statement;

constexpr char kRestore[] =
    "put a backup back with kiln db restore FILE, or recover the rest with sqlite3's .recover";
constexpr char kDelete[] = "delete such records with kiln records delete NUMBER";
constexpr char kMeasureAgain[] =
    "the record counts for no computation; delete it with kiln records delete NUMBER";

// Calls `visit` for each row of a statement.
Status ForEachRow(Database& database, std::string_view sql,
                  const std::function<void(const Statement&)>& visit) {
  KILN_ASSIGN_OR_RETURN(Statement query, database.Prepare(sql));
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return OkStatus();
    visit(query);
  }
}

class Checker {
 public:
  Checker(Database& database, const TextChecks& checks, DatabaseReport& report)
      : database_(database), checks_(checks), report_(report) {}

  Status CheckFile() {
    const Status read =
        ForEachRow(database_, "PRAGMA integrity_check(20)", [&](const Statement& row) {
          if (row.Text(0) != "ok") Add("file", "the file is damaged", row.Text(0), kRestore);
        });
    if (read.code() == StatusCode::kDataLoss && report_.findings.empty()) {
      Add("file", "the file is damaged", std::string(Message(read)), kRestore);
    }
    // References cannot be followed over damaged pages.
    if (!report_.findings.empty()) return OkStatus();
    KILN_RETURN_IF_ERROR(read);
    return ForEachRow(database_, "PRAGMA foreign_key_check", [&](const Statement& row) {
      Add("references", "a row refers to another one that is missing",
          fmt::format("row {} of {} refers to {}", row.Int(1), row.Text(0), row.Text(2)), kRestore);
    });
  }

  // Compares the tables and indexes with those of a new file.
  Status CheckSchema(const std::string& scratch) {
    KILN_ASSIGN_OR_RETURN(const auto fresh, Database::Open(scratch, kApplicationId, {}));
    KILN_RETURN_IF_ERROR(sqlite::Migrate(*fresh, Migrations(), false));
    KILN_ASSIGN_OR_RETURN(const Entries expected, EntriesOf(*fresh));
    KILN_ASSIGN_OR_RETURN(const Entries found, EntriesOf(database_));
    for (const auto& [name, sql] : expected) {
      const auto at = found.find(name);
      if (at != found.end() && at->second == sql) continue;
      Add("schema", at == found.end() ? "a table or index is missing" : "a table or index differs",
          fmt::format("{} is not the one of schema {}", name, report_.known_schema), kRestore);
    }
    return OkStatus();
  }

  Status CheckRows() {
    KILN_RETURN_IF_ERROR(CheckComputations());
    KILN_RETURN_IF_ERROR(CheckJobs());
    return CheckRecords();
  }

 private:
  // Statements by type and name.
  using Entries = std::map<std::string, std::string>;

  static StatusOr<Entries> EntriesOf(Database& database) {
    Entries entries;
    KILN_RETURN_IF_ERROR(ForEachRow(
        database, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'",
        [&](const Statement& row) {
          entries[fmt::format("{} {}", row.Text(0), row.Text(1))] = row.Text(2);
        }));
    return entries;
  }

  void Add(std::string place, std::string fault, std::string example, std::string advice) {
    auto& all = report_.findings;
    const auto same = std::ranges::find_if(all, [&](const Finding& finding) {
      return finding.place == place && finding.fault == fault;
    });
    if (same != all.end()) {
      ++same->count;
      return;
    }
    all.push_back({std::move(place), std::move(fault), 1, std::move(example), std::move(advice)});
  }

  Status CheckComputations() {
    return ForEachRow(database_, "SELECT id, digest, text FROM dags", [&](const Statement& row) {
      const std::string name = fmt::format("computation {}", row.Int(0));
      const std::string digest = row.Text(1), text = row.Text(2);
      const std::string hash = Sha256Hex(text);
      if (digest != hash) {
        Add("computations", "the digest is not that of the text",
            fmt::format("{}: {}, expected {}", name, digest, hash), kRestore);
      }
      const StatusOr<std::string> identity = checks_.identity(text);
      if (!identity.ok()) {
        Add("computations", "the text does not parse",
            fmt::format("{}: {}", name, Message(identity.status())), kRestore);
      }
      identities_[hash] = identity.ok() ? *identity : hash;
    });
  }

  // Returns whether `id` is the identity of the text. Older versions printed some computations in
  // another way, and their identity is the hash of the text as it was printed then.
  bool IsIdentity(const std::string& id, const std::string& dag) const {
    const std::string hash = Sha256Hex(dag);
    if (id == hash) return true;
    const auto known = identities_.find(hash);
    return known != identities_.end() && known->second == id;
  }

  Status CheckJobs() {
    KILN_RETURN_IF_ERROR(
        ForEachRow(database_, "SELECT id, state, spec FROM jobs", [&](const Statement& row) {
          const std::string id = row.Text(0);
          if (const auto state = ParseJobState(row.Text(1)); !state.ok()) {
            Add("jobs", "the state is unknown",
                fmt::format("job {}: {}", id, Message(state.status())),
                "such a job does not run; submit it again");
          }
          if (const Status spec = checks_.job_spec(row.Text(2)); !spec.ok()) {
            Add("jobs", "the specification does not parse",
                fmt::format("job {}: {}", id, Message(spec)),
                "such a job is shown without its options; submit it again");
          }
        }));
    return ForEachRow(database_, kTaskColumns, [&](const Statement& row) {
      const StatusOr<TaskRow> task = ReadTask(row);
      if (!task.ok() || task->workload_id.empty() || IsIdentity(task->workload_id, task->dag)) {
        return;
      }
      Add("jobs", "the identity of a task is not that of its computation",
          fmt::format("task {} of job {}: {}", task->index, task->job_id, task->workload_id),
          "submit the job again");
    });
  }

  Status CheckRecords() {
    KILN_RETURN_IF_ERROR(
        ForEachRow(database_, kRecordColumns, [&](const Statement& row) { CheckRecord(row); }));
    KILN_RETURN_IF_ERROR(ForEachRow(
        database_, "SELECT id FROM records WHERE (error = 0) != coalesce(mean_cost_s > 0, 0)",
        [&](const Statement& row) {
          Add("records", "the cost does not fit the error", fmt::format("record {}", row.Int(0)),
              kDelete);
        }));
    return ForEachRow(database_, kAutotvmColumns, [&](const Statement& row) {
      const StatusOr<AutotvmRecord> record = ReadAutotvmRecord(row);
      if (record.ok()) return;
      Add("records", "a record of autotvm does not parse",
          fmt::format("record {} of autotvm: {}", row.Int(0), Message(record.status())), kDelete);
    });
  }

  void CheckRecord(const Statement& row) {
    const std::string name = fmt::format("record {}", row.Int(0));
    const StatusOr<Record> record = ReadRecord(row);
    if (!record.ok()) {
      return Add("records", "the row does not parse",
                 fmt::format("{}: {}", name, Message(record.status())), kDelete);
    }
    const auto check = [&](std::string fault, const Status& status, const char* advice) {
      if (!status.ok())
        Add("records", std::move(fault), fmt::format("{}: {}", name, Message(status)), advice);
    };
    check("the costs are impossible", ValidateRecord(*record), kDelete);
    check("the steps do not parse", checks_.steps(record->steps), kDelete);
    if (record->workload_id.empty() || record->dag.empty()) return;
    if (!IsIdentity(record->workload_id, record->dag)) {
      Add("records", "the identity is not that of the computation",
          fmt::format("{}: {}", name, record->workload_id), kMeasureAgain);
    }
  }

  Database& database_;
  const TextChecks& checks_;
  DatabaseReport& report_;
  // Identities of computations by the hashes of their texts.
  std::map<std::string, std::string> identities_;
};

Status CheckVersion(const std::string& path, int64_t found, int64_t known) {
  if (found <= known) return OkStatus();
  return FailedPrecondition(
      "{} was made by a newer Kiln (schema {}, this one knows {}); check it with that Kiln", path,
      found, known);
}

}  // namespace

StatusOr<DatabaseReport> CheckDatabaseFile(const std::string& path, const TextChecks& checks) {
  constexpr OpenOptions kRead = {.mode = OpenOptions::Mode::kReadOnly};
  DatabaseReport report;
  report.known_schema = static_cast<int64_t>(Migrations().size());
  KILN_ASSIGN_OR_RETURN(const auto database, Database::Open(path, kApplicationId, kRead));
  KILN_ASSIGN_OR_RETURN(report.size.schema, database->QueryInt("PRAGMA user_version"));
  KILN_ASSIGN_OR_RETURN(report.size.bytes, FileSize(path));
  KILN_RETURN_IF_ERROR(CheckVersion(path, report.size.schema, report.known_schema));
  KILN_RETURN_IF_ERROR(sqlite::CheckSchemaIsOurs(*database, Migrations()));
  KILN_ASSIGN_OR_RETURN(const TempDir scratch, TempDir::Make("kiln-check"));
  Checker checker(*database, checks, report);
  // All statements see one state, whoever writes meanwhile.
  KILN_RETURN_IF_ERROR(database->Execute("BEGIN"));
  KILN_RETURN_IF_ERROR(checker.CheckFile());
  // Rows of damaged pages cannot be read.
  report.is_readable =
      std::ranges::find(report.findings, "file", &Finding::place) == report.findings.end();
  if (!report.is_readable) return report;
  const int64_t bytes = report.size.bytes;
  KILN_ASSIGN_OR_RETURN(report.size, SizeOf(*database));
  report.size.bytes = bytes;
  const std::string fresh = scratch.Join("fresh.db");
  if (report.size.schema == report.known_schema) {
    KILN_RETURN_IF_ERROR(checker.CheckSchema(fresh));
    KILN_RETURN_IF_ERROR(checker.CheckRows());
    KILN_RETURN_IF_ERROR(database->Execute("ROLLBACK"));
    return report;
  }
  // A file of an older schema counts as what its migration makes of it, because two schemas changed
  // under their numbers and later ones mend them.
  const std::string copy = scratch.Join("copy.db");
  KILN_RETURN_IF_ERROR(database->CopyTo(copy));
  KILN_ASSIGN_OR_RETURN(const auto migrated, Database::Open(copy, kApplicationId, {}));
  const Status migration = sqlite::Migrate(*migrated, Migrations(), false);
  if (!migration.ok()) {
    report.findings.push_back({"schema", "the file cannot be brought to the newest schema", 1,
                               std::string(Message(migration)), kRestore});
    return report;
  }
  Checker after(*migrated, checks, report);
  KILN_RETURN_IF_ERROR(after.CheckSchema(fresh));
  KILN_RETURN_IF_ERROR(after.CheckRows());
  return report;
}

}  // namespace kiln::store
