// Converts rows of the SQLite store into values, and holds the statements that select them. Free
// functions on a connection; the caller takes locks and opens transactions. DataLoss: a row that
// Kiln never writes.
#pragma once

#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "store/record_order.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// Returns a JSON list such as [1e-05, 2.5e-05], with as many digits as it takes to read the same
// numbers back.
template <typename Numbers>
std::string PrintNumbers(const Numbers& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

// Does the same for costs; a missing cost becomes 0.
std::string PrintCosts(const std::vector<std::optional<double>>& costs_s);

// Returns the value of a column that takes no NULL: 0 stands for a time that has not come.
inline int64_t StoredTime(std::optional<int64_t> time_ms) { return time_ms.value_or(0); }

// Returns a JSON list such as ["a", "b"] for json_each. No stored name has bytes that JSON cannot
// hold.
std::string JsonOf(const std::vector<std::string>& names);

// Returns the text of the column jobs.state; the column jobs.paused says whether a queued job is a
// paused one.
std::string_view StoredState(JobState state);

// ---- rows
// The rank of RankOf() (record.h) among records without errors, for ORDER BY; ends with the id of
// the table `r`.
inline constexpr char kBestFirst[] = "measured_as DESC, stopped_early, mean_cost_s, r.id";

// Each constant selects the columns of its reader, in the reader's order. The caller appends the
// rest of the statement.
extern const char kJobColumns[];
extern const char kUserColumns[];
extern const char kAuditColumns[];
extern const char kTaskColumns[];
extern const char kRecordColumns[];
// Only of records without errors.
extern const char kRivalColumns[];
extern const char kRoundColumns[];
extern const char kCalibrationColumns[];
// All columns but the file.
extern const char kModelColumns[];
extern const char kPinnedColumns[];
extern const char kComputationColumns[];
extern const char kAutotvmColumns[];

StatusOr<JobRow> ReadJob(const sqlite::Statement& row);
StatusOr<UserRow> ReadUser(const sqlite::Statement& row);
StatusOr<AuditRow> ReadAudit(const sqlite::Statement& row);
StatusOr<TaskRow> ReadTask(const sqlite::Statement& row);
StatusOr<Record> ReadRecord(const sqlite::Statement& row);
StatusOr<Rival> ReadRival(const sqlite::Statement& row);
StatusOr<RoundRow> ReadRound(const sqlite::Statement& row);
StatusOr<CalibrationRow> ReadCalibration(const sqlite::Statement& row);
StatusOr<ModelRow> ReadModel(const sqlite::Statement& row);
StatusOr<PinnedSchedule> ReadPinned(const sqlite::Statement& row);
StatusOr<Computation> ReadComputation(const sqlite::Statement& row);
StatusOr<AutotvmRecord> ReadAutotvmRecord(const sqlite::Statement& row);
// Returns the first column.
StatusOr<std::string> ReadText(const sqlite::Statement& row);

StatusOr<int> ErrorKindOf(int64_t stored, std::string_view job_id);

// ---- selecting
// Returns all rows of "`columns` `where`".
template <typename Row, typename Read, typename... Values>
StatusOr<std::vector<Row>> Select(sqlite::Database& database, Read read, std::string_view columns,
                                  std::string_view where, const Values&... values) {
  KILN_ASSIGN_OR_RETURN(sqlite::Statement query,
                        database.Prepare(fmt::format("{}{}", columns, where)));
  KILN_RETURN_IF_ERROR(query.Bind(values...));
  std::vector<Row> rows;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return rows;
    KILN_ASSIGN_OR_RETURN(Row row, read(query));
    rows.push_back(std::move(row));
  }
}

template <typename... Values>
StatusOr<std::vector<Record>> SelectRecords(sqlite::Database& database, std::string_view where,
                                            const Values&... values) {
  return Select<Record>(database, ReadRecord, kRecordColumns, where, values...);
}

template <typename... Values>
StatusOr<std::optional<Record>> SelectOne(sqlite::Database& database, std::string_view where,
                                          const Values&... values) {
  KILN_ASSIGN_OR_RETURN(std::vector<Record> records, SelectRecords(database, where, values...));
  if (records.empty()) return std::optional<Record>();
  return std::optional<Record>(std::move(records.front()));
}

// Returns the record that is chosen of the fastest one and the finalists that do not differ from it
// (record_order.h). `where` selects the records without errors of its target and way of measuring.
// Cost: nothing is read if the fastest one is no finalist, else at most kMostRivals rows.
template <typename... Values>
StatusOr<Record> ChooseBeside(sqlite::Database& database, Record fastest, std::string_view where,
                              const Values&... values) {
  if (!fastest.confidence_s.has_value()) return fastest;
  KILN_ASSIGN_OR_RETURN(
      const std::vector<Rival> rivals,
      Select<Rival>(database, ReadRival, kRivalColumns,
                    fmt::format("{} ORDER BY {} LIMIT {}", where, kBestFirst, kMostRivals),
                    values...));
  if (rivals.empty()) return fastest;
  ChosenRecord chosen = ChooseRecord(rivals);
  if (chosen.id != fastest.id) {
    KILN_ASSIGN_OR_RETURN(std::optional<Record> other,
                          SelectOne(database, "WHERE r.id = ?", chosen.id));
    // Somebody has deleted it meanwhile.
    if (!other.has_value()) return fastest;
    fastest = *std::move(other);
  }
  fastest.equal_ids = std::move(chosen.equal_ids);
  return fastest;
}

// NotFound: there is no such job.
Status CheckJob(sqlite::Database& database, std::string_view job_id);
StatusOr<JobRow> FindJob(sqlite::Database& database, std::string_view job_id);

}  // namespace kiln::store
